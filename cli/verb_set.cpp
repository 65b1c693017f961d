// SPDX-License-Identifier: MIT
//
// vgpuctl set TARGET: changes the name or other settings of a VF, or the quantum or the longest gap
// of a GPU.
#include "cli/verbs.h"
#include "cli/vf_options.h"

#include <optional>

namespace vgpu::cli {

namespace {

/// Calls Vf.Set or Gpu.Set. vgpud refuses an option that the method does not have (UnknownOption).
class SetVerb final : public Verb {
public:
    SetVerb() : Verb({Group::Vfs, "set", "change a VF or a GPU", "set train --weight 300"}) {}
    void describe(CLI::App& command) override {
        command.add_option("TARGET", target_, "gpu0, or a VF as gpu0/vf3, its name or UUID")
            ->required();
        command.add_option("--name", name_, "new name of the VF");
        vf_.describe(command);
        command.add_option("--owner", owner_, "change the assignment mode as this owner");
        command.add_flag("--force", is_forced_, "change the assignment mode of a VF in use, too");
    }

    ExitCode run(Invocation& invocation) override {
        const std::string path = invocation.service.resolve(target_);
        Options options;
        if (name_) options["name"] = *name_;
        vf_.put(options);
        // without a setting, fail: success would suggest a change
        if (options.empty())
            throw ServiceError("org.vgpu1.Error.UnknownOption",
                               "nothing to set; see 'vgpuctl set --help'");
        if (owner_) options["owner"] = *owner_;
        if (is_forced_) options["force"] = true;
        if (is_vf_path(path))
            invocation.service.set_vf(path, options);
        else
            invocation.service.set_gpu(path, options);
        print_done(invocation, target_, "set");
        return ExitCode::Ok;
    }

private:
    std::string target_;
    std::optional<std::string> name_, owner_;
    bool is_forced_ = false;
    VfOptions vf_;
};

}  // namespace

const MakeVerb make_set_verb = make_verb<SetVerb>;

}  // namespace vgpu::cli
