// SPDX-License-Identifier: MIT
//
// The two ways to take a VF off the engine, one row each:
//   vgpuctl pause TARGET   its registers still answer the guest
//   vgpuctl stop TARGET    gates shut
#include "cli/verbs.h"

namespace vgpu::cli {

namespace {

struct LeaveRow {
    const char* name;
    const char* summary;
    const char* done;
    VfAction action;
};

constexpr LeaveRow kPause{"pause", "take a VF off the engine", "paused", VfAction::Pause};
constexpr LeaveRow kStop{"stop", "take a VF off the engine, gates shut", "stopped", VfAction::Stop};

/// Vf.Pause or Vf.Stop; 'vgpuctl resume' undoes both. The VF keeps its resources.
class LeaveVerb final : public Verb {
public:
    explicit LeaveVerb(const LeaveRow& row) : row_(row) {}

    [[nodiscard]] std::string name() const override { return row_.name; }
    [[nodiscard]] std::string summary() const override { return row_.summary; }
    void describe(CLI::App& command) override {
        command.add_option("TARGET", target_, "gpu0/vf3, a VF's name or UUID")->required();
        command.add_flag("--force", force_, "even if a client has it open");
    }

    ExitCode run(Invocation& invocation) override {
        const std::string path = resolve_vf(invocation.service, target_, name());
        Options options;
        if (force_) options["force"] = true;
        invocation.service.act(path, row_.action, options);
        print_done(invocation, target_, row_.done);
        return ExitCode::Ok;
    }

private:
    const LeaveRow& row_;
    std::string target_;
    bool force_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_pause_verb() {
    return std::make_unique<LeaveVerb>(kPause);
}

std::unique_ptr<Verb> make_stop_verb() {
    return std::make_unique<LeaveVerb>(kStop);
}

}  // namespace vgpu::cli
