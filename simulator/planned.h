// SPDX-License-Identifier: MIT
//
// PlannedPolicy: the scheduler library behind tables: decisions are made ahead, as a run
// table, by a process that hears of events and needs time to answer; the device side only carries
// the table out. Its executor does what pf-driver/core/run_pick.c does: VFs of the reserve with
// work and budget pre-empt, VFs without work are passed over, overruns are taken off the VF's next
// slices, VFs that the table does not list come after its last entry, what is received between
// plan and take-over becomes debits and credits, and a table that nobody replaces is repeated. Not
// for VFs with caps.
#pragma once

#include "daemon/service/scheduler/horizon.h"
#include "simulator/library.h"

#include <vector>

namespace vgpu::simulator {

/// Decision and planning as measured by des_bench (docs/scheduling.md); the delay is the p99 of a
/// wake-up of a thread of the normal class under load, which is worse than the product's.
inline constexpr std::int64_t kMeasuredDecisionNs = 1'000;
inline constexpr std::int64_t kMeasuredPlanDelayNs = 1'200'000;

class PlannedPolicy : public Policy {
public:
    struct Delays {
        std::int64_t plan_delay_ns = kMeasuredPlanDelayNs;  ///< from an event to the take-over
        std::int64_t interval_ns = 10'000'000;              ///< at least between two tables
    };

    explicit PlannedPolicy(const Delays& delays,
                           const daemon::scheduler::HorizonLimits& limits = {})
        : delays_(delays), limits_(limits) {}

    [[nodiscard]] std::string_view name() const override { return "library+table"; }
    void set(std::uint32_t vf, const VfPolicy& policy, std::int64_t at_ns) override;
    void remove(std::uint32_t vf, std::int64_t at_ns) override;
    void wake(std::uint32_t vf, std::int64_t at_ns) override;
    void sleep(std::uint32_t vf, std::int64_t at_ns) override;
    Grant next(std::int64_t at_ns) override;
    void started(std::int64_t at_ns) override;
    void ended(std::int64_t at_ns) override;
    [[nodiscard]] std::optional<std::int64_t> preempt_at(std::int64_t at_ns) const override;
    [[nodiscard]] std::optional<std::int64_t> next_event() const override;
    void advance(std::int64_t at_ns) override;
    [[nodiscard]] std::uint32_t weight(std::uint32_t vf) const override {
        return scheduler_.weight(vf);
    }

    [[nodiscard]] std::string_view refuses_gangs() const override { return kLeavesGangs; }
    [[nodiscard]] std::string_view refuses_hangs() const override { return kLeavesHangs; }

    /// No table is made from now on: the planner is dead.
    void kill_planner() { is_dead_ = true; }

private:
    struct Pending {
        daemon::scheduler::HorizonPlan plan;
        std::int64_t ready_ns = 0;
        std::vector<std::int64_t> planned_service_ns;
    };

    [[nodiscard]] bool has_reserve(std::uint32_t vf) const;
    [[nodiscard]] std::uint32_t reserve_in_need() const;
    void want_plan(std::int64_t at_ns);
    void make_plan(std::int64_t at_ns);
    void take_over(std::int64_t at_ns);
    void settle_debits(const std::vector<std::int64_t>& planned_service_ns);
    [[nodiscard]] daemon::scheduler::HorizonEntry entry_at_cursor() const;
    void advance_cursor();
    [[nodiscard]] Grant grant(const daemon::scheduler::Decision& decision);
    [[nodiscard]] Grant next_entry(std::int64_t at_ns);

    Delays delays_;
    daemon::scheduler::HorizonLimits limits_;
    daemon::scheduler::Scheduler scheduler_;
    daemon::scheduler::HorizonPlan table_;
    std::optional<Pending> pending_;
    std::optional<std::int64_t> plan_at_ns_;  ///< when the next one is to be made
    std::int64_t planned_ns_ = INT64_MIN / 2;
    std::size_t cursor_ = 0;
    daemon::scheduler::Decision decision_;
    std::int64_t started_ns_ = 0;
    bool is_running_ = false;
    std::vector<bool> is_listed_;  ///< in the table in force, by VF
    bool is_dead_ = false;
    bool is_stale_ = false;  ///< something happened since the table that is pending was made
    std::vector<std::int64_t> debit_ns_;    ///< by VF
    std::vector<std::int64_t> service_ns_;  ///< by weight, by VF
    std::vector<std::int64_t> reserve_ns_;  ///< left in this table, by VF
};

}  // namespace vgpu::simulator
