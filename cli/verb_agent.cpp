// SPDX-License-Identifier: MIT
//
// The verbs that send a request to the agent in a guest, one row each:
//   vgpuctl self-test TARGET   test the VF from inside
//   vgpuctl quiesce TARGET     stop the processes that use it
//   vgpuctl thaw TARGET        resume them
#include "cli/number_options.h"
#include "cli/verbs.h"

namespace vgpu::cli {

namespace {

struct AgentRow {
    const char* name;
    const char* summary;
    AgentAct act;
    bool takes_time;  ///< has --timeout-ms
};

constexpr AgentRow kSelfTest{"self-test", "have the guest's agent test the VF", AgentAct::SelfTest,
                             true};
constexpr AgentRow kQuiesce{"quiesce", "stop what uses the VF in the guest", AgentAct::Quiesce,
                            true};
constexpr AgentRow kThaw{"thaw", "let go what quiesce stopped", AgentAct::Thaw, false};

/// Ends with 0 if the agent reports success, with 1 if it reports a failure. If there is no agent,
/// or it does not answer in time, vgpud returns an error. --json: vgpuctl-agent-1.
class AgentVerb final : public Verb {
public:
    explicit AgentVerb(const AgentRow& row) : row_(row) {}

    [[nodiscard]] std::string name() const override { return row_.name; }
    [[nodiscard]] std::string summary() const override { return row_.summary; }
    void describe(CLI::App& command) override {
        command.add_option("TARGET", target_, "gpu0/vf3, a VF's name or UUID")->required();
        if (!row_.takes_time) return;
        command.add_option("--timeout-ms", timeout_ms_, "how long it may take")
            ->transform(whole_within(100, 300'000))
            ->capture_default_str();
    }

    ExitCode run(Invocation& invocation) override {
        Options options;
        if (row_.takes_time) options["timeout_ms"] = std::uint64_t{timeout_ms_};
        return ask_agent(invocation, target_, name(), row_.act, options);
    }

private:
    const AgentRow& row_;
    std::string target_;
    unsigned timeout_ms_ = 60'000;
};

}  // namespace

std::unique_ptr<Verb> make_self_test_verb() {
    return std::make_unique<AgentVerb>(kSelfTest);
}

std::unique_ptr<Verb> make_quiesce_verb() {
    return std::make_unique<AgentVerb>(kQuiesce);
}

std::unique_ptr<Verb> make_thaw_verb() {
    return std::make_unique<AgentVerb>(kThaw);
}

}  // namespace vgpu::cli
