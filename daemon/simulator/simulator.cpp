// SPDX-License-Identifier: MIT
#include "daemon/simulator/simulator.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace vgpu::simulator {

namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

}  // namespace

Simulator::Simulator(const Simulation& setup, Policy& policy, Observer* observer)
    : setup_(setup), policy_(policy), observer_(observer), overrun_rng_(setup.seed) {
    vfs_.resize(setup.vfs.size() + 1);
    figures_.vfs.resize(vfs_.size());
    assert(std::is_sorted(setup.changes.begin(), setup.changes.end(),
                          [](const Change& a, const Change& b) { return a.at_ns < b.at_ns; }));
}

Figures Simulator::run() {
    for (std::uint32_t vf = 1; vf < vfs_.size(); ++vf)
        if (!setup_.vfs[vf - 1].joins_later) join(vf, setup_.vfs[vf - 1].policy.weight);
    while (!is_over()) {
        deliver();
        const Grant grant = policy_.next(now_ns_);
        if (observer_) observer_->decided(grant.vf);
        if (grant.vf == 0) {
            idle();
            continue;
        }
        if (grant.vf != loaded_) switch_to(grant.vf);
        run_slice(grant);
    }
    figures_.elapsed_ns = now_ns_;
    return std::move(figures_);
}

bool Simulator::is_over() const {
    if (setup_.max_runs > 0 && figures_.runs >= setup_.max_runs) return true;
    if (setup_.duration_ns > 0 && now_ns_ >= setup_.duration_ns) return true;
    return with_work_ == 0 && next_input() == kNever;
}

/// Time of the next arrival or change; kNever if there is none.
std::int64_t Simulator::next_input() const {
    std::int64_t next = arrivals_.next_ns();
    if (next_change_ < setup_.changes.size())
        next = std::min(next, setup_.changes[next_change_].at_ns);
    return next;
}

std::int64_t Simulator::next_event() const {
    return std::min(next_input(), policy_.next_event().value_or(kNever));
}

/// Advances time to `at_ns` while no VF runs. Handles each event at its time.
void Simulator::pass_to(std::int64_t at_ns) {
    for (std::int64_t next = next_event(); next <= at_ns; next = next_event()) {
        now_ns_ = std::max(now_ns_, next);
        deliver();
        policy_.advance(now_ns_);
    }
    now_ns_ = std::max(now_ns_, at_ns);
}

void Simulator::deliver() {
    while (next_input() <= now_ns_) {
        const bool is_change = next_change_ < setup_.changes.size() &&
                               setup_.changes[next_change_].at_ns <= now_ns_ &&
                               setup_.changes[next_change_].at_ns <= arrivals_.next_ns();
        if (is_change) {
            deliver_change(setup_.changes[next_change_++]);
            continue;
        }
        arrive(arrivals_.take());
    }
}

void Simulator::deliver_change(const Change& change) {
    Vf& vf = vfs_[change.vf];
    if (change.kind == ChangeKind::Join && !vf.is_in) join(change.vf, change.weight);
    if (change.kind == ChangeKind::Leave && vf.is_in) leave(change.vf);
    if (change.kind != ChangeKind::Weight || !vf.is_in) return;
    VfPolicy policy = setup_.vfs[change.vf - 1].policy;
    policy.weight = change.weight;
    policy_.set(change.vf, policy, now_ns_);
    if (observer_) observer_->reweighted(change.vf, change.weight);
}

void Simulator::arrive(const Arrival& arrival) {
    Vf& vf = vfs_[arrival.vf];
    if (!vf.is_in || vf.incarnation != arrival.incarnation) return;
    if (arrival.fault.kind != BadKernel::None) return submit(arrival, kEndlessNs);
    const Workload& work = setup_.vfs[arrival.vf - 1].work;
    arrivals_.follow(work, arrival);
    if (vf.jobs.size() >= kMaxJobs) {
        ++figures_.vfs[arrival.vf].dropped;
        return;
    }
    submit(arrival, is_backlogged(arrival.vf) ? kEndlessNs : arrival.work_ns);
}

void Simulator::submit(const Arrival& arrival, std::int64_t work_ns) {
    Vf& vf = vfs_[arrival.vf];
    vf.jobs.push_back({arrival.at_ns, work_ns});
    if (observer_) observer_->arrived(arrival.vf, vf.jobs.back().left_ns);
    if (vf.has_work) return;
    vf.has_work = true;
    vf.waits_since_ns = now_ns_;
    ++with_work_;
    policy_.wake(arrival.vf, now_ns_);
    if (observer_) observer_->competes(arrival.vf);
}

void Simulator::join(std::uint32_t number, std::uint32_t weight) {
    Vf& vf = vfs_[number];
    VfPolicy policy = setup_.vfs[number - 1].policy;
    policy.weight = weight;
    vf.is_in = true;
    ++vf.incarnation;
    policy_.set(number, policy, now_ns_);
    if (observer_) observer_->joined(number, weight);
    arrivals_.begin(setup_.vfs[number - 1].work, {now_ns_, number, vf.incarnation}, setup_.seed);
}

void Simulator::leave(std::uint32_t number) {
    Vf& vf = vfs_[number];
    if (vf.has_work) --with_work_;
    vf.jobs.clear();
    vf.is_in = vf.has_work = false;
    policy_.remove(number, now_ns_);
    if (observer_) observer_->left(number);
}

void Simulator::run_out_of_work(std::uint32_t number) {
    Vf& vf = vfs_[number];
    if (!vf.has_work) return;
    vf.has_work = false;
    --with_work_;
    policy_.sleep(number, now_ns_);
    if (observer_) observer_->stops_competing(number, is_mid_slice(number));
}

/// Advances time to the next event or the end of the simulation, and at least by 1 ns, so that the
/// simulation cannot stand still.
void Simulator::idle() {
    const std::int64_t from_ns = now_ns_;
    std::int64_t until_ns = next_event();
    if (setup_.duration_ns > 0) until_ns = std::min(until_ns, setup_.duration_ns);
    if (until_ns == kNever) until_ns = now_ns_ + 1;
    now_ns_ = std::max(now_ns_ + 1, until_ns);
    if (with_work_ > 0) figures_.idle_with_work_ns += now_ns_ - from_ns;
    policy_.advance(now_ns_);
    figures_.idle_ns += now_ns_ - from_ns;
}

void Simulator::switch_to(std::uint32_t vf) {
    const std::int64_t from_ns = now_ns_;
    pass_to(now_ns_ + setup_.device.decision_ns + setup_.device.switch_ns);
    figures_.switching_ns += now_ns_ - from_ns;
    ++figures_.switches;
    loaded_ = vf;
}

void Simulator::begin_slice(const Grant& grant) {
    VfFigures& figures = figures_.vfs[grant.vf];
    const Vf& vf = vfs_[grant.vf];
    if (vf.has_work)
        figures.longest_wait_ns = std::max(figures.longest_wait_ns, now_ns_ - vf.waits_since_ns);
    ++figures.runs;
    ++figures_.runs;
    policy_.started(now_ns_);
}

void Simulator::run_slice(const Grant& grant) {
    Vf& vf = vfs_[grant.vf];
    const bool is_strict = setup_.vfs[grant.vf - 1].policy.is_strict;
    if (!vf.is_in || (!vf.has_work && !is_strict)) return;
    begin_slice(grant);
    std::int64_t end_ns = now_ns_ + grant.slice_ns;
    slice_ = {grant.vf, end_ns};
    bool is_overrun = false;
    while (vf.is_in) {
        const std::int64_t work_end_ns = vf.has_work ? end_of_work(grant.vf) : kNever;
        serve(grant, std::max(now_ns_, std::min({end_ns, work_end_ns, next_event()})));
        if (vf.has_work && now_ns_ >= work_end_ns) {
            complete_job(grant.vf);
            if (!vf.has_work && !is_strict) break;
        }
        if (next_event() <= now_ns_) {
            deliver();
            policy_.advance(now_ns_);
        }
        if (now_ns_ < end_ns) continue;
        if (is_overrun || !vf.has_work || !overrun_rng_.chance(setup_.device.overrun_part)) break;
        is_overrun = true;
        end_ns = now_ns_ + overrun_of(figures_.vfs[grant.vf]);
    }
    slice_ = {};
    vf.waits_since_ns = now_ns_;
    policy_.ended(now_ns_);
}

/// Draws the time for which a VF that overruns keeps the engine beyond its slice.
std::int64_t Simulator::overrun_of(VfFigures& figures) {
    const std::int64_t ns = std::min(overrun_rng_.exponential(setup_.device.overrun_mean_ns),
                                     setup_.device.overrun_max_ns);
    figures.worst_overrun_ns = std::max(figures.worst_overrun_ns, ns);
    return ns;
}

void Simulator::serve(const Grant& grant, std::int64_t until_ns) {
    const std::int64_t ns = until_ns - now_ns_;
    now_ns_ = until_ns;
    if (ns == 0) return;
    policy_.advance(now_ns_);
    if (observer_) observer_->served(grant.vf, ns, false, now_ns_);
    Vf& vf = vfs_[grant.vf];
    VfFigures& figures = figures_.vfs[grant.vf];
    if (vf.has_work && !is_backlogged(grant.vf)) vf.jobs.front().left_ns -= ns;
    figures.service_ns += ns;
    figures_.service_ns += ns;
}

std::int64_t Simulator::end_of_work(std::uint32_t vf) const {
    return is_backlogged(vf) ? kNever : now_ns_ + vfs_[vf].jobs.front().left_ns;
}

void Simulator::complete_job(std::uint32_t number) {
    Vf& vf = vfs_[number];
    figures_.vfs[number].complete(vf.jobs.front(), setup_.vfs[number - 1].work, now_ns_);
    vf.jobs.pop_front();
    if (vf.jobs.empty()) run_out_of_work(number);
}

bool Simulator::is_mid_slice(std::uint32_t vf) const {
    return slice_.vf == vf && now_ns_ < slice_.end_ns;
}

bool Simulator::is_backlogged(std::uint32_t vf) const {
    return setup_.vfs[vf - 1].work.arrivals == Arrivals::Backlogged;
}

void VfFigures::complete(const Job& job, const Workload& work, std::int64_t at_ns) {
    const std::int64_t ns = at_ns - job.arrived_ns;
    ++jobs;
    response_ns.push_back(ns);
    if (work.deadline_ns > 0 && ns > work.deadline_ns) ++missed;
}

std::int64_t quantile(std::vector<std::int64_t> values, double part) {
    if (values.empty()) return 0;
    const auto last = static_cast<double>(values.size() - 1);
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(part * last + 0.5);
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

}  // namespace vgpu::simulator
