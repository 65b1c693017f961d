// SPDX-License-Identifier: MIT
//
// vgpuctl thaw TARGET: let the processes go on that quiesce stopped.
#include "cli/verbs.h"

namespace vgpu::cli {

namespace {

class ThawVerb final : public Verb {
public:
    [[nodiscard]] std::string name() const override { return "thaw"; }
    [[nodiscard]] std::string summary() const override { return "let go what quiesce stopped"; }
    void describe(CLI::App& command) override {
        command.add_option("TARGET", target_, "gpu0/vf3, a VF's name or UUID")->required();
    }

    ExitCode run(Invocation& invocation) override {
        return ask_agent(invocation, target_, name(), AgentAct::Thaw, {});
    }

private:
    std::string target_;
};

}  // namespace

std::unique_ptr<Verb> make_thaw_verb() {
    return std::make_unique<ThawVerb>();
}

}  // namespace vgpu::cli
