// SPDX-License-Identifier: MIT
//
// vgpuctl stop TARGET: take a VF off the engine, gates shut.
#include "cli/verbs.h"

namespace vgpu::cli {

namespace {

class StopVerb final : public Verb {
public:
    [[nodiscard]] std::string name() const override { return "stop"; }
    [[nodiscard]] std::string summary() const override {
        return "take a VF off the engine, gates shut";
    }
    void describe(CLI::App& command) override {
        command.add_option("TARGET", target_, "gpu0/vf3, a VF's name or UUID")->required();
        command.add_flag("--force", force_, "even if a client has it open");
    }

    ExitCode run(Invocation& invocation) override {
        const std::string path = resolve_vf(invocation.service, target_, name());
        Options options;
        if (force_) options["force"] = true;
        invocation.service.act(path, VfAction::Stop, options);
        print_done(invocation, target_, "stopped");
        return ExitCode::Ok;
    }

private:
    std::string target_;
    bool force_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_stop_verb() {
    return std::make_unique<StopVerb>();
}

}  // namespace vgpu::cli
