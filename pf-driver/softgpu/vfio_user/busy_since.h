// SPDX-License-Identifier: MIT
//
// BusySince: the time at which the io thread began its present piece of work (a message, an event
// of a descriptor or a posted function). If that was long ago, the io thread is waiting: for a
// client whose memory it reads, or for a lock whose holder waits for a client. All other clients
// wait meanwhile. The io thread writes the time; threads that wait for a client read it
// (ClientMemory).
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
