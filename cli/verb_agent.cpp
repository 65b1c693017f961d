// SPDX-License-Identifier: MIT
//
// The verbs that send a request to a guest's agent, each described by an AgentRow:
//   vgpuctl self-test TARGET   tests the VF from inside the guest
//   vgpuctl quiesce TARGET     stops the guest's processes that use the VF
//   vgpuctl thaw TARGET        resumes these processes
#include "cli/job_wait.h"
#include "cli/number_options.h"

#include <fmt/format.h>

namespace vgpu::cli {

namespace {

struct AgentRow {
    About about;
    VfJob job;
    bool has_timeout;  ///< true if the verb has --timeout-ms
};

constexpr AgentRow kSelfTest{
    {Group::Guests, "self-test", "have the guest's agent test the VF", "self-test gpu0/vf1"},
    VfJob::SelfTest,
    true};
constexpr AgentRow kQuiesce{{Group::Guests, "quiesce", "stop the guest's processes that use the VF",
                             "quiesce gpu0/vf1 --timeout-ms 5000"},
                            VfJob::Quiesce,
                            true};
constexpr AgentRow kThaw{
    {Group::Guests, "thaw", "resume what quiesce stopped", "thaw gpu0/vf1"}, VfJob::Thaw, false};

/// Prints the agent's report, such as "gpu0/vf3: self-test passed: TEXT (1200 ms)". Exits with 1 if
/// the agent reports a failure. --json: vgpuctl-agent-1.
class AgentVerb final : public Verb {
public:
    explicit AgentVerb(const AgentRow& row) : Verb(row.about), row_(row) {}

    void describe(CLI::App& command) override {
        add_vf(command, target_);
        if (!row_.has_timeout) return;
        command.add_option("--timeout-ms", timeout_ms_, "time limit")
            ->transform(whole_within(100, 300'000))
            ->capture_default_str();
    }

    ExitCode run(Invocation& invocation) override {
        Options options;
        if (row_.has_timeout) options["timeout_ms"] = std::uint64_t{timeout_ms_};
        const std::string path = resolve_vf(invocation.service, target_, name());
        const Properties job = carry_out(invocation, path, row_.job, options);
        const bool is_ok = flag_of(job, "Report.ok");
        const std::uint64_t ms = number_of(job, "Report.duration_ms");
        const std::string text = text_of(job, "Report.text");
        invocation.print("vgpuctl-agent-1",
                         {{"target", target_},
                          {"request", name()},
                          {"ok", is_ok},
                          {"text", text},
                          {"duration_ms", ms}},
                         fmt::format("{}: {} {}: {} ({} ms)\n", target_, name(),
                                     is_ok ? "passed" : "failed", text, ms));
        return is_ok ? ExitCode::Ok : ExitCode::Failed;
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
