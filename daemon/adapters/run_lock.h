// SPDX-License-Identifier: MIT
//
// RunLock ensures that one vgpud at most uses a run or state directory, by flock(2), which ends
// with the process. The file names the holder. Taken first by main.cpp.
#pragma once

#include "daemon/adapters/unique_fd.h"
#include "daemon/ports/result.h"

#include <string>

namespace vgpu::daemon::adapters {

class RunLock {
public:
    /// Held while the RunLock exists. AlreadyRunning, with the holder's pid; System.
    static Result<RunLock> take(const std::string& run_dir);
    /// The state directory; works on a read-only or full disk. Two vgpud with different run
    /// directories could otherwise destroy a shared state.
    static Result<RunLock> take_state(const std::string& state_dir);

private:
    explicit RunLock(UniqueFd fd) : fd_(std::move(fd)) {}

    UniqueFd fd_;
};

}  // namespace vgpu::daemon::adapters
