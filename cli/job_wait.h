// SPDX-License-Identifier: MIT
//
// Waits for the end of a job of vgpud, with a line of progress on a terminal. SIGINT and SIGTERM
// end the wait, not the job. vgpuctl then says how to cancel the job, and exits with 130.
#pragma once

#include "cli/verbs.h"

#include <string>

namespace vgpu::cli {

/// The number at the end of a job's path, ".../job/N"; 0 for other texts.
std::uint64_t job_number(std::string_view path);

/// How long to wait.
enum class Until {
    Accepted,  ///< until the job leaves "waiting": vgpud cannot refuse it any more (--no-wait)
    Over,      ///< until the job has ended
};

/// Waits for the job at `path`. Returns its last properties, whether or not the job succeeded. If a
/// signal ends the wait, throws the error vgpuctl.Interrupted.
Properties wait_for_job(Invocation& invocation, const std::string& path, Until until = Until::Over);

/// Begins `job` for the VF at `path`, waits as wait_for_job() does, and returns the job's last
/// properties. Throws the job's error if the job failed or was cancelled.
Properties carry_out(Invocation& invocation, const std::string& path, VfJob job,
                     const Options& options, Until until = Until::Over);

}  // namespace vgpu::cli
