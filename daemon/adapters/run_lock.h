// SPDX-License-Identifier: MIT
//
// RunLock: at most one vgpud per run directory, and one per state directory. The lock is the
// kernel's (flock), so it ends with the process however that dies; the file names the holder for
// the error message. Taken once by main.cpp before anything else is touched.
#pragma once

#include "daemon/adapters/unique_fd.h"
#include "daemon/ports/result.h"

#include <string>

namespace vgpu::daemon::adapters {

class RunLock {
public:
    /// AlreadyRunning, with the holder's pid, if another process has it.
    /// Held as long as the RunLock lives. System if the file cannot be made.
    static Result<RunLock> take(const std::string& run_dir);
    /// The same for the state; also where the disk is read-only or full.
    /// Two vgpud with run directories of their own could share one state directory and would write
    /// over each other.
    static Result<RunLock> take_state(const std::string& state_dir);

private:
    explicit RunLock(UniqueFd fd) : fd_(std::move(fd)) {}

    UniqueFd fd_;
};

}  // namespace vgpu::daemon::adapters
