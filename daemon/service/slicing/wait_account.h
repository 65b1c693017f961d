// SPDX-License-Identifier: MIT
//
// WaitAccount: how long each VF had work but not the engine. A wait begins when the VF wakes, or at
// the end of a run after which the VF still has work. It ends when the VF runs, has no more work or
// is throttled. Waits during which events were lost do not count. Owned by GpuModel; one thread.
#pragma once

#include "daemon/ports/clock.h"
#include "daemon/service/slicing/wait_histogram.h"

#include <cstdint>
#include <map>
#include <optional>

namespace vgpu::daemon {

/// The caller reports a throttled VF with on_inactive_idle(), because such a VF waits for tokens
/// and not for the engine.
class WaitAccount {
public:
    /// `vf` has work from `at` on.
    void on_wake(std::uint32_t vf, Nanoseconds at);
    /// `vf`, which is in the engine, has no more work. Call on_run() for its run afterwards.
    void on_idle(std::uint32_t vf) { vfs_[vf].has_work = false; }
    /// `vf`, which is not in the engine, has no more work.
    void on_inactive_idle(std::uint32_t vf, Nanoseconds at);
    /// `vf` ran for `ns` until `end`. Call it when a run is over.
    void on_run(std::uint32_t vf, Nanoseconds ns, Nanoseconds end);
    /// Events were lost, so it is unknown which VFs wait. Drops the current waits.
    void on_lost();
    void forget(std::uint32_t vf) { vfs_.erase(vf); }

    /// Sum of the VF's finished waits.
    [[nodiscard]] Nanoseconds waited(std::uint32_t vf) const;
    /// A time that at least the fraction `part` (0..1) of the recent waits did not exceed; 0 if
    /// there were none. WaitHistogram defines which waits are recent.
    [[nodiscard]] Nanoseconds quantile(std::uint32_t vf, double part, Nanoseconds now) const;

private:
    struct Vf {
        Nanoseconds waited{0};             ///< sum of the finished waits
        std::optional<Nanoseconds> since;  ///< start of the current wait; none: does not wait
        bool has_work = false;
        WaitHistogram waits{};
    };
    static void end_wait(Vf& vf, Nanoseconds at);

    std::map<std::uint32_t, Vf> vfs_;
};

}  // namespace vgpu::daemon
