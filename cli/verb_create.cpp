// SPDX-License-Identifier: MIT
//
// vgpuctl create: gives a VF resources and a place in the run table.
#include "cli/custody_options.h"
#include "cli/number_options.h"
#include "cli/qos_options.h"
#include "cli/verbs.h"

#include <fmt/format.h>
#include <optional>
#include <utility>

namespace vgpu::cli {

namespace {

/// Manager.CreateVf; vgpud chooses values that are not given. Ends with 6 if there is no VF, VRAM
/// or schedule left. --json: vgpuctl-create-1, with the VF's properties.
class CreateVerb final : public Verb {
public:
    [[nodiscard]] std::string name() const override { return "create"; }
    [[nodiscard]] std::string summary() const override { return "give a VF resources"; }
    void describe(CLI::App& command) override {
        command.add_option("--gpu", gpu_, "GPU (default: the one with the most free VRAM)");
        command.add_option("--name", name_, "name (default: GPU-vfN)");
        command.add_option("--vram", vram_, "VRAM, such as 256M (default: a fair part)");
        add_whole(command, "--weight", weight_, "1 to 10000 (default 100)");
        add_whole(command, "--quantum-us", quantum_us_, "longest slice (default: the GPU's)");
        qos_.describe(command);
        custody_.describe(command);
        add_whole(command, "--cu-mask", cu_mask_, "compute units, such as 0xff (default: all)");
        add_whole(command, "--doorbell-pages", doorbell_pages_, "default: all a VF can have");
    }

    ExitCode run(Invocation& invocation) override {
        Options options;
        if (!name_.empty()) options["name"] = name_;
        if (!vram_.empty()) options["vram_bytes"] = vram_bytes();
        put(options, "weight", weight_);
        put(options, "quantum_us", quantum_us_);
        qos_.put(options);
        custody_.put(options);
        put(options, "cu_mask", cu_mask_);
        put(options, "doorbell_pages", doorbell_pages_);
        const std::string path = invocation.service.create_vf(gpu_, options);
        const Properties vf = made(invocation.service, path, options);
        if (invocation.output == Output::Json)
            invocation.out << document_text("vgpuctl-create-1", {{"vf", json_of(vf)}});
        else
            invocation.out << fmt::format("{} '{}' {} weight {}\n", text_of(vf, "Target"),
                                          text_of(vf, "Name"), size_of(vf, "VramBytes"),
                                          text_of(vf, "Weight"));
        return ExitCode::Ok;
    }

private:
    static void put(Options& options, const std::string& name, const std::optional<Value>& value) {
        if (value) options[name] = *value;
    }

    /// Properties of the new VF. If the VF or vgpud has gone meanwhile, returns the requested ones:
    /// the VF was created.
    static Properties made(Service& service, const std::string& path, const Options& options) {
        try {
            return service.object(path);
        } catch (const ServiceError&) {
            Properties vf{{"Path", path}, {"Target", target_of_path(path)}};
            for (const auto& [option, property] :
                 {std::pair("name", "Name"), std::pair("vram_bytes", "VramBytes"),
                  std::pair("weight", "Weight")})
                if (const auto at = options.find(option); at != options.end())
                    vf[property] = at->second;
            return vf;
        }
    }

    [[nodiscard]] std::uint64_t vram_bytes() const {
        const auto bytes = parse_size(vram_);
        if (!bytes)
            throw ServiceError(
                "org.vgpu1.Error.WrongType",
                fmt::format("--vram '{}' is no size; a size is {}", vram_, text::kSizeWords));
        return *bytes;
    }

    std::string gpu_, name_, vram_;
    std::optional<Value> weight_, quantum_us_, cu_mask_, doorbell_pages_;
    QosOptions qos_;
    CustodyOptions custody_;
};

}  // namespace

std::unique_ptr<Verb> make_create_verb() {
    return std::make_unique<CreateVerb>();
}

}  // namespace vgpu::cli
