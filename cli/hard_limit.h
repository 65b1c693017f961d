// SPDX-License-Identifier: MIT
//
// HardLimit: ends this process with words and an exit code if it is still there when the time is
// up, whatever it waits for: a bus that takes no connection, a disk. One at a time; the time is
// that of SIGALRM.
#pragma once

#include <chrono>
#include <string>

namespace vgpu::cli {

/// Uses SIGALRM and alarm(2): nothing else in the process may. Destroy it as soon as the waiting
/// is over.
class HardLimit {
public:
    /// `words` go to standard error with a newline, cut at 511 bytes. The process then ends by
    /// _exit(): no destructor runs, no buffer is written.
    HardLimit(std::chrono::seconds limit, const std::string& words, int exit_code);
    ~HardLimit();
    HardLimit(const HardLimit&) = delete;
    HardLimit& operator=(const HardLimit&) = delete;
};

}  // namespace vgpu::cli
