// SPDX-License-Identifier: MIT
//
// vgpuctl create: creates a VF. vgpud gives the VF resources and a place in the run table.
#include "cli/number_options.h"
#include "cli/verbs.h"
#include "cli/vf_options.h"

#include <fmt/format.h>
#include <optional>
#include <utility>

namespace vgpu::cli {

namespace {

/// Calls Manager.CreateVf. Exits with 6 if the GPU lacks a free VF or one of the requested
/// resources. --json: vgpuctl-create-1.
class CreateVerb final : public Verb {
public:
    CreateVerb()
        : Verb({Group::Vfs, "create", "create a VF with VRAM and a share of the engine",
                "create --name train --vram 256M --weight 200"}) {}
    void describe(CLI::App& command) override {
        command.add_option("--gpu", gpu_, "GPU (default: the one with the most free VRAM)");
        command.add_option("--name", name_, "name (default: GPU-vfN)");
        add_size(command, "--vram", vram_bytes_, "VRAM, such as 256M (default: a fair part)");
        vf_options_.describe(command);
        add_whole(command, "--cu-mask", cu_mask_, "compute units, such as 0xff (default: all)");
        add_whole(command, "--doorbell-pages", doorbell_pages_,
                  "doorbell pages (default: all that a VF can have)");
    }

    ExitCode run(Invocation& invocation) override {
        Options options;
        if (!name_.empty()) options["name"] = name_;
        put(options, "vram_bytes", vram_bytes_);
        vf_options_.put(options);
        put(options, "cu_mask", cu_mask_);
        put(options, "doorbell_pages", doorbell_pages_);
        const std::string path = invocation.service.create_vf(gpu_, options);
        const Properties vf = created_vf(invocation.service, path, options);
        invocation.print(
            "vgpuctl-create-1", {{"vf", json_of(vf)}},
            fmt::format("{} '{}' {} weight {}\n", text_of(vf, "Target"), text_of(vf, "Name"),
                        size_of(vf, "VramBytes"), text_of(vf, "Weight")));
        return ExitCode::Ok;
    }

private:
    static void put(Options& options, const std::string& name, const std::optional<Value>& value) {
        if (value) options[name] = *value;
    }

    /// Returns the properties of the new VF. If the VF or vgpud has vanished meanwhile, returns the
    /// requested properties, so that the verb still reports the creation.
    static Properties created_vf(Service& service, const std::string& path,
                                 const Options& options) {
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

    std::string gpu_, name_;
    std::optional<Value> vram_bytes_, cu_mask_, doorbell_pages_;
    VfOptions vf_options_;
};

}  // namespace

const MakeVerb make_create_verb = make_verb<CreateVerb>;

}  // namespace vgpu::cli
