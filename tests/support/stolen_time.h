// SPDX-License-Identifier: MIT
//
// StolenTime: CPU time that a hypervisor took from this machine. A test of shares in real time
// proves nothing while the machine often stands still. Such a test tries again, and is skipped with
// the text of describe() if no quiet time comes. On bare metal nothing is stolen.
#pragma once

#include <chrono>
#include <string>

namespace vgpu::test {

class StolenTime {
public:
    /// Begins to count.
    StolenTime();

    /// Time stolen from all CPUs together, divided by the time since the constructor: 0.02 is 20 ms
    /// of every second. 0 if the kernel does not report it (proc(5), /proc/stat).
    [[nodiscard]] double part() const;
    [[nodiscard]] std::string describe() const;

private:
    std::chrono::steady_clock::time_point since_;
    std::chrono::milliseconds before_;
};

/// Largest part() of a quiet time: a quantum of 2 ms in every 100 ms.
inline constexpr double kMostStolen = 0.02;

}  // namespace vgpu::test
