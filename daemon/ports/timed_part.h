// SPDX-License-Identifier: MIT
//
// TimedPart: a part of vgpud's main loop that has work at certain times. main.cpp calls step() and
// next_step() of all parts in one list, so that every part that is stepped is also woken in time.
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

    /// Does what is due. Called in every iteration.
    virtual void step() = 0;
    /// Time (CLOCK_MONOTONIC) at which step() must be called even if nothing else happens; none if
    /// the part has no work to come.
    [[nodiscard]] virtual std::optional<Nanoseconds> next_step() const = 0;
};

}  // namespace vgpu::daemon
