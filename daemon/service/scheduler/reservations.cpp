// SPDX-License-Identifier: MIT
#include "daemon/service/scheduler/reservations.h"

#include <algorithm>

namespace vgpu::daemon::scheduler {

/// The new reservation begins at the old deadline.
void Reservations::set(std::uint32_t vf, const Reservation& reservation) {
    if (vf >= servers_.size()) {
        servers_.resize(vf + 1);
        ready_.make_room(vf + 1);
        empty_.make_room(vf + 1);
    }
    if (servers_[vf].reservation == reservation) return;
    const bool is_awake = servers_[vf].is_awake;
    const std::int64_t deadline_ns = servers_[vf].deadline_ns;
    ready_.remove(vf);
    empty_.remove(vf);
    servers_[vf] = {.reservation = reservation, .deadline_ns = deadline_ns, .is_awake = is_awake};
    // wait for the next period, so that no window holds two budgets
    if (reservation.budget_ns > 0) empty_.set(vf, deadline_ns);
}

void Reservations::wake(std::uint32_t vf, std::int64_t at_ns) {
    if (vf >= servers_.size() || servers_[vf].is_awake) return;
    Server& server = servers_[vf];
    server.is_awake = true;
    if (!has(vf) || empty_.has(vf)) return;
    if (!is_usable(server, at_ns)) {
        server.budget_ns = server.reservation.budget_ns;
        server.deadline_ns = at_ns + server.reservation.period_ns;
    }
    ready_.set(vf, server.deadline_ns);
}

/// wake() decides whether the remaining budget and deadline may be used.
void Reservations::sleep(std::uint32_t vf) {
    if (vf >= servers_.size()) return;
    servers_[vf].is_awake = false;
    ready_.remove(vf);
}

void Reservations::charge(std::uint32_t vf, std::int64_t ns, std::int64_t at_ns) {
    if (!has(vf)) return;
    servers_[vf].budget_ns -= ns;
    if (servers_[vf].budget_ns <= 0) fill(vf, at_ns);
}

void Reservations::refill(std::int64_t at_ns) {
    while (!empty_.empty() && empty_.least_key() <= at_ns) {
        const std::uint32_t vf = empty_.least();
        empty_.remove(vf);
        fill(vf, at_ns);
    }
}

/// Takes the next budgets that are due; else waits for the next one.
void Reservations::fill(std::uint32_t vf, std::int64_t at_ns) {
    Server& server = servers_[vf];
    const Reservation& own = server.reservation;
    // periods slept through are not made up for
    if (server.deadline_ns < at_ns - own.period_ns) server.deadline_ns = at_ns;
    while (server.budget_ns <= 0 && server.deadline_ns - own.ahead * own.period_ns <= at_ns) {
        server.budget_ns += own.budget_ns;
        server.deadline_ns += own.period_ns;
    }
    if (server.budget_ns <= 0) {
        ready_.remove(vf);
        empty_.set(vf, server.deadline_ns - own.ahead * own.period_ns);
    } else if (server.is_awake) {
        ready_.set(vf, server.deadline_ns);
    }
}

std::optional<std::int64_t> Reservations::next_refill() const {
    if (empty_.empty()) return std::nullopt;
    return empty_.least_key();
}

std::optional<std::uint32_t> Reservations::pick() const {
    if (ready_.empty()) return std::nullopt;
    return ready_.least();
}

bool Reservations::has(std::uint32_t vf) const {
    return vf < servers_.size() && servers_[vf].reservation.budget_ns > 0;
}

/// Whether using up the budget before the deadline would not exceed the bandwidth.
bool Reservations::is_usable(const Server& server, std::int64_t at_ns) {
    const Reservation& own = server.reservation;
    return at_ns < server.deadline_ns &&
           static_cast<__int128>(server.budget_ns) * own.period_ns <=
               static_cast<__int128>(server.deadline_ns - at_ns) * own.budget_ns;
}

/// Asleep with an unusable rest: a fresh budget and all that may be taken ahead. Else the rest, and
/// the budgets whose deadlines are at most 1 + ahead periods from now.
std::int64_t Reservations::available_ns(std::uint32_t vf, std::int64_t at_ns) const {
    if (!has(vf) || empty_.has(vf)) return 0;
    const Server& server = servers_[vf];
    const Reservation& own = server.reservation;
    if (!server.is_awake && !is_usable(server, at_ns)) return own.budget_ns * (1 + own.ahead);
    const std::int64_t time_ahead_ns = at_ns + (1 + own.ahead) * own.period_ns - server.deadline_ns;
    return server.budget_ns +
           std::max<std::int64_t>(0, time_ahead_ns / own.period_ns) * own.budget_ns;
}

}  // namespace vgpu::daemon::scheduler
