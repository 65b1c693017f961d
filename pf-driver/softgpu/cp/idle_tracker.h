// SPDX-License-Identifier: MIT
//
// IdleTracker: decides when the VF on the engine counts as out of work, and measures for how long.
//
// A VF that has worked and runs out of packets is out of work only after a grace period. Otherwise
// a guest that waits for each packet before it submits the next would lose its slice with every
// packet. A VF that has had no work since its time slice began has no such guest and gets no grace.
//
// Guarded by the engine's lock, except worked().
#pragma once

#include <atomic>
#include <optional>

#include "pf-driver/softgpu/base/clock.h"

namespace vgpu::softgpu::cp {

class IdleTracker {
public:
    explicit IdleTracker(Nanoseconds grace) : grace_(grace) {}

    /// Call when a time slice begins.
    void begin() {
        is_idle_ = false;
        has_worked_ = false;
        reported_since_.reset();
        idle_time_ = {};
    }
    /// Call when a worker inside the VF has done work; any thread.
    void worked() {
        has_worked_ = true;
        is_idle_ = false;
    }
    /// Call when no worker is inside the VF and the VF has no work. After a spurious wake the idle
    /// period continues.
    void found_no_work(Nanoseconds now) {
        if (!is_idle_.exchange(true)) {
            idle_since_ = now;
            is_reported_ = false;
        }
        if (is_reported_ && !reported_since_) reported_since_ = now;
    }
    /// Time until the idle period is to be reported; zero or less: now. nullopt if there is no
    /// idle period, or if it was reported.
    [[nodiscard]] std::optional<Nanoseconds> left(Nanoseconds now) const {
        if (!is_idle_ || is_reported_) return std::nullopt;
        return has_worked_ ? idle_since_ + grace_ - now : Nanoseconds::zero();
    }
    /// Call when the idle period is reported: all of it counts in idle_time(), from its beginning.
    void report() {
        is_reported_ = true;
        reported_since_ = idle_since_;
    }
    /// Call when a worker looks for work again, or the time slice ends.
    void end_idle(Nanoseconds now) {
        if (reported_since_) idle_time_ += now - *reported_since_;
        reported_since_.reset();
    }
    /// Sum of the reported idle periods of this time slice, without a period that still lasts.
    [[nodiscard]] Nanoseconds idle_time() const { return idle_time_; }

private:
    const Nanoseconds grace_;
    std::atomic<bool> is_idle_{false};  ///< true if the VF has had no work since idle_since_
    std::atomic<bool> has_worked_{false};
    Nanoseconds idle_since_{};
    bool is_reported_ = false;  ///< true if this idle period was reported
    /// Start of a reported idle period that still lasts.
    std::optional<Nanoseconds> reported_since_;
    Nanoseconds idle_time_{};
};

}  // namespace vgpu::softgpu::cp
