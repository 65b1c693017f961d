// SPDX-License-Identifier: MIT
//
// BusySince: the time at which the io thread began its present piece of work (for example a message
// or a posted function). If the time is long ago, the io thread probably waits for a client's
// reply, or for a lock whose holder waits for a client's reply. Meanwhile, all other clients wait,
// too. The io thread writes the time. Threads that are about to wait for a client's reply read it,
// to find out whether their wait may delay other clients (client_memory.h).
#pragma once

#include <atomic>
#include <chrono>

namespace vgpu::softgpu::vfio_user {

class BusySince {
public:
    using Clock = std::chrono::steady_clock;

    /// Call when the io thread begins a piece of work.
    void begin(Clock::time_point now) { since_ = now.time_since_epoch().count(); }
    /// Call when the io thread has no more work.
    void end() { since_ = kNone; }

    /// True if the present piece of work began at least `time` before `now`.
    [[nodiscard]] bool has_lasted(Clock::duration time, Clock::time_point now) const {
        const Clock::rep since = since_;
        return since != kNone && now.time_since_epoch() - Clock::duration(since) >= time;
    }

private:
    static constexpr Clock::rep kNone = 0;
    std::atomic<Clock::rep> since_{kNone};
};

}  // namespace vgpu::softgpu::vfio_user
