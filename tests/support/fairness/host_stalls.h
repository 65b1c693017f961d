// SPDX-License-Identifier: MIT
//
// HostStalls: how long the machine under the test stood still. On each CPU a real-time thread
// sleeps for a millisecond at a time; what it oversleeps is time in which that CPU ran nobody (a
// hypervisor took it away), so no schedule can be kept in it. Without the right to real-time
// threads nothing is measured: the worst stall is then 0, and nothing is excused.
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

    /// The most that one CPU stood still within kWindow, since the start.
    /// A stall is repaid over the next run tables; one that comes before adds to it.
    [[nodiscard]] std::int64_t worst_ns() const { return worst_ns_; }

    static constexpr std::chrono::milliseconds kWindow{250};

private:
    void watch(unsigned cpu);

    std::atomic<bool> is_over_{false};
    std::atomic<std::int64_t> worst_ns_{0};
    std::vector<std::thread> threads_;
};

}  // namespace vgpu::test
