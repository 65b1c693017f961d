// SPDX-License-Identifier: MIT
//
// IdleTracker: when the VF on the engine counts as out of work, and how long it was.
//
// A VF that has worked and runs dry is out of work only after the grace: a guest that waits for
// each packet before it submits the next would otherwise give up its slice with every packet. A VF
// that had nothing to do since its stay began has no such guest and gets no grace.
//
// Guarded by the engine's lock, but for worked().
#pragma once

#include <atomic>
#include <optional>

#include "pf-driver/softgpu/base/clock.h"

namespace vgpu::softgpu::cp {

class IdleTracker {
public:
    explicit IdleTracker(Nanoseconds grace) : grace_(grace) {}

    /// A stay begins.
    void begin() {
        is_dry_ = false;
        has_worked_ = false;
        rests_since_.reset();
        rested_ = {};
    }
    /// A worker inside has done something; any thread.
    void worked() {
        has_worked_ = true;
        is_dry_ = false;
    }
    /// Nobody is inside or has anything to do. Woken for nothing, a rest goes on.
    void found_dry(Nanoseconds now) {
        if (!is_dry_.exchange(true)) {
            dry_since_ = now;
            is_told_ = false;
        }
        if (is_told_ && !rests_since_) rests_since_ = now;
    }
    /// Time until the dry spell is to be told, zero or less: now; nullopt: there is none, or it was
    /// told.
    [[nodiscard]] std::optional<Nanoseconds> left(Nanoseconds now) const {
        if (!is_dry_ || is_told_) return std::nullopt;
        return has_worked_ ? dry_since_ + grace_ - now : Nanoseconds::zero();
    }
    /// The dry spell is being told: it counts as rest from its beginning.
    void tell() {
        is_told_ = true;
        rests_since_ = dry_since_;
    }
    /// Somebody looks for work again.
    void end_rest(Nanoseconds now) {
        if (rests_since_) rested_ += now - *rests_since_;
        rests_since_.reset();
    }
    /// In this stay, without a rest that lasts.
    [[nodiscard]] Nanoseconds rested() const { return rested_; }

private:
    const Nanoseconds grace_;
    std::atomic<bool> is_dry_{false};  ///< nothing has moved since dry_since_
    std::atomic<bool> has_worked_{false};
    Nanoseconds dry_since_{};
    bool is_told_ = false;                    ///< in this dry spell
    std::optional<Nanoseconds> rests_since_;  ///< told, and nobody looks for work
    Nanoseconds rested_{};
};

}  // namespace vgpu::softgpu::cp
