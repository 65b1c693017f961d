// SPDX-License-Identifier: MIT
//
// vgpuctl resume TARGET: puts a paused or stopped VF back into service.
#include "cli/job_wait.h"

namespace vgpu::cli {

namespace {

/// Calls Vf.Resume. For a VF in quarantine, --clear-quarantine calls Vf.ClearQuarantine instead,
/// which also resets the VF. Returns when the VF is in service.
class ResumeVerb final : public Verb {
public:
    ResumeVerb()
        : Verb({Group::Vfs, "resume", "put a paused or stopped VF back into service",
                "resume gpu0/vf1"}) {}
    void describe(CLI::App& command) override {
        add_vf(command, target_);
        command.add_flag("--clear-quarantine", clear_, "also end the VF's quarantine");
    }

    ExitCode run(Invocation& invocation) override {
        const std::string path = resolve_vf(invocation.service, target_, name());
        const bool clears_quarantine =
            clear_ && text_of(invocation.service.object(path), "State") == "quarantined";
        carry_out(invocation, path, clears_quarantine ? VfJob::ClearQuarantine : VfJob::Resume, {});
        print_done(invocation, target_, "resumed");
        return ExitCode::Ok;
    }

private:
    std::string target_;
    bool clear_ = false;
};

}  // namespace

const MakeVerb make_resume_verb = make_verb<ResumeVerb>;

}  // namespace vgpu::cli
