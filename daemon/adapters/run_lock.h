// SPDX-License-Identifier: MIT
//
// RunLock: ensures that at most one vgpud uses a run or state directory. Uses flock(2), which ends
// with the process. The file names the holder. main.cpp takes the locks first.
#pragma once

#include "daemon/adapters/unique_fd.h"
#include "daemon/ports/result.h"

#include <string>

namespace vgpu::daemon::adapters {

class RunLock {
public:
    /// Held while the RunLock exists. AlreadyRunning, with the holder's pid; System.
    static Result<RunLock> take(const std::string& run_dir);
    /// Locks the state directory; works on a read-only or full disk. Otherwise two vgpud with
    /// different run directories could destroy a shared state.
    static Result<RunLock> take_state(const std::string& state_dir);

private:
    explicit RunLock(UniqueFd fd) : fd_(std::move(fd)) {}

    UniqueFd fd_;
};

}  // namespace vgpu::daemon::adapters
