// SPDX-License-Identifier: MIT
//
// Proportional: one priority band of the scheduler, by EEVDF (earliest eligible virtual deadline
// first). Each VF with work requests its share in requests of bounded length. A request is eligible
// once received ≤ ideal, its deadline is when the share covers it, and the eligible request with
// the earliest deadline is served.
//
// Virtual time advances with the service of this band: the share is one of the capacity that
// reservations and higher bands leave. For every VF with work, at any time: |received − ideal| ≤
// longest request (proof: docs/scheduling.md). After overruns, the VF that would exceed this is
// served first. The bound holds because no VF's rate changes while its lag > 0:
//  - a VF that runs out of work within a slice forfeits its lag to the others as if served,
//  - the lag > 0 of a VF that leaves, or stops competing at another time (served by a
//    reservation, out of tokens), is kept until no VF has lag > 0, and then shared,
//  - a VF with lag < 0 stays in the account (a "ghost") until its share has paid,
//  - a larger weight takes effect between two requests at lag ≤ 0, a smaller one at lag = 0, so
//    that others do not pay; both within max_gap_ms, which bounds the time between two slices.
//
// O(log n), amortised over requests; O(n) for join(), leave() and set_request(), which look for the
// longest request. Only join() allocates. VF numbers are indexes: keep them small. One thread.
#pragma once

#include "daemon/service/scheduler/indexed_heap.h"
#include "daemon/service/scheduler/virtual_time.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace vgpu::daemon::scheduler {

class Proportional {
public:
    /// Enters without work. A number that left in debt and returns before paying keeps its debt.
    void join(std::uint32_t vf, std::uint32_t weight, std::int64_t request_ns);
    /// A lag > 0 goes to the others once no VF has lag > 0. A lag < 0 is paid as a ghost, whose
    /// number may be used again meanwhile.
    void leave(std::uint32_t vf);
    void set_weight(std::uint32_t vf, std::uint32_t weight);
    /// Takes effect with the next request.
    void set_request(std::uint32_t vf, std::int64_t request_ns);

    /// Begins a request with lag 0, or with the debt of a ghost. Twice does nothing.
    void wake(std::uint32_t vf);
    /// `is_mid_slice`: the VF was picked and is served less than its slice.
    void sleep(std::uint32_t vf, bool is_mid_slice);

    /// The VF to serve next; none if no VF has work.
    [[nodiscard]] std::optional<std::uint32_t> pick();
    /// The rest of the VF's request, > 0.
    [[nodiscard]] std::int64_t left_ns(std::uint32_t vf) const { return clients_[vf].left_ns; }
    /// `vf`, awake, received `ns`.
    void charge(std::uint32_t vf, std::int64_t ns);

    [[nodiscard]] bool has_work() const { return awake_ > 0; }
    /// False for a ghost that has left.
    [[nodiscard]] bool has(std::uint32_t vf) const;
    [[nodiscard]] bool is_awake(std::uint32_t vf) const;
    /// ideal − received; without work ≤ 0.
    [[nodiscard]] std::int64_t lag_ns(std::uint32_t vf) const;
    /// The weight in force; set_weight() may not have taken effect yet.
    [[nodiscard]] std::uint32_t weight(std::uint32_t vf) const;

private:
    /// Ghost: no work and lag < 0, paid by its share. weights_ counts Awake and Ghost.
    enum class Phase : std::uint8_t { Absent, Asleep, Ghost, Awake };

    struct Client {
        Virtual received = 0;  ///< virtual time up to which the VF has been served
        Virtual deadline = 0;  ///< of the request
        std::int64_t left_ns = 0;
        std::int64_t request_ns = 0;
        std::int64_t weight = 0;
        std::int64_t next_weight = 0;  ///< 0: none
        Phase phase = Phase::Absent;
        bool is_leaving = false;  ///< becomes Absent once the debt is paid
    };

    void begin_request(std::uint32_t vf);
    void take_weight(std::uint32_t vf);
    void put_weight_in_force(std::uint32_t vf);
    void become_even(std::uint32_t vf);
    void place(std::uint32_t vf);
    void find_longest();
    [[nodiscard]] bool is_rescue_due() const;
    void advance(Virtual amount);
    void share_estate();
    [[nodiscard]] Virtual remove_from_account(std::uint32_t vf);

    std::vector<Client> clients_;
    IndexedHeap<Virtual> waiting_;  ///< requests not yet eligible, by when they will be
    IndexedHeap<Virtual> ready_;    ///< eligible requests, by deadline
    /// VFs with lag < 0 that are ghosts or wait for a smaller weight, by when the debt is paid.
    IndexedHeap<Virtual> debtors_;
    IndexedHeap<Virtual> awake_by_received_;
    /// By when the VF's lag reaches the longest request.
    IndexedHeap<Virtual> awake_by_limit_;
    Virtual now_ = 0;
    Virtual estate_ = 0;  ///< forfeited lag of VFs that left, or slept outside a slice
    std::int64_t weights_ = 0;
    std::uint32_t awake_ = 0;
    std::int64_t longest_ns_ = 0;  ///< longest request in the band
};

}  // namespace vgpu::daemon::scheduler
