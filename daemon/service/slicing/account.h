// SPDX-License-Identifier: MIT
//
// ServiceAccount: engine time each VF received, in total since vgpud began to watch and over the
// last ten seconds of device time. Fed with RUN events only (never the plan) and, after lost
// events, with the difference to the PF core's own counter. Bounded memory: 100 buckets of 100 ms.
// One thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>

namespace vgpu::daemon {

/// Times in ns. A bucket belongs to the end of a run: one that is longer than 100 ms counts in the
/// last.
class ServiceAccount {
public:
    static constexpr std::int64_t kBucketNs = 100'000'000;
    static constexpr std::size_t kBuckets = 100;

    /// `vf` received `ns` of service that ended at `end_ns` of the device's clock.
    void add(std::uint32_t vf, std::int64_t ns, std::int64_t end_ns);
    /// Service that was missed and is known only in sum.
    void add_missed(std::uint32_t vf, std::int64_t ns) { totals_[vf] += ns; }
    void forget(std::uint32_t vf);
    /// The device's clock started anew: the window is empty, the totals stay.
    void restart_window();

    [[nodiscard]] std::int64_t total_ns(std::uint32_t vf) const;
    /// 0..1, of the service of all VFs, not of time: an engine that idles takes from nobody.
    [[nodiscard]] double share_total(std::uint32_t vf) const;
    [[nodiscard]] double share_window(std::uint32_t vf) const;

private:
    struct Bucket {
        std::int64_t number = -1;
        std::map<std::uint32_t, std::int64_t> service_ns;
    };

    std::array<Bucket, kBuckets> buckets_;
    std::int64_t newest_ = -1;
    std::map<std::uint32_t, std::int64_t> totals_;
};

}  // namespace vgpu::daemon
