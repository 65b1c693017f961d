// SPDX-License-Identifier: MIT
//
// GpsOracle: what each VF would have received from an ideal fluid server (generalised processor
// sharing), computed from the device's run log alone and from nothing the scheduler planned. While
// the engine serves anybody, each backlogged VF is due weight / sum of backlogged weights of that
// time. lag = due - received: positive when a VF is behind. It changes linearly inside a run, so
// its extremes lie at the borders of runs, which is where they are taken: "at all times".
//
// A VF without work is due nothing. It forfeits what it was owed; what it had too much it owes
// until its part of the others' service has paid for it. Either is spread by weight over those who
// stay, so the lags of all backlogged VFs sum to zero. Follow a device from its first run: a lag
// counted from the middle misses what was owed before.
//
// Rounded to 1/1024 ns per run.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace vgpu::test {

class GpsOracle {
public:
    struct Account {
        std::uint64_t weight = 0;
        bool is_backlogged = false;
        std::int64_t lag = 0;  ///< 1/1024 ns; without work: what it owes, as a negative number
        // since judge()
        std::int64_t received_ns = 0;
        std::int64_t lag_max_ns = 0, lag_min_ns = 0;
        std::uint64_t runs = 0;
        std::int64_t longest_run_ns = 0;
    };

    /// Nobody has work yet.
    explicit GpsOracle(const std::map<std::uint32_t, std::uint64_t>& weights);

    /// One run of the log, in order of time; it proves that the VF had work. A VF that is not in
    /// the weights is an error of the caller.
    void run(std::uint32_t vf, std::int64_t duration_ns, std::int64_t end_ns = 0);
    /// The VF has work since `at_ns`, which may lie in the run that is reported next.
    void wake(std::uint32_t vf, std::int64_t at_ns);
    /// The VF in the engine has run out of work: from the end of its run on, it has none.
    void idle(std::uint32_t vf);
    /// A VF that is not in the engine has no work (any more).
    void idle_preempted(std::uint32_t vf);
    /// Extremes, service and runs are counted from here on; lags stay.
    void judge();

    [[nodiscard]] const Account& account(std::uint32_t vf) const { return accounts_.at(vf); }
    [[nodiscard]] const std::map<std::uint32_t, Account>& accounts() const { return accounts_; }
    /// Received share of all service so far, 0..1.
    [[nodiscard]] double share(std::uint32_t vf) const;
    /// |received / ideal - 1| for a VF that was backlogged throughout.
    [[nodiscard]] double share_error(std::uint32_t vf) const;
    /// Largest |lag| any VF ever had.
    [[nodiscard]] std::int64_t worst_lag_ns() const;

private:
    void serve(std::uint32_t vf, std::int64_t duration_ns);
    void enter(Account& account);
    void exit(Account& account);
    void spread(std::int64_t lag);
    [[nodiscard]] std::uint64_t backlogged_weights() const;

    std::map<std::uint32_t, Account> accounts_;
    std::multimap<std::int64_t, std::uint32_t> wakes_;  ///< since the last run, by time
    std::set<std::uint32_t> idle_;                      ///< from the end of their run on
    std::int64_t total_ns_ = 0;
};

}  // namespace vgpu::test
