// SPDX-License-Identifier: MIT
//
// TimedPart: a part of vgpud's main loop that has work at certain times. main.cpp has one list of
// all parts and calls both step() and next_step() of each, so that no part misses its wake-up.
#pragma once

#include "daemon/ports/clock.h"

#include <optional>

namespace vgpu::daemon {

class TimedPart {
public:
    TimedPart() = default;
    virtual ~TimedPart() = default;
    TimedPart(const TimedPart&) = delete;
    TimedPart& operator=(const TimedPart&) = delete;

    /// Does the work that is due. Called in every iteration.
    virtual void step() = 0;
    /// Time (CLOCK_MONOTONIC) at which step() must be called even if nothing else happens; none if
    /// the part has no such time.
    [[nodiscard]] virtual std::optional<Nanoseconds> next_step() const = 0;
};

}  // namespace vgpu::daemon
