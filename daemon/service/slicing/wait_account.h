// SPDX-License-Identifier: MIT
//
// WaitAccount: how long each VF had work but not the engine, from the same events the shares are
// counted from. A VF waits from its wake until its next run begins, and again from the end of a run
// until the next one, unless it went idle in that run. Runs are reported when they are over; times
// are those of the events. Lost events end a wait uncounted. Owned by GpuModel; one thread.
#pragma once

#include "daemon/ports/clock.h"
#include "daemon/service/slicing/wait_histogram.h"

#include <cstdint>
#include <map>
#include <optional>

namespace vgpu::daemon {

/// Waiting for tokens is not waiting for the engine: a VF that is held back is told as idle.
class WaitAccount {
public:
    void on_wake(std::uint32_t vf, Nanoseconds at);
    /// The VF in the engine has run out of work; its run is still to be reported.
    void on_idle(std::uint32_t vf) { vfs_[vf].has_work = false; }
    /// A VF off the engine has no work (any more).
    void on_parked_idle(std::uint32_t vf, Nanoseconds at);
    /// `vf` ran for `ns` until `end`.
    void on_run(std::uint32_t vf, Nanoseconds ns, Nanoseconds end);
    /// Nothing is known of who waits now.
    void on_lost();
    void forget(std::uint32_t vf) { vfs_.erase(vf); }

    [[nodiscard]] Nanoseconds waited(std::uint32_t vf) const;
    /// No less than `part` of the waits of late were shorter; 0 if there were none.
    [[nodiscard]] Nanoseconds quantile(std::uint32_t vf, double part, Nanoseconds now) const;

private:
    /// `since` is when the present wait began: its wake, or the end of its last run.
    struct Vf {
        Nanoseconds waited{0};
        std::optional<Nanoseconds> since;  ///< it waits
        bool has_work = false;
        WaitHistogram waits{};
    };
    static void end_wait(Vf& vf, Nanoseconds at);

    std::map<std::uint32_t, Vf> vfs_;
};

}  // namespace vgpu::daemon
