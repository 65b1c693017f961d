// SPDX-License-Identifier: MIT
//
// IdleTracker: decides when the VF on the engine counts as out of work, and measures for how long
// the VF is idle.
//
// A VF that has worked and runs out of packets is out of work only after a grace period. Otherwise
// a guest that waits for the end of each packet before it submits the next packet would lose its
// time slice after every packet. A VF that has had no work since its time slice began gets no
// grace, because its guest is not in such a sequence of packets.
//
// A worker is "inside" the VF while it may touch the VF's state (engine.h). Call all functions with
// the engine's lock (Engine::mutex_) held, except worked(), which needs no lock.
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
    /// Call when no worker is inside the VF and the VF has no work. Continues the current idle
    /// period if workers have found no work since its start; else starts an idle period.
    void found_no_work(Nanoseconds now) {
        if (!is_idle_.exchange(true)) {
            idle_since_ = now;
            is_reported_ = false;
        }
        if (is_reported_ && !reported_since_) reported_since_ = now;
    }
    /// Time left until the idle period must be reported; zero or less: report it now. nullopt if
    /// there is no idle period, or if the period was reported.
    [[nodiscard]] std::optional<Nanoseconds> left(Nanoseconds now) const {
        if (!is_idle_ || is_reported_) return std::nullopt;
        return has_worked_ ? idle_since_ + grace_ - now : Nanoseconds::zero();
    }
    /// Call when the idle period is reported. The period then counts in idle_time() from its start,
    /// so the grace counts, too.
    void report() {
        is_reported_ = true;
        reported_since_ = idle_since_;
    }
    /// Call when a worker looks for work again, or when the time slice ends. Adds the time of a
    /// reported period to idle_time().
    void end_idle(Nanoseconds now) {
        if (reported_since_) idle_time_ += now - *reported_since_;
        reported_since_.reset();
    }
    /// Sum of the reported idle time of this time slice, up to the last end_idle().
    [[nodiscard]] Nanoseconds idle_time() const { return idle_time_; }

private:
    const Nanoseconds grace_;
    std::atomic<bool> is_idle_{false};  ///< true if the VF has had no work since idle_since_
    std::atomic<bool> has_worked_{false};
    Nanoseconds idle_since_{};
    bool is_reported_ = false;  ///< true if this idle period was reported
    /// Start of the reported idle time that idle_time_ does not contain yet; nullopt if none.
    std::optional<Nanoseconds> reported_since_;
    Nanoseconds idle_time_{};
};

}  // namespace vgpu::softgpu::cp
