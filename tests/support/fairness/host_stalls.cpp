// SPDX-License-Identifier: MIT
#include "tests/support/fairness/host_stalls.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <deque>

namespace vgpu::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kNap(1);
/// Any timer may be late by less than this, so less is not counted.
constexpr std::chrono::nanoseconds kCounts = std::chrono::milliseconds(1);
constexpr int kPriority = 3;  // above the priority of the device's threads

bool become_real_time_on(unsigned cpu) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(cpu, &cpus);
    const sched_param parameters{.sched_priority = kPriority};
    return pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus) == 0 &&
           pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters) == 0;
}

}  // namespace

HostStalls::HostStalls() {
    for (unsigned cpu = 0; cpu < std::thread::hardware_concurrency(); ++cpu)
        threads_.emplace_back([this, cpu] { watch(cpu); });
}

HostStalls::~HostStalls() {
    is_over_ = true;
    for (auto& thread : threads_) thread.join();
}

void HostStalls::watch(unsigned cpu) {
    if (!become_real_time_on(cpu)) return;
    struct Stall {
        Clock::time_point at;
        std::int64_t ns;
    };
    std::deque<Stall> stalls;
    std::int64_t sum_ns = 0;
    while (!is_over_) {
        const auto before = Clock::now();
        std::this_thread::sleep_for(kNap);
        const std::int64_t overslept = (Clock::now() - before - kNap).count();
        if (overslept < kCounts.count()) continue;
        stalls.push_back({before, overslept});
        sum_ns += overslept;
        for (; before - stalls.front().at > kWindow; stalls.pop_front())
            sum_ns -= stalls.front().ns;
        auto worst = worst_ns_.load();
        while (sum_ns > worst && !worst_ns_.compare_exchange_weak(worst, sum_ns)) {
        }
    }
}

}  // namespace vgpu::test
