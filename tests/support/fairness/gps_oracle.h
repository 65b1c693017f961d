// SPDX-License-Identifier: MIT
//
// GpsOracle: what each VF would have received from an ideal fluid server (generalised processor
// sharing), computed from the device's run log alone and from nothing the scheduler planned. While
// the engine serves any VF, each backlogged VF is due weight / sum of backlogged weights of that
// time. lag = due - received: positive when a VF is behind. The oracle takes the extremes of lag at
// the ends of runs.
//
// A VF without work is due nothing. When it runs out of work, it forfeits a positive lag. It keeps
// a negative lag until its part of the service of the other VFs has paid for it. Either lag is
// spread by weight over the VFs that still have work, so the lags of all backlogged VFs sum to
// zero. Feed the oracle from the device's first run; otherwise it misses the lag from before.
//
// Lags are rounded to 1/1024 ns per run.
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
        std::int64_t lag = 0;  ///< 1/1024 ns; never positive for a VF without work
        // since judge()
        std::int64_t received_ns = 0;
        std::int64_t lag_max_ns = 0, lag_min_ns = 0;
        std::uint64_t runs = 0;
        std::int64_t longest_run_ns = 0;
    };

    /// At first no VF has work.
    explicit GpsOracle(const std::map<std::uint32_t, std::uint64_t>& weights);

    /// Adds one run of the log, in order of time; the run proves that the VF had work. `vf` must be
    /// among the weights.
    void run(std::uint32_t vf, std::int64_t duration_ns, std::int64_t end_ns = 0);
    /// The VF has work since `at_ns`, which may lie in the run that is reported next.
    void wake(std::uint32_t vf, std::int64_t at_ns);
    /// The VF in the engine has run out of work: from the end of its run on, it has none.
    void idle(std::uint32_t vf);
    /// A VF that is not in the engine has no work (any more).
    void idle_preempted(std::uint32_t vf);
    /// Restarts the counts of extremes, service and runs; lags stay.
    void judge();

    [[nodiscard]] const Account& account(std::uint32_t vf) const { return accounts_.at(vf); }
    [[nodiscard]] const std::map<std::uint32_t, Account>& accounts() const { return accounts_; }
    /// The VF's share of all service since judge(), 0..1.
    [[nodiscard]] double share(std::uint32_t vf) const;
    /// |received / ideal - 1| for a VF that was backlogged throughout.
    [[nodiscard]] double share_error(std::uint32_t vf) const;
    /// Largest |lag| of any VF since judge().
    [[nodiscard]] std::int64_t worst_lag_ns() const;

private:
    void serve(std::uint32_t vf, std::int64_t duration_ns);
    void enter(Account& account);
    void exit(Account& account);
    void spread(std::int64_t lag);
    [[nodiscard]] std::uint64_t backlogged_weights() const;

    std::map<std::uint32_t, Account> accounts_;
    std::multimap<std::int64_t, std::uint32_t> wakes_;  ///< wakes since the last run, by time
    std::set<std::uint32_t> idle_;                      ///< no work from the end of their run on
    std::int64_t total_ns_ = 0;
};

}  // namespace vgpu::test
