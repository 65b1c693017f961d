// SPDX-License-Identifier: MIT
//
// await_soon(): waits for a condition that another thread fulfils within microseconds.
#pragma once

#include <chrono>
#include <thread>

namespace vgpu::softgpu {

/// Returns when `is_done()` is true. Spins for a moment, then sleeps: the host may have preempted
/// the other thread, and a real-time thread that spins or yields would keep that thread off the CPU
/// for ever.
template <class Condition> void await_soon(const Condition& is_done) {
    constexpr int kSpins = 200;
    constexpr std::chrono::microseconds kNap{20};
    for (int i = 0; i < kSpins; ++i)
        if (is_done()) return;
    while (!is_done()) std::this_thread::sleep_for(kNap);
}

}  // namespace vgpu::softgpu
