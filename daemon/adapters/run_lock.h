// SPDX-License-Identifier: MIT
//
// RunLock ensures that at most one vgpud uses a run directory or a state directory. The lock is
// flock(2), so it ends with the process in any case; the file names the holder for the error
// message. main.cpp takes it once, before it touches anything else.
#pragma once

#include "daemon/adapters/unique_fd.h"
#include "daemon/ports/result.h"

#include <string>

namespace vgpu::daemon::adapters {

class RunLock {
public:
    /// AlreadyRunning, with the holder's pid, if another process has it.
    /// Held as long as the RunLock exists. System if the file cannot be made.
    static Result<RunLock> take(const std::string& run_dir);
    /// The same for the state directory; works on a read-only or full disk.
    /// Two vgpud with different run directories but one state directory would destroy it.
    static Result<RunLock> take_state(const std::string& state_dir);

private:
    explicit RunLock(UniqueFd fd) : fd_(std::move(fd)) {}

    UniqueFd fd_;
};

}  // namespace vgpu::daemon::adapters
