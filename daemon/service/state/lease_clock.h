// SPDX-License-Identifier: MIT
//
// LeaseClock: the time by which leases end and claims have an age, in seconds. It begins as the
// wall clock and then counts CLOCK_BOOTTIME, so no step of the wall clock touches it. Its readings
// are on record with every durable change: a vgpud that is started anew goes on, and after a reboot
// it goes on from the last reading on record. What passed between that reading and the boot does
// not count, so a lease is not shortened by the time that a host was off. Any thread.
#pragma once

#include "daemon/ports/clock.h"
#include "daemon/service/vf/ownership.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

namespace vgpu::daemon {

/// What of a LeaseClock is on record.
struct LeaseTime {
    std::string boot;     ///< of which boot `base` is
    UnixTime base{0};     ///< reading at that boot
    UnixTime reading{0};  ///< last one on record

    bool operator==(const LeaseTime&) const = default;
};

class LeaseClock {
public:
    LeaseClock(const Clock& clock, const std::optional<LeaseTime>& recorded);

    [[nodiscard]] UnixTime now() const;
    /// Its reading at this boot: what was claimed no later was claimed before it.
    [[nodiscard]] UnixTime boot() const { return base_; }
    [[nodiscard]] LeaseTime record() const {
        return {.boot = boot_, .base = base_, .reading = now()};
    }
    /// The wall clock's time then, for people; 0 stays 0. It moves only if the wall clock was
    /// stepped, not with every second that one of the two begins earlier.
    [[nodiscard]] UnixTime wall_time(UnixTime time) const;

private:
    const Clock& clock_;
    std::string boot_;
    UnixTime base_{0};
    mutable std::atomic<std::int64_t> wall_ahead_s_{0};
};

}  // namespace vgpu::daemon
