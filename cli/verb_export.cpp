// SPDX-License-Identifier: MIT
//
// vgpuctl export: prints the configuration that describes the present VFs, or vgpud's fair splits.
#include "cli/verbs.h"
#include "text/json_document.h"

namespace vgpu::cli {

namespace {

/// Manager.Export or AutoConfig. plan, apply and assert accept its output (text or --json) as FILE.
class ExportVerb final : public Verb {
public:
    [[nodiscard]] std::string name() const override { return "export"; }
    [[nodiscard]] std::string summary() const override {
        return "the VFs there are, as a configuration";
    }
    void describe(CLI::App& command) override {
        command.add_option("--gpu", gpu_, "this GPU alone");
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
        if (invocation.output == Output::Json)
            invocation.out << document_text("vgpuctl-export-1", {{"config", json_in(text)}});
        else
            invocation.out << text;
        return ExitCode::Ok;
    }

private:
    static nlohmann::ordered_json json_in(const std::string& text) {
        auto json = text::read_json<nlohmann::ordered_json>(text);
        if (!json)
            throw ServiceError("org.vgpu1.Error.System",
                               "vgpud's configuration is no JSON: " + json.error());
        return *std::move(json);
    }

    std::string gpu_, label_;
    bool is_automatic_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_export_verb() {
    return std::make_unique<ExportVerb>();
}

}  // namespace vgpu::cli
