// SPDX-License-Identifier: MIT
//
// Proportional: one priority band of the scheduler. EEVDF (earliest eligible virtual deadline
// first): each VF with work asks for its share in requests of bounded length; a request is eligible
// once the VF has received no more than its share, is due when its share would have covered it, and
// of the eligible ones the one due first is served.
//
// Virtual time advances with the service this band delivers, so the share is one of the capacity
// that reservations and higher bands leave. At every instant, for every VF with work,
// |received - ideal| <= the longest request; docs/scheduling.md proves it. After overruns whoever
// would be owed more is served first.
// It holds because nothing ever changes a VF's rate while it is owed something:
//  - a VF that runs out of work in the middle of a slice forfeits what it is owed; the others get
//    it as if served,
//  - what a VF is owed that leaves, or ceases to compete at another time (served by a reservation,
//    or out of tokens), is kept until nobody is owed anything, and then shared,
//  - one that has received too much stays in the account (a "ghost") until its share has paid,
//  - a larger weight takes effect between two requests, once the VF is owed nothing, a smaller one
//    when it is even, so that it is not given the time of others to pay; both are within the time
//    between two of its slices, which max_gap_ms bounds.
//
// All operations are O(log n), amortised over requests, but join(), leave() and set_request(),
// which look for the longest request: O(n). Only join() allocates. VF numbers are used as indexes:
// keep them small. One thread; called by Scheduler.
#pragma once

#include "daemon/service/scheduler/indexed_heap.h"
#include "daemon/service/scheduler/virtual_time.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace vgpu::daemon::scheduler {

class Proportional {
public:
    /// Enters without work. A number that left in debt and returns before it is paid keeps it.
    void join(std::uint32_t vf, std::uint32_t weight, std::int64_t request_ns);
    /// What it was owed goes to the others once nobody is owed anything; what it owes it pays as a
    /// ghost, whose number may be used again meanwhile.
    void leave(std::uint32_t vf);
    void set_weight(std::uint32_t vf, std::uint32_t weight);
    /// From its next request on.
    void set_request(std::uint32_t vf, std::int64_t request_ns);

    /// Begins a request with the lag it has: none, or the debt of a ghost. Twice does nothing.
    void wake(std::uint32_t vf);
    /// `is_mid_slice`: it was picked and is served less than it was picked for.
    void sleep(std::uint32_t vf, bool is_mid_slice);

    /// The VF to be served next; none if no VF has work.
    [[nodiscard]] std::optional<std::uint32_t> pick();
    /// What is left of its request, > 0.
    [[nodiscard]] std::int64_t left_ns(std::uint32_t vf) const { return clients_[vf].left_ns; }
    /// `vf`, awake, has received `ns` more.
    void charge(std::uint32_t vf, std::int64_t ns);

    [[nodiscard]] bool has_work() const { return awake_ > 0; }
    /// In the band and not leaving it: a ghost that left is not there.
    [[nodiscard]] bool has(std::uint32_t vf) const;
    [[nodiscard]] bool is_awake(std::uint32_t vf) const;
    /// Ideal minus received: > 0 if it is owed. Without work: what it still owes, <= 0.
    [[nodiscard]] std::int64_t lag_ns(std::uint32_t vf) const;
    /// The weight in force, which may lag behind set_weight().
    [[nodiscard]] std::uint32_t weight(std::uint32_t vf) const;

private:
    /// Ghost: has no work and still owes, so its weight counts until its share has paid. Only Awake
    /// and Ghost are in weights_.
    enum class Phase : std::uint8_t { Absent, Asleep, Ghost, Awake };

    struct Client {
        Virtual received = 0;  ///< virtual time up to which it has been served
        Virtual deadline = 0;  ///< of its request
        std::int64_t left_ns = 0;
        std::int64_t request_ns = 0;
        std::int64_t weight = 0;
        std::int64_t next_weight = 0;  ///< 0: none
        Phase phase = Phase::Absent;
        bool is_leaving = false;  ///< Absent once its debt is paid
    };

    void begin_request(std::uint32_t vf);
    void take_weight(std::uint32_t vf);
    void put_weight_in_force(std::uint32_t vf);
    void become_even(std::uint32_t vf);
    void place(std::uint32_t vf);
    void find_longest();
    [[nodiscard]] bool is_rescue_due() const;
    void advance(Virtual amount);
    /// Called when somebody leaves or sleeps with nobody else awake, and when pick() finds nobody
    /// eligible.
    void share_estate();
    [[nodiscard]] Virtual remove_from_account(std::uint32_t vf);

    std::vector<Client> clients_;
    IndexedHeap<Virtual> waiting_;  ///< requests not yet eligible, by the time they will be
    IndexedHeap<Virtual> ready_;    ///< eligible requests, by deadline
    /// Ghosts and those that wait for a smaller weight, by the time their debt is paid.
    IndexedHeap<Virtual> debtors_;
    IndexedHeap<Virtual> awake_by_received_;
    /// By the time at which they will be owed the longest request.
    IndexedHeap<Virtual> awake_by_limit_;
    Virtual now_ = 0;
    Virtual estate_ = 0;        ///< what those were owed who left, or slept other than in a slice
    std::int64_t weights_ = 0;  ///< of the awake and the ghosts
    std::uint32_t awake_ = 0;
    std::int64_t longest_ns_ = 0;  ///< request of anybody in the band
};

}  // namespace vgpu::daemon::scheduler
