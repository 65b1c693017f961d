// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/vfio_user/stall_budget.h"

#include <algorithm>
#include <cassert>

namespace vgpu::softgpu::vfio_user {

StallBudget::StallBudget(Spec spec, Time now) : spec_(spec), left_(spec.capacity), settled_(now) {}

bool StallBudget::is_spent(Time now) {
    settle(now);
    return is_spent_;
}

StallBudget::Time StallBudget::begin(Time now) {
    settle(now);
    waits_++;
    return now + left_;
}

void StallBudget::end(Time now) {
    assert(waits_ > 0);
    settle(now);
    waits_--;
}

/// Accounts time lazily, at each call: waiting drains, idling refills.
void StallBudget::settle(Time now) {
    const auto passed = now - settled_;
    const auto change = waits_ > 0 ? -passed : passed * spec_.refill_percent / 100;
    left_ = std::clamp<Clock::duration>(left_ + change, Clock::duration::zero(), spec_.capacity);
    settled_ = now;
    if (left_ == Clock::duration::zero()) is_spent_ = true;
    if (left_ >= spec_.reserve) is_spent_ = false;
}

}  // namespace vgpu::softgpu::vfio_user
