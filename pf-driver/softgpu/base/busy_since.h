// SPDX-License-Identifier: MIT
//
// BusySince: the time at which a piece of work began for which all clients may have to wait: the io
// thread's present message or posted function, or a park of the engine (cp/engine.h). If the time
// is long ago, the work probably waits for a client's reply, or for a lock whose holder waits for a
// client's reply. Threads that are about to wait for a client's reply read the time, to find out
// whether their wait may delay other clients (vfio_user/client_memory.h).
#pragma once

#include <atomic>
#include <chrono>

namespace vgpu::softgpu {

class BusySince {
public:
    using Clock = std::chrono::steady_clock;

    /// Call when a piece of work begins.
    void begin(Clock::time_point now) { since_ = now.time_since_epoch().count(); }
    /// Call when there is no more work.
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

}  // namespace vgpu::softgpu
