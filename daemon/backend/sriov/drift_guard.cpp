// SPDX-License-Identifier: MIT
#include "daemon/backend/sriov/drift_guard.h"

namespace vgpu::daemon::sriov {

DriftGuard::Verdict DriftGuard::on_difference(const std::string& what, Nanoseconds now) {
    Row& row = rows_[what];
    if (row.is_abandoned) return Verdict::Leave;
    if (row.tries > 0 && now - row.last >= kForget) row = Row{};
    if (row.tries > 0 && now - row.last < kPause) return Verdict::Wait;
    if (row.tries == kTries) {
        row.is_abandoned = true;
        return Verdict::Abandon;
    }
    ++row.tries;
    row.last = now;
    return Verdict::Restore;
}

}  // namespace vgpu::daemon::sriov
