// SPDX-License-Identifier: MIT
//
// Reservations: the class in front of the proportional one. Each VF with a reservation is a hard
// constant-bandwidth server: `budget` of service in every `period`, earliest deadline first. A VF
// that has used its budget up may take the next ones ahead of time, up to `ahead` of them, each
// with a deadline one period later, so that the other servers are not harmed; then it competes by
// weight until it is no longer so far ahead. What it was overrun by is taken off. In any time t it
// gets at most (t / period + 1 + ahead) budgets this way. Budget that is not used goes to the
// proportional class: nothing is lost. With the sum of (budget + 2 switches) / period and the
// longest time that cannot be pre-empted within the bounds of admission (contract.h), a VF that
// asks for no more than its budget per period gets it before the deadline.
//
// All operations are O(log n); only set() allocates. Times are ns of any one clock. One thread;
// called by Scheduler.
#pragma once

#include "daemon/service/scheduler/indexed_heap.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace vgpu::daemon::scheduler {

/// Times in ns; budget_ns <= period_ns is admission's to see to.
struct Reservation {
    std::int64_t budget_ns = 0;  ///< 0: none
    std::int64_t period_ns = 0;
    std::int64_t ahead = 0;  ///< budgets that may be taken ahead of time

    bool operator==(const Reservation&) const = default;
};

class Reservations {
public:
    /// A new or changed reservation begins with its next period. None removes it.
    void set(std::uint32_t vf, const Reservation& reservation);

    /// What is left of budget and deadline is kept if using it up would not exceed the bandwidth;
    /// else it begins a new period now (the CBS wake-up rule of Abeni and Buttazzo).
    void wake(std::uint32_t vf, std::int64_t at_ns);
    void sleep(std::uint32_t vf);
    /// A budget that is overrun becomes negative and is paid by the next ones.
    void charge(std::uint32_t vf, std::int64_t ns, std::int64_t at_ns);

    /// Fills budgets whose time has come by `at_ns`.
    void refill(std::int64_t at_ns);
    /// When the next budget is due for filling; none if all have some.
    /// The caller must call refill() then, or a VF with work stays without budget.
    [[nodiscard]] std::optional<std::int64_t> next_refill() const;

    /// Who has work, budget and the earliest deadline.
    /// Earliest deadline first; equal ones by number. Slices are as long as budget_ns() says.
    [[nodiscard]] std::optional<std::uint32_t> pick() const;
    [[nodiscard]] std::int64_t budget_ns(std::uint32_t vf) const { return servers_[vf].budget_ns; }
    /// What it may use until its next deadline if it has work at `at_ns`.
    [[nodiscard]] std::int64_t available_ns(std::uint32_t vf, std::int64_t at_ns) const;
    [[nodiscard]] std::int64_t deadline_ns(std::uint32_t vf) const {
        return servers_[vf].deadline_ns;
    }

private:
    /// deadline_ns is that of the budget in use, or of the last one.
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
    IndexedHeap<std::int64_t> empty_;  ///< without budget, by the time they are filled
};

}  // namespace vgpu::daemon::scheduler
