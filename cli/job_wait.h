// SPDX-License-Identifier: MIT
//
// Waits for the end of a job of vgpud, with a line of progress on a terminal. SIGINT and SIGTERM
// end the wait, not the job: vgpuctl then says how to cancel the job and exits with 130.
#pragma once

#include "cli/verbs.h"

#include <string>

namespace vgpu::cli {

/// The N in ".../job/N"; 0 for "".
std::uint64_t job_number(std::string_view path);

/// Accepted (for --no-wait): wait until the job can no longer be refused.
enum class Until { Accepted, Over };

/// Returns the last properties of the job at `path`, whether or not it succeeded.
Properties wait_for_job(Invocation& invocation, const std::string& path, Until until = Until::Over);

/// Begins `job` for the VF at `path`, waits for it, and throws the job's error if it failed or was
/// cancelled.
Properties carry_out(Invocation& invocation, const std::string& path, VfJob job,
                     const Options& options, Until until = Until::Over);

}  // namespace vgpu::cli
