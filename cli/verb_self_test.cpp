// SPDX-License-Identifier: MIT
//
// vgpuctl self-test TARGET: have the agent in the guest test the VF.
#include "cli/verbs.h"

namespace vgpu::cli {

namespace {

class SelfTestVerb final : public Verb {
public:
    [[nodiscard]] std::string name() const override { return "self-test"; }
    [[nodiscard]] std::string summary() const override {
        return "have the guest's agent test the VF";
    }
    void describe(CLI::App& command) override {
        command.add_option("TARGET", target_, "gpu0/vf3, a VF's name or UUID")->required();
        command.add_option("--timeout-ms", timeout_ms_, "how long it may take")
            ->check(CLI::Range(100u, 300'000u))
            ->capture_default_str();
    }

    ExitCode run(Invocation& invocation) override {
        return ask_agent(invocation, target_, name(), AgentAct::SelfTest,
                         {{"timeout_ms", std::uint64_t{timeout_ms_}}});
    }

private:
    std::string target_;
    unsigned timeout_ms_ = 60'000;
};

}  // namespace

std::unique_ptr<Verb> make_self_test_verb() {
    return std::make_unique<SelfTestVerb>();
}

}  // namespace vgpu::cli
