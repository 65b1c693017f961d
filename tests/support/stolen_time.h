// SPDX-License-Identifier: MIT
//
// CPU time that a hypervisor kept from this machine. What is judged in real time cannot be judged
// while the machine stands still now and then: such a test tries again, and is skipped with
// describe() if there was no quiet time. On bare metal nothing is ever stolen.
#pragma once

#include <chrono>
#include <string>

namespace vgpu::test {

class StolenTime {
public:
    /// Begins to count.
    StolenTime();

    /// Stolen so far from all CPUs together, in parts of the time that has passed: 0.02 is 20 ms
    /// of every second. 0 where the kernel does not tell (proc(5), /proc/stat).
    [[nodiscard]] double part() const;
    [[nodiscard]] std::string describe() const;

private:
    std::chrono::steady_clock::time_point since_;
    std::chrono::milliseconds before_;
};

/// More than this is no quiet time: a quantum of 2 ms in every 100 ms.
inline constexpr double kMostStolen = 0.02;

}  // namespace vgpu::test
