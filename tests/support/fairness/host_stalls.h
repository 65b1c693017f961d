// SPDX-License-Identifier: MIT
//
// HostStalls: measures how long the test's machine stood still. On each CPU a real-time thread
// sleeps for a millisecond at a time. While it oversleeps, a hypervisor has taken the CPU away, and
// no schedule can be kept. Without the right to real-time threads, nothing is measured and
// worst_ns() is 0, so that a test excuses nothing.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace vgpu::test {

class HostStalls {
public:
    HostStalls();
    ~HostStalls();
    HostStalls(const HostStalls&) = delete;
    HostStalls& operator=(const HostStalls&) = delete;

    /// Longest time that one CPU stood still within kWindow, since the start. Stalls within kWindow
    /// are added up, because the scheduler makes up for a stall over the next run tables.
    [[nodiscard]] std::int64_t worst_ns() const { return worst_ns_; }

    static constexpr std::chrono::milliseconds kWindow{250};

private:
    void watch(unsigned cpu);

    std::atomic<bool> is_over_{false};
    std::atomic<std::int64_t> worst_ns_{0};
    std::vector<std::thread> threads_;
};

}  // namespace vgpu::test
