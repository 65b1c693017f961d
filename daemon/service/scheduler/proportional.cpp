// SPDX-License-Identifier: MIT
#include "daemon/service/scheduler/proportional.h"

#include <algorithm>
#include <cassert>

namespace vgpu::daemon::scheduler {

namespace {

/// A lag below 2^-10 ns is a rounding error.
constexpr Virtual kEven = amount_of(1) >> 10;

}  // namespace

void Proportional::join(std::uint32_t vf, std::uint32_t weight, std::int64_t request_ns) {
    assert(weight > 0 && request_ns > 0);
    if (vf >= clients_.size()) {
        clients_.resize(vf + 1);
        waiting_.make_room(vf + 1);
        ready_.make_room(vf + 1);
        debtors_.make_room(vf + 1);
        awake_by_received_.make_room(vf + 1);
        awake_by_limit_.make_room(vf + 1);
    }
    Client& client = clients_[vf];
    client.is_leaving = false;
    client.request_ns = request_ns;
    if (client.phase == Phase::Absent) {
        client.phase = Phase::Asleep;
        client.weight = weight;
    } else {
        set_weight(vf, weight);
    }
    find_longest();
}

/// The VF counts as asleep from here on, so charge() and pick() never meet it.
void Proportional::leave(std::uint32_t vf) {
    if (!has(vf)) return;
    Client& client = clients_[vf];
    // not shared at once: the others may be in the middle of requests, and would be owed more
    if (client.phase == Phase::Awake) estate_ += remove_from_account(vf);
    if (awake_ == 0) share_estate();
    client.is_leaving = true;
    if (client.phase == Phase::Asleep) client.phase = Phase::Absent;
    find_longest();
}

void Proportional::set_weight(std::uint32_t vf, std::uint32_t weight) {
    Client& client = clients_[vf];
    client.next_weight = weight == client.weight ? 0 : weight;
    take_weight(vf);
}

void Proportional::set_request(std::uint32_t vf, std::int64_t request_ns) {
    clients_[vf].request_ns = request_ns;
    find_longest();
}

void Proportional::wake(std::uint32_t vf) {
    Client& client = clients_[vf];
    if (client.phase == Phase::Awake || client.phase == Phase::Absent) return;
    if (client.phase != Phase::Ghost) {
        weights_ += client.weight;
        client.received = now_;
    }
    client.phase = Phase::Awake;
    ++awake_;
    debtors_.remove(vf);
    place(vf);
    begin_request(vf);
    take_weight(vf);
}

void Proportional::sleep(std::uint32_t vf, bool is_mid_slice) {
    if (clients_[vf].phase == Phase::Awake) {
        const Virtual forfeit = remove_from_account(vf);
        if (is_mid_slice)
            advance(forfeit);
        else
            estate_ += forfeit;
    }
    if (awake_ == 0) share_estate();
}

/// Removes a VF that has no work any more; returns its forfeited lag.
Virtual Proportional::remove_from_account(std::uint32_t vf) {
    Client& client = clients_[vf];
    waiting_.remove(vf);
    ready_.remove(vf);
    awake_by_received_.remove(vf);
    awake_by_limit_.remove(vf);
    --awake_;
    if (client.received > now_) {
        client.phase = Phase::Ghost;
        debtors_.set(vf, client.received);
        return 0;
    }
    const Virtual forfeit = (now_ - client.received) * client.weight;
    weights_ -= client.weight;
    client.phase = Phase::Asleep;
    debtors_.remove(vf);
    take_weight(vf);
    return forfeit;
}

/// While no VF has lag > 0, gives the estate to the others, until a VF reaches lag 0. Otherwise the
/// estate would increase some VF's lag.
void Proportional::share_estate() {
    while (estate_ > 0 && weights_ > 0) {
        const bool is_anybody_awake = !awake_by_received_.empty();
        if (is_anybody_awake && awake_by_received_.least_key() <= now_) return;
        // Stop at the first VF that reaches lag 0: the sum of weights or its eligibility changes.
        Virtual until = is_anybody_awake ? awake_by_received_.least_key() : debtors_.least_key();
        if (!debtors_.empty() && debtors_.least_key() < until) until = debtors_.least_key();
        const Virtual amount = (until - now_) * weights_;
        if (amount > estate_) break;
        estate_ -= amount;
        now_ = until;
        if (!debtors_.empty() && debtors_.least_key() <= now_) become_even(debtors_.least());
    }
    if (weights_ > 0) now_ += estate_ / weights_;
    estate_ = 0;
}

/// Virtual time never goes back, so an eligible request stays eligible until it is served or its VF
/// sleeps: each request moves once.
std::optional<std::uint32_t> Proportional::pick() {
    if (estate_ > 0) share_estate();
    while (!waiting_.empty() && waiting_.least_key() <= now_) {
        const std::uint32_t vf = waiting_.least();
        waiting_.remove(vf);
        ready_.set(vf, clients_[vf].deadline);
    }
    if (!ready_.empty()) return is_rescue_due() ? awake_by_limit_.least() : ready_.least();
    // by rounding only, because lags sum to zero
    if (!waiting_.empty()) return waiting_.least();
    return std::nullopt;
}

void Proportional::charge(std::uint32_t vf, std::int64_t ns) {
    Client& client = clients_[vf];
    assert(client.phase == Phase::Awake && ns >= 0);
    // its own service only moves it ahead, never to lag 0
    debtors_.remove(vf);
    client.received += virtual_of(ns, client.weight);
    place(vf);
    client.left_ns -= ns;
    advance(amount_of(ns));
    // service beyond a request postpones the next one
    if (client.left_ns <= 0 || waiting_.has(vf)) begin_request(vf);
    take_weight(vf);
}

bool Proportional::has(std::uint32_t vf) const {
    return vf < clients_.size() && clients_[vf].phase != Phase::Absent && !clients_[vf].is_leaving;
}

bool Proportional::is_awake(std::uint32_t vf) const {
    return vf < clients_.size() && clients_[vf].phase == Phase::Awake;
}

std::int64_t Proportional::lag_ns(std::uint32_t vf) const {
    if (vf >= clients_.size()) return 0;
    const Client& client = clients_[vf];
    if (client.phase != Phase::Awake && client.phase != Phase::Ghost) return 0;
    return ns_of((now_ - client.received) * client.weight);
}

std::uint32_t Proportional::weight(std::uint32_t vf) const {
    return vf < clients_.size() ? static_cast<std::uint32_t>(clients_[vf].weight) : 0;
}

void Proportional::place(std::uint32_t vf) {
    const Client& client = clients_[vf];
    awake_by_received_.set(vf, client.received);
    awake_by_limit_.set(vf, client.received + virtual_of(longest_ns_, client.weight));
}

void Proportional::find_longest() {
    std::int64_t longest_ns = 0;
    for (const Client& client : clients_)
        if (client.phase != Phase::Absent && !client.is_leaving)
            longest_ns = std::max(longest_ns, client.request_ns);
    if (longest_ns == longest_ns_) return;
    longest_ns_ = longest_ns;
    for (std::uint32_t vf = 0; vf < clients_.size(); ++vf)
        if (clients_[vf].phase == Phase::Awake) place(vf);
}

/// Whether serving the request with the earliest deadline would make some lag exceed the longest
/// request. Only overruns cause that.
bool Proportional::is_rescue_due() const {
    const Virtual served = amount_of(clients_[ready_.least()].left_ns) / weights_;
    return awake_by_limit_.least_key() < now_ + served && ready_.has(awake_by_limit_.least());
}

/// The deadline follows from received service: late service does not postpone it.
void Proportional::begin_request(std::uint32_t vf) {
    Client& client = clients_[vf];
    client.left_ns = client.request_ns;
    client.deadline = client.received + virtual_of(client.request_ns, client.weight);
    ready_.remove(vf);
    waiting_.set(vf, client.received);
}

/// Applies a new weight, or arranges for it; the lag in ns is kept. A larger weight waits while lag
/// > 0 within a request, whose rest would exceed the others' bounds; a smaller one waits for lag =
/// 0: otherwise virtual time would pass faster while others wait for the debt.
void Proportional::take_weight(std::uint32_t vf) {
    Client& client = clients_[vf];
    if (client.next_weight == 0) return;
    const bool counts = client.phase == Phase::Awake || client.phase == Phase::Ghost;
    const Virtual debt = client.received - now_;
    const Virtual exact = (debt < 0 ? -debt : debt) * client.weight;
    if (!counts || exact <= kEven) {
        put_weight_in_force(vf);
    } else if (debt > 0 && client.next_weight < client.weight) {
        debtors_.set(vf, client.received);
    } else if (debt > 0 && !ready_.has(vf)) {
        put_weight_in_force(vf);
    }
}

void Proportional::put_weight_in_force(std::uint32_t vf) {
    Client& client = clients_[vf];
    if (client.phase == Phase::Awake || client.phase == Phase::Ghost) {
        client.received = now_ + (client.received - now_) * client.weight / client.next_weight;
        weights_ += client.next_weight - client.weight;
    }
    client.weight = client.next_weight;
    client.next_weight = 0;
    if (client.phase == Phase::Awake) {
        place(vf);
        begin_request(vf);
    }
    if (client.phase == Phase::Ghost) debtors_.set(vf, client.received);
}

/// Spreads `amount` of ideal service over all that count. Advances in steps: a VF that reaches lag
/// 0 on the way may leave the sum of weights, and the rest moves virtual time faster.
void Proportional::advance(Virtual amount) {
    while (!debtors_.empty()) {
        const Virtual until_paid = (debtors_.least_key() - now_) * weights_;
        if (until_paid > amount) break;
        amount -= until_paid;
        now_ = debtors_.least_key();
        become_even(debtors_.least());
    }
    if (weights_ > 0) now_ += amount / weights_;
}

/// The debt is paid: a ghost goes, a smaller weight takes effect.
void Proportional::become_even(std::uint32_t vf) {
    Client& client = clients_[vf];
    debtors_.remove(vf);
    if (client.phase == Phase::Ghost) {
        weights_ -= client.weight;
        client.phase = client.is_leaving ? Phase::Absent : Phase::Asleep;
        client.is_leaving = false;
    }
    take_weight(vf);
}

}  // namespace vgpu::daemon::scheduler
