// SPDX-License-Identifier: MIT
//
// ServiceAccount: the engine time that each VF received, in total and in a window. The window is
// the last 10 s before the end of the newest run: 100 buckets of 100 ms, so memory is bounded. The
// input is RUN events and, after lost events, the increase of the PF core's counters. Owned by
// GpuSchedule; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>

namespace vgpu::daemon {

/// A run counts as a whole in the bucket in which it ends, even if it is longer than 100 ms.
class ServiceAccount {
public:
    static constexpr std::int64_t kBucketNs = 100'000'000;
    static constexpr std::size_t kBuckets = 100;

    /// Adds a run of `ns`. `end_ns`: end of the run, by vgpud's Clock.
    void add(std::uint32_t vf, std::int64_t ns, std::int64_t end_ns);
    /// Adds service from lost events, but only to the total, because the times of the runs are
    /// unknown.
    void add_missed(std::uint32_t vf, std::int64_t ns) { totals_[vf] += ns; }
    void forget(std::uint32_t vf);
    /// Empties the window and keeps the totals, after a restart of the device or the PF core.
    void restart_window();

    [[nodiscard]] std::int64_t total_ns(std::uint32_t vf) const;
    /// Service of `vf` / service of all VFs, 0..1; 0 if there was no service. Idle time does not
    /// count.
    [[nodiscard]] double share_total(std::uint32_t vf) const;
    /// As share_total(), but only for the service in the window.
    [[nodiscard]] double share_window(std::uint32_t vf) const;

private:
    struct Bucket {
        std::int64_t number = -1;  ///< start of the bucket / kBucketNs; -1: unused
        std::map<std::uint32_t, std::int64_t> service_ns;  ///< by VF
    };

    std::array<Bucket, kBuckets> buckets_;
    std::int64_t newest_ = -1;                      ///< largest bucket number so far
    std::map<std::uint32_t, std::int64_t> totals_;  ///< total_ns(), by VF
};

}  // namespace vgpu::daemon
