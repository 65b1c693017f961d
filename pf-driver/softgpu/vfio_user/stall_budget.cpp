// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/vfio_user/stall_budget.h"

#include <algorithm>
#include <cassert>

namespace vgpu::softgpu::vfio_user {

StallBudget::StallBudget(Spec spec, Time now) : spec_(spec), left_(spec.capacity), refilled_(now) {}

bool StallBudget::is_spent(Time now) {
    refill(now);
    return is_spent_;
}

StallBudget::Time StallBudget::begin(Time now) {
    refill(now);
    waits_++;
    return now + left_;
}

void StallBudget::end(Time now) {
    assert(waits_ > 0);
    refill(now);
    waits_--;
}

/// Computes the level at `now`: since the last call, a charged wait drained the bucket, or time
/// without a charged wait refilled it.
void StallBudget::refill(Time now) {
    const auto passed = now - refilled_;
    const auto change = waits_ > 0 ? -passed : passed * spec_.refill_percent / 100;
    left_ = std::clamp<Clock::duration>(left_ + change, Clock::duration::zero(), spec_.capacity);
    refilled_ = now;
    if (left_ == Clock::duration::zero()) is_spent_ = true;
    if (left_ >= spec_.reserve) is_spent_ = false;
}

}  // namespace vgpu::softgpu::vfio_user
