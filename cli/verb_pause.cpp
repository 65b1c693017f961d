// SPDX-License-Identifier: MIT
//
// vgpuctl pause TARGET: take a VF off the engine.
#include "cli/verbs.h"

namespace vgpu::cli {

namespace {

class PauseVerb final : public Verb {
public:
    [[nodiscard]] std::string name() const override { return "pause"; }
    [[nodiscard]] std::string summary() const override { return "take a VF off the engine"; }
    void describe(CLI::App& command) override {
        command.add_option("TARGET", target_, "gpu0/vf3, a VF's name or UUID")->required();
        command.add_flag("--force", force_, "even if a client has it open");
    }

    ExitCode run(Invocation& invocation) override {
        const std::string path = resolve_vf(invocation.service, target_, name());
        Options options;
        if (force_) options["force"] = true;
        invocation.service.act(path, VfAction::Pause, options);
        print_done(invocation, target_, "paused");
        return ExitCode::Ok;
    }

private:
    std::string target_;
    bool force_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_pause_verb() {
    return std::make_unique<PauseVerb>();
}

}  // namespace vgpu::cli
