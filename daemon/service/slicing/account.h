// SPDX-License-Identifier: MIT
//
// ServiceAccount: the engine time that each VF received, in total and in a window, the ten seconds
// up to the newest run. Its input is RUN events and, after lost events, the increase of the PF
// core's counters. Bounded memory: 100 buckets of 100 ms. Owned by GpuSchedule; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>

namespace vgpu::daemon {

/// A run counts in the bucket in which it ends, even if it is longer than 100 ms.
class ServiceAccount {
public:
    static constexpr std::int64_t kBucketNs = 100'000'000;
    static constexpr std::size_t kBuckets = 100;

    /// `end_ns`: end of the run, by vgpud's Clock.
    void add(std::uint32_t vf, std::int64_t ns, std::int64_t end_ns);
    /// Adds service of lost events, of which only the sum is known.
    void add_missed(std::uint32_t vf, std::int64_t ns) { totals_[vf] += ns; }
    void forget(std::uint32_t vf);
    /// Empties the window and keeps the totals, after a restart of the device or the PF core.
    void restart_window();

    [[nodiscard]] std::int64_t total_ns(std::uint32_t vf) const;
    /// Fraction 0..1 of the service of all VFs, not of time: idle time counts for no VF.
    [[nodiscard]] double share_total(std::uint32_t vf) const;
    /// As share_total(), for the window.
    [[nodiscard]] double share_window(std::uint32_t vf) const;

private:
    struct Bucket {
        std::int64_t number = -1;  ///< time of the bucket in units of kBucketNs; -1: unused
        std::map<std::uint32_t, std::int64_t> service_ns;
    };

    std::array<Bucket, kBuckets> buckets_;
    std::int64_t newest_ = -1;  ///< largest bucket number so far
    std::map<std::uint32_t, std::int64_t> totals_;
};

}  // namespace vgpu::daemon
