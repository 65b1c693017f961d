// SPDX-License-Identifier: MIT
//
// LeaseClock: the clock for the end of leases and the age of claims, in seconds. Its first reading
// is the time of the wall clock. From then on it counts CLOCK_BOOTTIME, so that steps of the wall
// clock have no effect. Every change of a GPU's state file records a reading. A restarted vgpud
// continues the count. After a reboot, the count continues from the last recorded reading. The time
// from this reading to the boot does not count, so a lease does not run while the host is off. Any
// thread may call a LeaseClock.
#pragma once

#include "daemon/ports/clock.h"
#include "daemon/service/vf/ownership.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

namespace vgpu::daemon {

/// The recorded state of a LeaseClock.
struct LeaseTime {
    std::string boot;     ///< id of the boot to which `base` belongs
    UnixTime base{0};     ///< reading at the start of that boot
    UnixTime reading{0};  ///< last recorded reading

    bool operator==(const LeaseTime&) const = default;
};

class LeaseClock {
public:
    /// `recorded`: the latest state in the state files; none at the first start of vgpud.
    LeaseClock(const Clock& clock, const std::optional<LeaseTime>& recorded);

    [[nodiscard]] UnixTime now() const;
    /// Reading at the start of the current boot. A claim whose OwnerRecord::since is not later was
    /// neither made nor renewed in this boot.
    [[nodiscard]] UnixTime boot() const { return base_; }
    /// The state to record now.
    [[nodiscard]] LeaseTime record() const {
        return {.boot = boot_, .base = base_, .reading = now()};
    }
    /// Converts the reading `time` to seconds since 1970 by the wall clock, for display; 0 stays 0.
    /// Ignores steps of the wall clock of up to 2 s. Otherwise the result would jitter, because
    /// both clocks are rounded to seconds.
    [[nodiscard]] UnixTime wall_time(UnixTime time) const;

private:
    const Clock& clock_;
    std::string boot_;  ///< id of the current boot
    UnixTime base_{0};  ///< reading at the start of the current boot
    /// Wall clock − reading, as wall_time() last used it.
    mutable std::atomic<std::int64_t> wall_ahead_s_{0};
};

}  // namespace vgpu::daemon
