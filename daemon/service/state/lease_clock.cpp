// SPDX-License-Identifier: MIT
#include "daemon/service/state/lease_clock.h"

#include <cstdlib>

namespace vgpu::daemon {

namespace {

/// CLOCK_BOOTTIME in seconds.
UnixTime since_boot(const Clock& clock) {
    return std::chrono::duration_cast<UnixTime>(clock.boot_time());
}

}  // namespace

LeaseClock::LeaseClock(const Clock& clock, const std::optional<LeaseTime>& recorded)
    : clock_(clock), boot_(clock.boot_id()) {
    if (!recorded)
        base_ = clock.unix_time() - since_boot(clock);
    else
        base_ = recorded->boot == boot_ ? recorded->base : recorded->reading;
}

UnixTime LeaseClock::now() const {
    return base_ + since_boot(clock_);
}

UnixTime LeaseClock::wall_time(UnixTime time) const {
    constexpr std::int64_t kSlackS = 2;
    if (time == UnixTime{0}) return time;
    const std::int64_t ahead_s = (clock_.unix_time() - now()).count();
    if (std::abs(ahead_s - wall_ahead_s_.load()) > kSlackS) wall_ahead_s_.store(ahead_s);
    return time + UnixTime{wall_ahead_s_.load()};
}

}  // namespace vgpu::daemon
