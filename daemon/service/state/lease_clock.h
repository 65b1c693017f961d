// SPDX-License-Identifier: MIT
//
// LeaseClock: the time for the end of leases and the age of claims, in seconds. Starts from the
// wall clock and then counts CLOCK_BOOTTIME, so that steps of the wall clock have no effect. Every
// change of a GPU's state file records a reading. A restarted vgpud continues the count; after a
// reboot the count continues from the last recorded reading. The time between that reading and the
// boot does not count, so a lease is not shortened while the host is off. Any thread may call it.
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
    LeaseClock(const Clock& clock, const std::optional<LeaseTime>& recorded);

    [[nodiscard]] UnixTime now() const;
    /// Reading at the start of the current boot. A claim with this reading or an earlier one is
    /// from before the boot.
    [[nodiscard]] UnixTime boot() const { return base_; }
    [[nodiscard]] LeaseTime record() const {
        return {.boot = boot_, .base = base_, .reading = now()};
    }
    /// Converts the reading `time` to the time of the wall clock, for display; 0 stays 0. Ignores
    /// steps of the wall clock of up to 2 s, so that the rounding of the two clocks does not change
    /// the result.
    [[nodiscard]] UnixTime wall_time(UnixTime time) const;

private:
    const Clock& clock_;
    std::string boot_;  ///< id of the current boot
    UnixTime base_{0};  ///< reading at the start of the current boot
    /// Wall clock less reading, as wall_time() last used it.
    mutable std::atomic<std::int64_t> wall_ahead_s_{0};
};

}  // namespace vgpu::daemon
