// SPDX-License-Identifier: MIT
#include "cli/job_wait.h"

#include "cli/interruption.h"
#include "cli/progress.h"
#include "text/number.h"

#include <fmt/format.h>
#include <chrono>

namespace vgpu::cli {

namespace {

/// The error for an interrupted wait: "job 7 (apply) continues; 'vgpuctl jobs --cancel 7' cancels
/// it".
ServiceError interrupted(const std::string& path, const Properties& job) {
    const std::uint64_t number = job_number(path);
    const std::string how = flag_of(job, "CanCancel")
                                ? fmt::format("'vgpuctl jobs --cancel {}' cancels it", number)
                                : "'vgpuctl jobs' shows it; it cannot be cancelled";
    return {"vgpuctl.Interrupted",
            fmt::format("job {} ({}) continues; {}", number, text_of(job, "Kind"), how)};
}

}  // namespace

std::uint64_t job_number(std::string_view path) {
    return text::number_in<std::uint64_t>(path.substr(path.rfind('/') + 1)).value_or(0);
}

Properties wait_for_job(Invocation& invocation, const std::string& path, Until until) {
    const auto begin = std::chrono::steady_clock::now();
    const Interruption interruption;
    Properties last;
    ProgressLine line{ProgressOutput(invocation)};
    const auto on_progress = [&](const Properties& now) {
        const auto passed = std::chrono::steady_clock::now() - begin;
        line.draw(fmt::format("{} {}, {} s", bar_text(real_of(now, "Progress")),
                              text_of(now, "Step"),
                              std::chrono::duration_cast<std::chrono::seconds>(passed).count()));
        last = now;
        return until == Until::Accepted && text_of(now, "State") != "waiting";
    };
    // signals only: the wait continues if the reader of the output is gone
    if (const auto end =
            invocation.service.await_job(path, on_progress, {interruption.fds().front()}))
        return *end;
    throw interrupted(path, last);
}

Properties carry_out(Invocation& invocation, const std::string& path, VfJob job,
                     const Options& options, Until until) {
    const std::string job_path = invocation.service.start_job(path, job, options);
    Properties last = wait_for_job(invocation, job_path, until);
    const std::string state = text_of(last, "State");
    if (state != "failed" && state != "cancelled") return last;
    throw ServiceError(text_of(last, "ErrorName"), text_of(last, "Error"));
}

}  // namespace vgpu::cli
