// SPDX-License-Identifier: MIT
//
// Two ideal engines (generalised processor sharing) to judge a run by. Both share nothing with the
// product: no virtual time, no deadlines, plain long double and loops over all VFs. Time is the
// service that is delivered by weight; service of reservations does not count. Rounding is 2^-64 of
// an account per event: less than 1 ns in a run of 10^6 slices.
//
// GpsFluid follows the run. It splits each piece of service by weight among the competing VFs. A VF
// that ceases to compete in the middle of its slice forfeits the service owed to it, and the others
// get it instead. If another VF ceases to compete or leaves, the service owed to it is shared once
// no VF is owed anything. A VF that has received too much stays in the ideal engine until its share
// has paid for it. A smaller weight takes effect when the VF is even, a larger one when the
// scheduler reports it, if the VF is not owed anything then: early_weights() counts the breaches.
// It is the ideal engine for a scheduler that, like any, does not know the length of work in
// advance.
//
// ClairvoyantGps gets the whole run afterwards and knows the length of each arrival's work. It
// serves each piece of work as the ideal engine would have, whatever the real one did.
#pragma once

#include "daemon/simulator/simulator.h"

#include <cstdint>
#include <vector>

namespace vgpu::simulator {

class GpsFluid : public Witness {
public:
    /// When a new weight takes effect, the VF may be owed at most this (rounding of both sides).
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
    /// The most that any VF was owed at any instant of the run; the other is the most it was ahead.
    [[nodiscard]] long double worst_owed_ns() const { return worst_owed_; }
    [[nodiscard]] long double worst_ahead_ns() const { return worst_ahead_; }
    [[nodiscard]] long double worst_lag_ns() const;
    void forget_worst() { worst_owed_ = worst_ahead_ = 0; }
    /// max |received / ideal - 1| over the VFs with at least `least_ns`.
    [[nodiscard]] long double worst_share_error(std::int64_t least_ns) const;
    [[nodiscard]] std::int64_t worst_overrun_ns() const { return worst_overrun_; }
    /// Weights that took effect too early: must be 0.
    [[nodiscard]] std::uint64_t early_weights() const { return early_weights_; }

private:
    struct Account {
        long double ideal = 0, received = 0;
        long double weight = 0;
        long double wanted = 0;  ///< weight that will take effect
        bool is_competing = false;
        bool is_paying = false;  ///< does not compete, has received too much
    };

    [[nodiscard]] bool pays_for_weight(std::uint32_t vf, std::uint32_t served) const;
    void distribute(long double ns, std::uint32_t served);
    void note_all();
    void share_estate();
    void share_if_alone();

    std::vector<Account> accounts_;
    long double estate_ = 0;  ///< to be shared once no VF is owed anything
    long double worst_owed_ = 0, worst_ahead_ = 0;
    std::int64_t worst_overrun_ = 0;
    std::uint64_t early_weights_ = 0;
};

class ClairvoyantGps : public Witness {
public:
    void joined(std::uint32_t vf, std::uint32_t weight) override;
    void competes(std::uint32_t vf) override;
    void served(std::uint32_t vf, std::int64_t ns, bool is_reserved, std::int64_t at_ns) override;

    /// Runs the ideal engine over the recorded run; returns max |ideal - received| at any instant.
    [[nodiscard]] long double worst_lag_ns() const;

private:
    /// A stretch in which one VF was served, or the beginning of a busy period of a VF.
    struct Step {
        std::uint32_t vf = 0;
        std::int64_t served_ns = 0;  ///< 0: a busy period begins
        std::size_t period = 0;
    };

    std::vector<std::uint32_t> weights_;
    std::vector<std::size_t> period_of_;     ///< current busy period of each VF
    std::vector<std::int64_t> period_work_;  ///< what each busy period turned out to be
    std::vector<Step> steps_;
};

}  // namespace vgpu::simulator
