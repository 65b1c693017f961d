// SPDX-License-Identifier: MIT
//
// Two ideal engines (generalised processor sharing) to judge a run by. Independent of the product:
// no virtual time, no deadlines, plain long double, loops over all VFs. Time is service by weight,
// without reservations. Rounding: < 1 ns in 10^6 slices.
//
// GpsFluid follows the run, without knowing the length of work in advance. It splits service by
// weight among competing VFs. A VF that stops competing within its slice forfeits its lag > 0 to
// the others; if another VF stops or leaves, its lag is shared once no VF has lag > 0. A VF with
// lag < 0 stays until its share has paid. A smaller weight takes effect at lag 0, a larger one when
// the scheduler reports it, if lag ≤ 0: early_weights() counts breaches.
//
// ClairvoyantGps gets the whole run afterwards, knows the length of work, and serves it as the
// ideal engine would have.
#pragma once

#include "daemon/simulator/simulator.h"

#include <cstdint>
#include <vector>

namespace vgpu::simulator {

class GpsFluid : public Witness {
public:
    /// Allowed lag when a new weight takes effect (rounding).
    static constexpr long double kEvenNs = 1.0L;

    void joined(std::uint32_t vf, std::uint32_t weight) override;
    void left(std::uint32_t vf) override;
    void traded(std::uint32_t vf, std::uint32_t other) override;
    void wants_weight(std::uint32_t vf, std::uint32_t weight) override;
    void reweighted(std::uint32_t vf, std::uint32_t weight, std::int64_t at_ns) override;
    void decided(std::uint32_t vf) override;
    void competes(std::uint32_t vf) override;
    void rests(std::uint32_t vf, bool is_mid_slice) override;
    void served(std::uint32_t vf, std::int64_t ns, bool is_reserved, std::int64_t at_ns) override;
    void overran(std::int64_t ns) override;

    /// ideal - received
    [[nodiscard]] long double lag_ns(std::uint32_t vf) const;
    /// Largest lag > 0, and largest −lag, of any VF at any time.
    [[nodiscard]] long double worst_owed_ns() const { return worst_owed_; }
    [[nodiscard]] long double worst_ahead_ns() const { return worst_ahead_; }
    [[nodiscard]] long double worst_lag_ns() const;
    void forget_worst() { worst_owed_ = worst_ahead_ = 0; }
    /// max |received / ideal − 1| over VFs with at least `least_ns`.
    [[nodiscard]] long double worst_share_error(std::int64_t least_ns) const;
    [[nodiscard]] std::int64_t worst_overrun_ns() const { return worst_overrun_; }
    /// Must be 0.
    [[nodiscard]] std::uint64_t early_weights() const { return early_weights_; }

private:
    struct Account {
        long double ideal = 0, received = 0;
        long double weight = 0;
        long double wanted = 0;  ///< weight that will take effect
        bool is_competing = false;
        bool is_paying = false;  ///< does not compete, lag < 0
    };

    [[nodiscard]] bool pays_for_weight(std::uint32_t vf, std::uint32_t served) const;
    void distribute(long double ns, std::uint32_t served);
    void note_all();
    void share_estate();
    void share_if_alone();

    std::vector<Account> accounts_;
    long double estate_ = 0;  ///< shared once no VF has lag > 0
    long double worst_owed_ = 0, worst_ahead_ = 0;
    std::int64_t worst_overrun_ = 0;
    std::uint64_t early_weights_ = 0;
};

class ClairvoyantGps : public Witness {
public:
    void joined(std::uint32_t vf, std::uint32_t weight) override;
    void competes(std::uint32_t vf) override;
    void served(std::uint32_t vf, std::int64_t ns, bool is_reserved, std::int64_t at_ns) override;

    /// max |ideal − received| of the ideal engine over the recorded run.
    [[nodiscard]] long double worst_lag_ns() const;

private:
    /// Service of one VF, or the begin of a busy period.
    struct Step {
        std::uint32_t vf = 0;
        std::int64_t served_ns = 0;  ///< 0: a busy period begins
        std::size_t period = 0;
    };

    std::vector<std::uint32_t> weights_;
    std::vector<std::size_t> period_of_;     ///< current busy period by VF
    std::vector<std::int64_t> period_work_;  ///< total work by busy period
    std::vector<Step> steps_;
};

}  // namespace vgpu::simulator
