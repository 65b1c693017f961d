// SPDX-License-Identifier: MIT
//
// vgpuctl reset TARGET: resets a VF; its neighbours keep computing.
#include "cli/progress.h"
#include "cli/verbs.h"

namespace vgpu::cli {

namespace {

/// Vf.Reset: clears the engine state; keeps VRAM and contract (docs/hardware-contract.md, Resets).
class ResetVerb final : public Verb {
public:
    [[nodiscard]] std::string name() const override { return "reset"; }
    [[nodiscard]] std::string summary() const override {
        return "reset a VF; neighbours keep computing";
    }
    void describe(CLI::App& command) override {
        command.add_option("TARGET", target_, "gpu0/vf3, a VF's name or UUID")->required();
        command.add_flag("--force", force_, "even if it is claimed");
        command.add_option("--owner", owner_, "in the name of the owner who has claimed it");
    }

    ExitCode run(Invocation& invocation) override {
        const std::string path = resolve_vf(invocation.service, target_, name());
        Options options;
        if (force_) options["force"] = true;
        if (!owner_.empty()) options["owner"] = owner_;
        {
            const Waiting waiting(invocation, "reset " + target_);
            invocation.service.act(path, VfAction::Reset, options);
        }
        print_done(invocation, target_, "reset");
        return ExitCode::Ok;
    }

private:
    std::string target_, owner_;
    bool force_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_reset_verb() {
    return std::make_unique<ResetVerb>();
}

}  // namespace vgpu::cli
