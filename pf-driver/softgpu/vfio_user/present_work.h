// SPDX-License-Identifier: MIT
//
// PresentWork: since when the io thread has been at its present piece of work: a message, a posted
// function. Long means that it waits for somebody, be it a client that it reads memory of or a lock
// that another thread holds while it waits for one; all other clients wait meanwhile. Written by
// the io thread, read by threads that wait for a client (ClientMemory).
#pragma once

#include <atomic>
#include <chrono>

namespace vgpu::softgpu::vfio_user {

class PresentWork {
public:
    using Clock = std::chrono::steady_clock;

    void begin(Clock::time_point now) { since_ = now.time_since_epoch().count(); }
    /// Nothing to do.
    void rest() { since_ = kNone; }

    [[nodiscard]] bool has_lasted(Clock::duration time, Clock::time_point now) const {
        const Clock::rep since = since_;
        return since != kNone && now.time_since_epoch() - Clock::duration(since) >= time;
    }

private:
    static constexpr Clock::rep kNone = 0;
    std::atomic<Clock::rep> since_{kNone};
};

}  // namespace vgpu::softgpu::vfio_user
