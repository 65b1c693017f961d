// SPDX-License-Identifier: MIT
#include "daemon/service/scheduler/scheduler.h"

#include <algorithm>
#include <cassert>

namespace vgpu::daemon::scheduler {

void Scheduler::set(std::uint32_t vf, const VfPolicy& policy, std::int64_t at_ns) {
    advance(at_ns);
    if (vf >= members_.size()) {
        members_.resize(vf + 1);
        capped_.make_room(vf + 1);
    }
    Member& member = members_[vf];
    // Before the policy changes: a lag > 0 stays in the old band.
    if (member.is_in && member.policy.band != policy.band) band_of(vf).leave(vf);
    member.is_in = true;
    member.policy = policy;
    Proportional& band = band_of(vf);
    if (!band.has(vf)) {
        band.join(vf, policy.weight, policy.request_ns);
        // it joins without work; update() would see no change and not wake it
        if (member.is_competing) band.wake(vf);
    }
    band.set_weight(vf, policy.weight);
    band.set_request(vf, policy.request_ns);
    reservations_.set(vf, policy.reservation);
    reservations_.refill(at_ns);
    member.bucket.set(policy.cap, at_ns);
    if (member.is_capped) {
        member.is_capped = false;
        capped_.remove(vf);
    }
    update(vf, at_ns);
}

/// sleep() first, because set() keeps whether the VF is awake, and the number may return.
void Scheduler::remove(std::uint32_t vf, std::int64_t at_ns) {
    if (!has(vf)) return;
    advance(at_ns);
    capped_.remove(vf);
    band_of(vf).leave(vf);
    reservations_.sleep(vf);
    reservations_.set(vf, {});
    members_[vf] = {};
}

void Scheduler::wake(std::uint32_t vf, std::int64_t at_ns) {
    if (!has(vf)) return;
    advance(at_ns);
    members_[vf].has_work = true;
    update(vf, at_ns);
}

void Scheduler::sleep(std::uint32_t vf, std::int64_t at_ns) {
    if (!has(vf)) return;
    advance(at_ns);
    members_[vf].has_work = false;
    update(vf, at_ns);
}

Decision Scheduler::decide(std::int64_t at_ns) {
    advance(at_ns);
    // Terminates: each round decides, or throttles one VF.
    for (;;) {
        Decision decision = choose();
        if (!decision || !members_[decision.vf].bucket.is_on()) return decision;
        const std::int64_t tokens_ns = members_[decision.vf].bucket.tokens_ns(at_ns);
        if (tokens_ns >= std::min(decision.slice_ns, settings_.min_run_ns)) {
            decision.slice_ns = std::min(decision.slice_ns, tokens_ns);
            return decision;
        }
        hold_back(decision.vf, at_ns);
    }
}

void Scheduler::start(const Decision& decision, std::int64_t at_ns) {
    assert(!run_ && decision);
    advance(at_ns);
    run_ = Run{.decision = decision, .started_ns = at_ns, .charged_ns = at_ns};
    if (decision.service == ServiceClass::Reserved)
        // The server's own deadline moves when its budget is used up during the run.
        run_->deadline_ns = reservations_.deadline_ns(decision.vf);
}

/// Throttles a VF with too few tokens now, so that decide() need not find out.
void Scheduler::stop(std::int64_t at_ns) {
    if (!run_) return;
    advance(at_ns);
    const std::uint32_t vf = run_->decision.vf;
    run_.reset();
    if (has(vf) && members_[vf].bucket.is_on() && competes(vf) &&
        members_[vf].bucket.tokens_ns(at_ns) < settings_.min_run_ns)
        hold_back(vf, at_ns);
}

std::optional<std::int64_t> Scheduler::preempt_at(std::int64_t at_ns) const {
    // A slice runs for min_run_ns at least: faster cuts cost more in switches than they serve.
    if (!run_ || !is_outranked()) return std::nullopt;
    return std::max(at_ns, run_->started_ns + settings_.min_run_ns);
}

std::optional<std::int64_t> Scheduler::next_event() const {
    std::optional<std::int64_t> next = reservations_.next_refill();
    if (!capped_.empty() && (!next || capped_.least_key() < *next)) next = capped_.least_key();
    return next;
}

/// Charge first, so that a budget used up at this moment is filled by the same call. Then VFs that
/// have tokens again compete.
void Scheduler::advance(std::int64_t at_ns) {
    charge(at_ns);
    reservations_.refill(at_ns);
    while (!capped_.empty() && capped_.least_key() <= at_ns) {
        const std::uint32_t vf = capped_.least();
        capped_.remove(vf);
        members_[vf].is_capped = false;
        update(vf, at_ns);
    }
}

bool Scheduler::has(std::uint32_t vf) const {
    return vf < members_.size() && members_[vf].is_in;
}

bool Scheduler::competes(std::uint32_t vf) const {
    if (!has(vf)) return false;
    const Member& member = members_[vf];
    return (member.has_work || member.policy.is_strict) && !member.is_capped;
}

std::uint32_t Scheduler::weight(std::uint32_t vf) const {
    return has(vf) ? band_of(vf).weight(vf) : 0;
}

std::int64_t Scheduler::lag_ns(std::uint32_t vf) const {
    return has(vf) ? band_of(vf).lag_ns(vf) : 0;
}

Proportional& Scheduler::band_of(std::uint32_t vf) {
    return bands_[static_cast<std::size_t>(members_[vf].policy.band)];
}

const Proportional& Scheduler::band_of(std::uint32_t vf) const {
    return bands_[static_cast<std::size_t>(members_[vf].policy.band)];
}

void Scheduler::charge(std::int64_t at_ns) {
    if (!run_ || at_ns <= run_->charged_ns) return;
    const std::int64_t ns = at_ns - run_->charged_ns;
    const std::uint32_t vf = run_->decision.vf;
    run_->charged_ns = at_ns;
    if (!has(vf)) return;
    if (members_[vf].bucket.is_on()) members_[vf].bucket.take(ns, at_ns);
    if (run_->decision.service == ServiceClass::Reserved)
        reservations_.charge(vf, ns, at_ns);
    else
        charge_band(vf, ns);
}

/// Running proves work, even if the end of work was reported before the end of the run.
void Scheduler::charge_band(std::uint32_t vf, std::int64_t ns) {
    Proportional& band = band_of(vf);
    const bool is_awake = band.is_awake(vf);
    if (!is_awake) band.wake(vf);
    band.charge(vf, ns);
    if (!is_awake) band.sleep(vf, false);
}

bool Scheduler::is_mid_slice(std::uint32_t vf, std::int64_t at_ns) const {
    return run_ && run_->decision.vf == vf &&
           run_->decision.service == ServiceClass::Proportional &&
           at_ns < run_->started_ns + run_->decision.slice_ns;
}

/// Reports a change of `vf`'s competing to the classes.
void Scheduler::update(std::uint32_t vf, std::int64_t at_ns) {
    Member& member = members_[vf];
    const bool now_competes = competes(vf);
    if (member.is_competing == now_competes) return;
    member.is_competing = now_competes;
    if (now_competes) {
        band_of(vf).wake(vf);
        reservations_.wake(vf, at_ns);
    } else {
        band_of(vf).sleep(vf, is_mid_slice(vf, at_ns));
        reservations_.sleep(vf);
    }
}

/// Throttled until the bucket has a whole slice: short slices would cost world switches.
void Scheduler::hold_back(std::uint32_t vf, std::int64_t at_ns) {
    Member& member = members_[vf];
    const std::int64_t ready_ns = member.bucket.ready_ns(member.policy.request_ns, at_ns);
    member.is_capped = true;
    capped_.set(vf, std::max(ready_ns, at_ns + 1));
    update(vf, at_ns);
}

/// Reservations first, so that none misses its deadline; then the bands in order.
Decision Scheduler::choose() {
    if (const auto vf = reservations_.pick())
        return {ServiceClass::Reserved, *vf, reservations_.budget_ns(*vf)};
    for (Proportional& band : bands_)
        if (const auto vf = band.pick())
            return {ServiceClass::Proportional, *vf, band.left_ns(*vf)};
    return {};
}

/// Whether a VF that may pre-empt has a better claim than the VF in the engine.
bool Scheduler::is_outranked() const {
    const Decision& running = run_->decision;
    if (const auto vf = reservations_.pick()) {
        if (running.service != ServiceClass::Reserved) return true;
        return *vf != running.vf && reservations_.deadline_ns(*vf) < run_->deadline_ns;
    }
    if (running.service == ServiceClass::Reserved) return false;
    for (std::size_t band = 0; band < static_cast<std::size_t>(members_[running.vf].policy.band);
         ++band)
        if (bands_[band].has_work()) return true;
    return false;
}

}  // namespace vgpu::daemon::scheduler
