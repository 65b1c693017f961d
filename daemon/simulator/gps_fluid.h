// SPDX-License-Identifier: MIT
//
// GpsFluid: an ideal engine (generalised processor sharing) with which a run is compared. GpsFluid
// is independent of the product: it uses neither virtual times nor deadlines, counts in long
// double, and loops over all VFs. It counts only service by weight, and ignores reserved service.
// Rounding error: < 1 ns in 10^6 slices.
//
// GpsFluid follows the run and does not know the length of work in advance. It splits service by
// weight among competing VFs. If a VF stops competing within its slice, the other VFs get its
// positive lag at once. If a VF stops competing at another time, or leaves, the other VFs get its
// positive lag only while all competing VFs have lag < 0. A VF that stops with lag < 0 stays in the
// fluid schedule until its share has made up the lag.
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

    /// The VF's ideal service minus its received service.
    [[nodiscard]] long double lag_ns(std::uint32_t vf) const;
    /// Largest |lag| of any VF at any time.
    [[nodiscard]] long double worst_lag_ns() const { return worst_lag_; }

private:
    struct Account {
        long double ideal = 0, received = 0;
        long double weight = 0;
        bool is_competing = false;
        bool has_negative_lag = false;  ///< true if the VF does not compete and has lag < 0
    };

    void distribute(long double ns);
    void record_all();
    void distribute_forfeited_lag();
    void distribute_if_none_competes();

    std::vector<Account> accounts_;
    long double forfeited_lag_ = 0;  ///< lag that is forfeited but not shared yet
    long double worst_lag_ = 0;
};

}  // namespace vgpu::simulator
