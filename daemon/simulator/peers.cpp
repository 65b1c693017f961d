// SPDX-License-Identifier: MIT
#include "daemon/simulator/peers.h"

#include <algorithm>

namespace vgpu::simulator {

void PeerPolicy::set(std::uint32_t vf, const VfPolicy& policy, std::int64_t /*at_ns*/) {
    if (vf >= vfs_.size()) vfs_.resize(vf + 1);
    vfs_[vf].weight = policy.weight;
    if (vfs_[vf].is_in) return;
    vfs_[vf].is_in = true;
    vfs_[vf].has_work = false;
    entered(vf);
}

void PeerPolicy::remove(std::uint32_t vf, std::int64_t /*at_ns*/) {
    vfs_[vf].is_in = vfs_[vf].has_work = false;
}

void PeerPolicy::wake(std::uint32_t vf, std::int64_t /*at_ns*/) {
    vfs_[vf].has_work = true;
}

void PeerPolicy::sleep(std::uint32_t vf, std::int64_t /*at_ns*/) {
    vfs_[vf].has_work = false;
}

std::uint32_t PeerPolicy::next_in_circle(std::uint32_t last) const {
    const auto count = static_cast<std::uint32_t>(vfs_.size());
    for (std::uint32_t i = 1; i <= count; ++i) {
        const std::uint32_t vf = (last + i) % count;
        if (vfs_[vf].has_work) return vf;
    }
    return 0;
}

Grant GimRoundRobin::next(std::int64_t /*at_ns*/) {
    // the loop ends, because each skipped slice reduces a debt
    for (;;) {
        const std::uint32_t vf = next_in_circle(current_);
        if (vf == 0) return {};
        current_ = vf;
        if (debt_ns_[vf] > slice_ns_) {
            debt_ns_[vf] -= slice_ns_;
            continue;
        }
        granted_ns_ = std::max(slice_ns_ - debt_ns_[vf], slice_ns_ / 2);
        debt_ns_[vf] = std::max<std::int64_t>(0, debt_ns_[vf] - (slice_ns_ - granted_ns_));
        return {.vf = vf, .slice_ns = granted_ns_};
    }
}

void GimRoundRobin::ended(std::int64_t at_ns) {
    debt_ns_[current_] += std::max<std::int64_t>(0, at_ns - started_ns_ - granted_ns_);
}

void GimRoundRobin::entered(std::uint32_t vf) {
    if (vf >= debt_ns_.size()) debt_ns_.resize(vf + 1);
    debt_ns_[vf] = 0;
}

Grant XeSlices::next(std::int64_t /*at_ns*/) {
    current_ = next_in_circle(current_);
    return {.vf = current_, .slice_ns = quantum_ns_};
}

void GvtCredit::entered(std::uint32_t vf) {
    if (vf >= credit_ns_.size()) credit_ns_.resize(vf + 1);
    credit_ns_[vf] = 0;
    least_recent_.push_back(vf);
    stage_ = 0;
    refill();
}

void GvtCredit::remove(std::uint32_t vf, std::int64_t at_ns) {
    PeerPolicy::remove(vf, at_ns);
    least_recent_.remove(vf);
}

Grant GvtCredit::next(std::int64_t at_ns) {
    advance(at_ns);
    const auto at = std::find_if(least_recent_.begin(), least_recent_.end(), [&](std::uint32_t vf) {
        return vfs_[vf].has_work && credit_ns_[vf] > 0;
    });
    if (at == least_recent_.end()) return {};
    current_ = *at;
    least_recent_.splice(least_recent_.end(), least_recent_, at);
    return {.vf = current_, .slice_ns = kTickNs};
}

void GvtCredit::ended(std::int64_t at_ns) {
    credit_ns_[current_] -= at_ns - started_ns_;
}

void GvtCredit::advance(std::int64_t at_ns) {
    if (refill_ns_ == 0) refill_ns_ = kPeriodNs;
    while (refill_ns_ <= at_ns) {
        refill_ns_ += kPeriodNs;
        stage_ = (stage_ + 1) % kStages;
        refill();
    }
}

void GvtCredit::refill() {
    std::int64_t weights = 0;
    for (const std::uint32_t vf : least_recent_) weights += vfs_[vf].weight;
    for (const std::uint32_t vf : least_recent_) {
        const std::int64_t part = kPeriodNs / weights * vfs_[vf].weight;
        credit_ns_[vf] = stage_ == 0 ? part : credit_ns_[vf] + part;
    }
}

void StartTimeFair::entered(std::uint32_t vf) {
    if (vf >= tags_.size()) tags_.resize(vf + 1);
    tags_[vf] = now_;
}

void StartTimeFair::wake(std::uint32_t vf, std::int64_t at_ns) {
    PeerPolicy::wake(vf, at_ns);
    tags_[vf] = std::max(tags_[vf], now_);
}

Grant StartTimeFair::next(std::int64_t /*at_ns*/) {
    std::uint32_t best = 0;
    for (std::uint32_t vf = 1; vf < vfs_.size(); ++vf)
        if (vfs_[vf].has_work && (best == 0 || tags_[vf] < tags_[best])) best = vf;
    if (best == 0) return {};
    current_ = best;
    now_ = tags_[best];
    return {.vf = best, .slice_ns = slice_ns_};
}

void StartTimeFair::ended(std::int64_t at_ns) {
    tags_[current_] += static_cast<double>(at_ns - started_ns_) / vfs_[current_].weight;
}

}  // namespace vgpu::simulator
