// SPDX-License-Identifier: MIT
//
// RunLock: ensures that at most one vgpud uses a run or state directory. Uses flock(2): the lock
// lasts as long as the RunLock, and ends with the process. The file names the holder. main.cpp
// takes the locks before it reads the state.
#pragma once

#include "daemon/adapters/unique_fd.h"
#include "daemon/ports/result.h"

#include <string>

namespace vgpu::daemon::adapters {

class RunLock {
public:
    /// Locks the run directory. Errors: AlreadyRunning, with the holder's pid; System.
    static Result<RunLock> take(const std::string& run_dir);
    /// Locks the state directory, because two vgpud with different run directories could otherwise
    /// destroy a state that they share. Works on a read-only or full disk.
    static Result<RunLock> lock_state(const std::string& state_dir);

private:
    explicit RunLock(UniqueFd fd) : fd_(std::move(fd)) {}

    UniqueFd fd_;
};

}  // namespace vgpu::daemon::adapters
