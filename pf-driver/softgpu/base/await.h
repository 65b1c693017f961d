// SPDX-License-Identifier: MIT
//
// Waiting for what another thread does within microseconds.
#pragma once

#include <chrono>
#include <thread>

namespace vgpu::softgpu {

/// Until `is_done`. Spins for a moment, then sleeps: the other thread may have been put aside, and
/// a thread that spins or yields in real time would keep it from the CPU for ever.
template <class Condition> void await_soon(const Condition& is_done) {
    constexpr int kSpins = 200;
    constexpr std::chrono::microseconds kNap{20};
    for (int i = 0; i < kSpins; ++i)
        if (is_done()) return;
    while (!is_done()) std::this_thread::sleep_for(kNap);
}

}  // namespace vgpu::softgpu
