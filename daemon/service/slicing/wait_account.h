// SPDX-License-Identifier: MIT
//
// WaitAccount: how long each VF had work but not the engine. A VF waits from its wake to its next
// run, and from the end of a run to its next run, unless the VF was idle at that end. The caller
// reports runs when they end. After lost events, the current waits do not count. Owned by GpuModel;
// one thread.
#pragma once

#include "daemon/ports/clock.h"
#include "daemon/service/slicing/wait_histogram.h"

#include <cstdint>
#include <map>
#include <optional>

namespace vgpu::daemon {

/// The caller reports a throttled VF as idle, because such a VF waits for tokens and not for the
/// engine.
class WaitAccount {
public:
    void on_wake(std::uint32_t vf, Nanoseconds at);
    /// The VF in the engine has no more work; its run is reported later.
    void on_idle(std::uint32_t vf) { vfs_[vf].has_work = false; }
    /// `vf`, which is not in the engine, has no more work.
    void on_inactive_idle(std::uint32_t vf, Nanoseconds at);
    void on_run(std::uint32_t vf, Nanoseconds ns, Nanoseconds end);
    /// Events were lost, so it is not known which VFs wait.
    void on_lost();
    void forget(std::uint32_t vf) { vfs_.erase(vf); }

    /// Sum of the VF's finished waits.
    [[nodiscard]] Nanoseconds waited(std::uint32_t vf) const;
    /// A time that at least the fraction `part` (0..1) of the recent waits did not exceed; 0 if
    /// there were no waits.
    [[nodiscard]] Nanoseconds quantile(std::uint32_t vf, double part, Nanoseconds now) const;

private:
    struct Vf {
        Nanoseconds waited{0};
        std::optional<Nanoseconds> since;  ///< start of the current wait
        bool has_work = false;
        WaitHistogram waits{};
    };
    static void end_wait(Vf& vf, Nanoseconds at);

    std::map<std::uint32_t, Vf> vfs_;
};

}  // namespace vgpu::daemon
