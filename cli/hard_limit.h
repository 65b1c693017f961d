// SPDX-License-Identifier: MIT
//
// HardLimit: ends the process with a message and an exit code after a time limit. For waits that
// have no limit themselves (a bus, a disk).
#pragma once

#include <chrono>
#include <string>

namespace vgpu::cli {

/// Uses SIGALRM and alarm(2), so at most one may exist. Destroy it after the wait.
class HardLimit {
public:
    /// After `limit`, writes `words` (at most 511 bytes) to standard error and calls _exit(), so no
    /// destructor runs.
    HardLimit(std::chrono::seconds limit, const std::string& words, int exit_code);
    ~HardLimit();
    HardLimit(const HardLimit&) = delete;
    HardLimit& operator=(const HardLimit&) = delete;
};

}  // namespace vgpu::cli
