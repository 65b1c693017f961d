// SPDX-License-Identifier: MIT
//
// HardLimit ends this process with a message and an exit code once a time limit is over. It bounds
// waits that have no limit, such as a bus that accepts no connection, or a disk. At most one exists
// at a time, because it uses SIGALRM.
#pragma once

#include <chrono>
#include <string>

namespace vgpu::cli {

/// Uses SIGALRM and alarm(2), which nothing else in the process may use. Destroy it as soon as the
/// wait is over.
class HardLimit {
public:
    /// Writes `words`, cut at 511 bytes, and a newline to standard error, then ends the process by
    /// _exit(): no destructor runs, no buffer is written.
    HardLimit(std::chrono::seconds limit, const std::string& words, int exit_code);
    ~HardLimit();
    HardLimit(const HardLimit&) = delete;
    HardLimit& operator=(const HardLimit&) = delete;
};

}  // namespace vgpu::cli
