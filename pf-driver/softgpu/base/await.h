// SPDX-License-Identifier: MIT
//
// await_soon(): waits for a condition that another thread usually fulfils within microseconds.
#pragma once

#include <chrono>
#include <thread>

namespace vgpu::softgpu {

/// Returns when `is_done()` is true. Calls `is_done()` up to kSpins times, then between sleeps of
/// kNap. The sleeps are necessary because the host may have preempted the other thread: a caller
/// with real-time priority that only spins or yields could keep that thread off the CPU for ever.
template <class Condition> void await_soon(const Condition& is_done) {
    constexpr int kSpins = 200;
    constexpr std::chrono::microseconds kNap{20};
    for (int i = 0; i < kSpins; ++i)
        if (is_done()) return;
    while (!is_done()) std::this_thread::sleep_for(kNap);
}

}  // namespace vgpu::softgpu
