// SPDX-License-Identifier: MIT
//
// The verbs that ask a guest's agent, one row each:
//   vgpuctl self-test TARGET   tests the VF from inside
//   vgpuctl quiesce TARGET     stops the processes that use it
//   vgpuctl thaw TARGET        resumes them
#include "cli/number_options.h"
#include "cli/verbs.h"

namespace vgpu::cli {

namespace {

struct AgentRow {
    About about;
    AgentRequest request;
    bool takes_time;  ///< has --timeout-ms
};

constexpr AgentRow kSelfTest{
    {Group::Guests, "self-test", "have the guest's agent test the VF", "self-test gpu0/vf1"},
    AgentRequest::SelfTest,
    true};
constexpr AgentRow kQuiesce{{Group::Guests, "quiesce", "stop the guest's processes that use the VF",
                             "quiesce gpu0/vf1 --timeout-ms 5000"},
                            AgentRequest::Quiesce,
                            true};
constexpr AgentRow kThaw{{Group::Guests, "thaw", "resume what quiesce stopped", "thaw gpu0/vf1"},
                         AgentRequest::Thaw,
                         false};

/// Ends with 1 if the agent reports a failure. --json: vgpuctl-agent-1.
class AgentVerb final : public Verb {
public:
    explicit AgentVerb(const AgentRow& row) : Verb(row.about), row_(row) {}

    void describe(CLI::App& command) override {
        add_vf(command, target_);
        if (!row_.takes_time) return;
        command.add_option("--timeout-ms", timeout_ms_, "time limit")
            ->transform(whole_within(100, 300'000))
            ->capture_default_str();
    }

    ExitCode run(Invocation& invocation) override {
        Options options;
        if (row_.takes_time) options["timeout_ms"] = std::uint64_t{timeout_ms_};
        return ask_agent(invocation, target_, name(), row_.request, options);
    }

private:
    const AgentRow& row_;
    std::string target_;
    unsigned timeout_ms_ = 60'000;
};

}  // namespace

const MakeVerb make_self_test_verb = make_verb<AgentVerb, kSelfTest>;
const MakeVerb make_quiesce_verb = make_verb<AgentVerb, kQuiesce>;
const MakeVerb make_thaw_verb = make_verb<AgentVerb, kThaw>;

}  // namespace vgpu::cli
