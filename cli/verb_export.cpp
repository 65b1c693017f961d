// SPDX-License-Identifier: MIT
//
// vgpuctl export: prints the present VFs as a configuration, or (--auto) a configuration with the
// possible splits of each GPU into equal VFs.
#include "cli/verbs.h"
#include "text/json_document.h"

namespace vgpu::cli {

namespace {

/// Calls Manager.Export or AutoConfig. plan, apply and assert accept the output.
class ExportVerb final : public Verb {
public:
    ExportVerb()
        : Verb({Group::Configurations, "export", "print the present VFs as a configuration",
                "export"}) {}
    void describe(CLI::App& command) override {
        command.add_option("--gpu", gpu_, "only this GPU");
        auto* label = command.add_option("--label", label_, "name of the config (default current)");
        command.add_flag("--auto", is_automatic_, "the fair splits into 1 to 16 VFs instead")
            ->excludes(label);
    }

    ExitCode run(Invocation& invocation) override {
        Options options;
        if (!gpu_.empty()) options["gpu"] = gpu_;
        if (!label_.empty()) options["label"] = label_;
        const std::string text = is_automatic_ ? invocation.service.auto_config(options)
                                               : invocation.service.export_config(options);
        auto config = text::read_json<nlohmann::ordered_json>(text);
        if (!config)
            throw ServiceError("org.vgpu1.Error.System",
                               "vgpud's configuration is not JSON: " + config.error());
        invocation.print("vgpuctl-export-1", {{"config", *std::move(config)}}, text);
        return ExitCode::Ok;
    }

private:
    std::string gpu_, label_;
    bool is_automatic_ = false;
};

}  // namespace

const MakeVerb make_export_verb = make_verb<ExportVerb>;

}  // namespace vgpu::cli
