// SPDX-License-Identifier: MIT
//
// vgpuctl jobs: lists vgpud's background jobs and their results; --cancel ends one. Jobs belong to
// vgpud and continue when their caller has left.
#include "cli/number_options.h"
#include "cli/verbs.h"

#include <fmt/format.h>
#include <algorithm>
#include <optional>

namespace vgpu::cli {

namespace {

/// Why a job failed, or what an agent answered; empty if neither.
std::string outcome_text(const Properties& job) {
    constexpr std::size_t kIndent = 4;
    const std::string error = text_of(job, "Error"), report = text_of(job, "Report.text");
    const std::string who = fmt::format("job {}: ", text_of(job, "Id"));
    if (error != "-") return wrapped_text(who + error, kIndent);
    if (report == "-") return "";
    return wrapped_text(
        who + (flag_of(job, "Report.ok") ? "the agent: " : "the agent, failed: ") + report,
        kIndent);
}

std::string jobs_text(const std::vector<Properties>& jobs) {
    if (jobs.empty()) return "There is no job; those that are over are kept for 10 minutes.\n";
    std::vector<std::vector<std::string>> rows;
    std::string outcomes;
    for (const Properties& job : jobs) {
        rows.push_back({text_of(job, "Id"), text_of(job, "Kind"), text_of(job, "State"),
                        fmt::format("{:.0f} %", real_of(job, "Progress") * 100),
                        text_of(job, "Step")});
        outcomes += outcome_text(job);
    }
    return table_text({{"JOB", Align::Right},
                       {"KIND"},
                       {"STATE"},
                       {"DONE", Align::Right},
                       {"STEP", Align::Left, true}},
                      rows) +
           outcomes;
}

/// The error is NoSuchVf (exit status 3), as for every missing object.
const Properties& with_number(const std::vector<Properties>& jobs, std::uint64_t id) {
    std::vector<std::uint64_t> known;
    for (const Properties& job : jobs) {
        if (number_of(job, "Id") == id) return job;
        known.push_back(number_of(job, "Id"));
    }
    throw ServiceError(
        "org.vgpu1.Error.NoSuchVf",
        fmt::format("there is no job {}; {}", id,
                    known.empty() ? "there is none at all"
                                  : fmt::format("there are: {}", fmt::join(known, ", "))));
}

/// Job.Cancel returns at once: the job ends after its current step.
/// --json: vgpuctl-jobs-1; with --cancel vgpuctl-done-1.
class JobsVerb final : public Verb {
public:
    [[nodiscard]] std::string name() const override { return "jobs"; }
    [[nodiscard]] std::string summary() const override {
        return "what is under way, what came of it; ends it";
    }
    void describe(CLI::App& command) override {
        command.add_option("--cancel", cancelled_, "end this job and take back what it did")
            ->type_name("JOB")
            ->transform(whole_within(1, UINT32_MAX));
    }

    ExitCode run(Invocation& invocation) override {
        const std::vector<Properties> jobs = invocation.service.list_jobs();
        if (cancelled_) {
            const Properties& job = with_number(jobs, *cancelled_);
            invocation.service.cancel_job(text_of(job, "Path"));
            print_done(invocation, fmt::format("job {}", *cancelled_), "being cancelled");
        } else if (invocation.output == Output::Json) {
            invocation.out << document_text("vgpuctl-jobs-1", {{"jobs", json_of(jobs)}});
        } else {
            invocation.out << jobs_text(jobs);
        }
        return ExitCode::Ok;
    }

private:
    std::optional<std::uint64_t> cancelled_;
};

}  // namespace

std::unique_ptr<Verb> make_jobs_verb() {
    return std::make_unique<JobsVerb>();
}

}  // namespace vgpu::cli
