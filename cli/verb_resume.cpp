// SPDX-License-Identifier: MIT
//
// vgpuctl resume TARGET: puts a paused or stopped VF back into service.
#include "cli/verbs.h"

namespace vgpu::cli {

namespace {

/// Vf.Resume; with --clear-quarantine Vf.ClearQuarantine, which resets a VF in quarantine and puts
/// it back. Both return when the VF is in service.
class ResumeVerb final : public Verb {
public:
    [[nodiscard]] std::string name() const override { return "resume"; }
    [[nodiscard]] std::string summary() const override { return "put a paused or stopped VF back"; }
    void describe(CLI::App& command) override {
        command.add_option("TARGET", target_, "gpu0/vf3, a VF's name or UUID")->required();
        command.add_flag("--clear-quarantine", clear_,
                         "also of a VF in quarantine: forgive its guest");
    }

    ExitCode run(Invocation& invocation) override {
        const std::string path = resolve_vf(invocation.service, target_, name());
        const bool is_forgiven =
            clear_ && text_of(invocation.service.object(path), "State") == "quarantined";
        invocation.service.act(path, is_forgiven ? VfAction::ClearQuarantine : VfAction::Resume,
                               {});
        print_done(invocation, target_, "resumed");
        return ExitCode::Ok;
    }

private:
    std::string target_;
    bool clear_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_resume_verb() {
    return std::make_unique<ResumeVerb>();
}

}  // namespace vgpu::cli
