// SPDX-License-Identifier: MIT
//
// IdleTracker: decides when the VF on the engine counts as out of work, and measures for how long.
//
// A VF that has worked and runs out of packets is out of work only after a grace period. Otherwise
// a guest that waits for each packet before it submits the next would lose its slice with every
// packet. A VF that has had no work since its stay began has no such guest and gets no grace.
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

    /// Call when a stay begins.
    void begin() {
        is_idle_ = false;
        has_worked_ = false;
        rests_since_.reset();
        rested_ = {};
    }
    /// A worker inside has done work; any thread.
    void worked() {
        has_worked_ = true;
        is_idle_ = false;
    }
    /// No worker is inside the VF, and the VF has no work. After a spurious wake the idle period
    /// continues.
    void found_no_work(Nanoseconds now) {
        if (!is_idle_.exchange(true)) {
            idle_since_ = now;
            is_notified_ = false;
        }
        if (is_notified_ && !rests_since_) rests_since_ = now;
    }
    /// Time until the idle period is to be reported; zero or less: now. nullopt if there is no
    /// idle period, or if it was reported.
    [[nodiscard]] std::optional<Nanoseconds> left(Nanoseconds now) const {
        if (!is_idle_ || is_notified_) return std::nullopt;
        return has_worked_ ? idle_since_ + grace_ - now : Nanoseconds::zero();
    }
    /// The idle period is being reported: all of it counts in rested(), from its beginning.
    void report() {
        is_notified_ = true;
        rests_since_ = idle_since_;
    }
    /// A worker looks for work again, or the stay ends.
    void end_rest(Nanoseconds now) {
        if (rests_since_) rested_ += now - *rests_since_;
        rests_since_.reset();
    }
    /// Sum of the reported idle periods of this stay, without one that still lasts.
    [[nodiscard]] Nanoseconds rested() const { return rested_; }

private:
    const Nanoseconds grace_;
    std::atomic<bool> is_idle_{false};  ///< no work since idle_since_
    std::atomic<bool> has_worked_{false};
    Nanoseconds idle_since_{};
    bool is_notified_ = false;                ///< this idle period was reported
    std::optional<Nanoseconds> rests_since_;  ///< start of a reported idle period that still lasts
    Nanoseconds rested_{};
};

}  // namespace vgpu::softgpu::cp
