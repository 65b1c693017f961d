// SPDX-License-Identifier: MIT
//
// GpsFluid: an ideal engine (generalised processor sharing) with which a run is compared. To find
// errors of the product, GpsFluid uses other methods than the product: neither virtual times nor
// deadlines, but sums in long double and loops over all VFs. GpsFluid counts only service by
// weight, and ignores reserved service. Rounding error: < 1 ns in 10^6 slices.
//
// A VF competes while it has work and is not throttled. lag = ideal service − received service.
// GpsFluid observes the run and does not know the length of work in advance. Each time the engine
// serves a VF for t, GpsFluid adds t to the ideal service of all competing VFs, split by weight.
// What happens to the lag of a VF that stops competing:
//   - lag > 0, within the VF's slice: the other VFs get the lag at once.
//   - lag > 0, and the VF leaves or is not within its slice: the other VFs get the lag, but only
//     while all competing VFs have lag < 0.
//   - lag < 0: the VF takes part in the split until its lag is 0.
#pragma once

#include "daemon/simulator/simulator.h"

#include <cstdint>
#include <vector>

namespace vgpu::simulator {

class GpsFluid : public Observer {
public:
    void joined(std::uint32_t vf, std::uint32_t weight) override;
    void left(std::uint32_t vf) override;
    void swapped(std::uint32_t vf, std::uint32_t other) override;
    void reweighted(std::uint32_t vf, std::uint32_t weight) override;
    void decided(std::uint32_t vf) override;
    void competes(std::uint32_t vf) override;
    void stops_competing(std::uint32_t vf, bool is_mid_slice) override;
    void served(std::uint32_t vf, std::int64_t ns, bool is_reserved, std::int64_t at_ns) override;

    /// The VF's ideal service minus its received service, in ns. The VF must have joined.
    [[nodiscard]] long double lag_ns(std::uint32_t vf) const;
    /// Largest |lag| in ns of any VF at any time.
    [[nodiscard]] long double worst_lag_ns() const { return worst_lag_; }

private:
    struct Account {
        long double ideal = 0, received = 0;  ///< service in ns
        long double weight = 0;
        bool is_competing = false;
        bool has_negative_lag = false;  ///< true if the VF does not compete and has lag < 0
    };

    void distribute(long double ns);
    void record_all();
    void distribute_forfeited_lag();
    void distribute_if_none_competes();

    std::vector<Account> accounts_;
    long double forfeited_lag_ = 0;  ///< forfeited lag in ns that the other VFs do not have yet
    long double worst_lag_ = 0;
};

}  // namespace vgpu::simulator
