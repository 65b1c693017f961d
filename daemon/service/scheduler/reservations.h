// SPDX-License-Identifier: MIT
//
// Reservations: hard constant-bandwidth servers, served before the proportional class. A VF with a
// reservation gets `budget` of service in every `period`, earliest deadline first. A VF without
// budget left may take up to `ahead` later budgets early, each with a deadline one period later, so
// that other servers are not harmed; then it competes by weight. Overruns are taken off. In any
// time t, reserved service ≤ (t / period + 1 + ahead) · budget. Unused budget goes to the
// proportional class. If Σ (budget + 2 switches) / period and the longest blocking pass admission
// (contract.h), a VF that requests at most its budget per period gets it before the deadline.
//
// O(log n); only set() allocates. Times are ns of any one clock. One thread.
#pragma once

#include "daemon/service/scheduler/indexed_heap.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace vgpu::daemon::scheduler {

/// Admission ensures budget_ns ≤ period_ns.
struct Reservation {
    std::int64_t budget_ns = 0;  ///< 0: none
    std::int64_t period_ns = 0;
    std::int64_t ahead = 0;  ///< budgets that may be taken ahead of time

    bool operator==(const Reservation&) const = default;
};

class Reservations {
public:
    /// A new or changed reservation begins with its next period; a budget of 0 removes it.
    void set(std::uint32_t vf, const Reservation& reservation);

    /// Keeps budget and deadline if using the budget up does not exceed the bandwidth; else begins
    /// a new period now (CBS wake-up rule of Abeni and Buttazzo).
    void wake(std::uint32_t vf, std::int64_t at_ns);
    void sleep(std::uint32_t vf);
    /// An overrun makes the budget negative; the next budgets pay for it.
    void charge(std::uint32_t vf, std::int64_t ns, std::int64_t at_ns);

    void refill(std::int64_t at_ns);
    /// When the next budget is due, if any: call refill() then, or a VF with work has no budget.
    [[nodiscard]] std::optional<std::int64_t> next_refill() const;

    /// The VF with work, budget and the earliest deadline, then the lowest number.
    [[nodiscard]] std::optional<std::uint32_t> pick() const;
    [[nodiscard]] std::int64_t budget_ns(std::uint32_t vf) const { return servers_[vf].budget_ns; }
    /// Reserved service up to its next deadline if the VF has work at `at_ns`.
    [[nodiscard]] std::int64_t available_ns(std::uint32_t vf, std::int64_t at_ns) const;
    [[nodiscard]] std::int64_t deadline_ns(std::uint32_t vf) const {
        return servers_[vf].deadline_ns;
    }

private:
    /// deadline_ns: of the budget in use, or of the last one.
    struct Server {
        Reservation reservation;
        std::int64_t budget_ns = 0;
        std::int64_t deadline_ns = INT64_MIN;
        bool is_awake = false;
    };

    [[nodiscard]] bool has(std::uint32_t vf) const;
    void fill(std::uint32_t vf, std::int64_t at_ns);
    [[nodiscard]] static bool is_usable(const Server& server, std::int64_t at_ns);

    std::vector<Server> servers_;
    IndexedHeap<std::int64_t> ready_;  ///< awake with budget, by deadline
    IndexedHeap<std::int64_t> empty_;  ///< without budget, by when it is filled
};

}  // namespace vgpu::daemon::scheduler
