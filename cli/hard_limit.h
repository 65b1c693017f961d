// SPDX-License-Identifier: MIT
//
// HardLimit: ends the process with a message and an exit code after a time limit. For code that may
// wait without a time limit, such as for a bus or a disk.
#pragma once

#include <chrono>
#include <string>

namespace vgpu::cli {

/// Uses SIGALRM and alarm(2), so at most one HardLimit may exist at a time. The destructor ends the
/// limit.
class HardLimit {
public:
    /// After `limit`, writes a line with `words` (at most 511 bytes) to standard error and calls
    /// _exit(exit_code), so no destructor runs. If the write fails, the exit code is 1.
    HardLimit(std::chrono::seconds limit, const std::string& words, int exit_code);
    ~HardLimit();
    HardLimit(const HardLimit&) = delete;
    HardLimit& operator=(const HardLimit&) = delete;
};

}  // namespace vgpu::cli
