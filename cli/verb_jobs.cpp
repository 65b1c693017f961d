// SPDX-License-Identifier: MIT
//
// vgpuctl jobs: lists vgpud's jobs and their results, or cancels a job. Jobs continue without
// their caller.
#include "cli/number_options.h"
#include "cli/table.h"
#include "cli/verbs.h"

#include <fmt/format.h>
#include <array>
#include <optional>

namespace vgpu::cli {

namespace {

/// The error of a failed job, or the report of a guest's agent, wrapped; "" for other jobs.
std::string outcome_text(const Properties& job) {
    constexpr std::size_t kIndent = 4;
    const std::string error = text_of(job, "Error"), report = text_of(job, "Report.text");
    const std::string heading = fmt::format("job {}: ", text_of(job, "Id"));
    if (error != "-") return wrapped_text(heading + error, kIndent);
    if (report == "-") return "";
    return wrapped_text(
        heading + (flag_of(job, "Report.ok") ? "the agent: " : "the agent reports a failure: ") +
            report,
        kIndent);
}

std::string whole_percent(const Properties& job, const std::string& name) {
    return fmt::format("{:.0f} %", real_of(job, name) * 100);
}

constexpr std::array kJobColumns{
    PropertyColumn{{"JOB", Align::Right}, "Id", text_of},
    PropertyColumn{{"KIND"}, "Kind", text_of},
    PropertyColumn{{"STATE"}, "State", text_of},
    PropertyColumn{{"DONE", Align::Right}, "Progress", whole_percent},
    PropertyColumn{{"STEP", Align::Left, true}, "Step", text_of},
    PropertyColumn{extra("ERROR"), "Error", text_of},
};

std::string jobs_text(const std::vector<Properties>& jobs, const TableOptions& table) {
    if (table.is_plain()) return table.text(kJobColumns, jobs);
    if (jobs.empty()) return "No jobs. Finished jobs are listed for 10 minutes.\n";
    std::string outcomes;
    for (const Properties& job : jobs) outcomes += outcome_text(job);
    return table.text(kJobColumns, jobs) + outcomes;
}

/// The job with the number `id`. Without such a job, throws NoSuchVf: org.vgpu1 has no error for
/// jobs, and NoSuchVf gives exit status 3.
const Properties& job_with(const std::vector<Properties>& jobs, std::uint64_t id) {
    std::vector<std::uint64_t> known;
    for (const Properties& job : jobs) {
        if (number_of(job, "Id") == id) return job;
        known.push_back(number_of(job, "Id"));
    }
    throw ServiceError(
        "org.vgpu1.Error.NoSuchVf",
        fmt::format(
            "there is no job {}; {}", id,
            known.empty() ? "there are no jobs" : fmt::format("jobs: {}", fmt::join(known, ", "))));
}

/// Lists jobs, or calls Job.Cancel and does not wait for the job's end. --json: vgpuctl-jobs-1, or
/// vgpuctl-done-1 with --cancel.
class JobsVerb final : public Verb {
public:
    JobsVerb()
        : Verb({Group::Configurations, "jobs", "list background jobs or cancel one",
                "jobs --cancel 7"}) {}
    void describe(CLI::App& command) override {
        command.add_option("--cancel", cancelled_, "cancel this job and roll back its changes")
            ->type_name("JOB")
            ->transform(whole_within(1, UINT32_MAX).description(""));
        table_.describe(command, {columns_of(kJobColumns)});
    }

    ExitCode run(Invocation& invocation) override {
        const std::vector<Properties> jobs = invocation.service.list_jobs();
        if (cancelled_) {
            const Properties& job = job_with(jobs, *cancelled_);
            invocation.service.cancel_job(text_of(job, "Path"));
            print_done(invocation, fmt::format("job {}", *cancelled_), "being cancelled");
        } else {
            invocation.print("vgpuctl-jobs-1", {{"jobs", json_of(jobs)}}, jobs_text(jobs, table_));
        }
        return ExitCode::Ok;
    }

private:
    std::optional<std::uint64_t> cancelled_;
    TableOptions table_;
};

}  // namespace

const MakeVerb make_jobs_verb = make_verb<JobsVerb>;

}  // namespace vgpu::cli
