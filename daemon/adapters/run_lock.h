// SPDX-License-Identifier: MIT
//
// RunLock: a lock that lets only one vgpud at a time use a run directory or a state directory. The
// lock is a flock(2) on a file that contains the holder's pid. The lock ends with the RunLock
// object or the process. main.cpp locks both directories before it reads the state.
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
    /// destroy a state that they share. If the lock file can be neither made nor opened, as on a
    /// read-only disk, locks the directory itself. Errors as take().
    static Result<RunLock> lock_state(const std::string& state_dir);

private:
    explicit RunLock(UniqueFd fd) : fd_(std::move(fd)) {}

    UniqueFd fd_;
};

}  // namespace vgpu::daemon::adapters
