// SPDX-License-Identifier: MIT
//
// vgpuctl reset TARGET: reset a VF; neighbours keep computing.
#include "cli/verbs.h"

namespace vgpu::cli {

namespace {

class ResetVerb final : public Verb {
public:
    [[nodiscard]] std::string name() const override { return "reset"; }
    [[nodiscard]] std::string summary() const override {
        return "reset a VF; neighbours keep computing";
    }
    void describe(CLI::App& command) override {
        command.add_option("TARGET", target_, "gpu0/vf3, a VF's name or UUID")->required();
    }

    ExitCode run(Invocation& invocation) override {
        const std::string path = resolve_vf(invocation.service, target_, name());
        invocation.service.act(path, VfAction::Reset, {});
        print_done(invocation, target_, "reset");
        return ExitCode::Ok;
    }

private:
    std::string target_;
};

}  // namespace

std::unique_ptr<Verb> make_reset_verb() {
    return std::make_unique<ResetVerb>();
}

}  // namespace vgpu::cli
