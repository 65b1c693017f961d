// SPDX-License-Identifier: MIT
//
// GpsOracle: what each VF would have received from an ideal fluid server (generalised processor
// sharing), computed from the device's run log alone and from nothing the scheduler planned. While
// the engine serves anybody, each backlogged VF is due weight / sum of backlogged weights of that
// time. lag = due - received: positive when a VF is behind. It changes linearly inside a run, so
// its extremes lie at the borders of runs, which is where they are taken: "at all times".
//
// Exact: integers, in ns multiplied by the sum of weights where that is constant, else rounded to
// 1/1024 ns per run.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace vgpu::test {

class GpsOracle {
public:
    struct Account {
        std::uint64_t weight = 0;
        bool is_backlogged = true;
        std::int64_t received_ns = 0;
        std::int64_t lag = 0;  ///< 1/1024 ns
        std::int64_t lag_max_ns = 0, lag_min_ns = 0;
        std::uint64_t runs = 0;
        std::int64_t longest_run_ns = 0;
    };

    explicit GpsOracle(const std::map<std::uint32_t, std::uint64_t>& weights);

    /// One run of the log, in order of time. A VF that is not in the weights is an error of the
    /// caller.
    void run(std::uint32_t vf, std::int64_t duration_ns);
    /// The VF has no work (false) or work again: it is due nothing while it has none, and what it
    /// was owed is forfeited.
    void set_backlogged(std::uint32_t vf, bool has_work);

    [[nodiscard]] const Account& account(std::uint32_t vf) const { return accounts_.at(vf); }
    [[nodiscard]] const std::map<std::uint32_t, Account>& accounts() const { return accounts_; }
    /// Received share of all service so far, 0..1.
    [[nodiscard]] double share(std::uint32_t vf) const;
    /// |received / ideal - 1| for a VF that was backlogged throughout.
    [[nodiscard]] double share_error(std::uint32_t vf) const;
    /// Largest |lag| any VF ever had.
    [[nodiscard]] std::int64_t worst_lag_ns() const;

private:
    std::map<std::uint32_t, Account> accounts_;
    std::int64_t total_ns_ = 0;
};

}  // namespace vgpu::test
