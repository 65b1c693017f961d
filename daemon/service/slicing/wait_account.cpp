// SPDX-License-Identifier: MIT
#include "daemon/service/slicing/wait_account.h"

#include <algorithm>

namespace vgpu::daemon {

void WaitAccount::on_wake(std::uint32_t number, Nanoseconds at) {
    Vf& vf = vfs_[number];
    if (!vf.has_work && !vf.since) vf.since = at;
    vf.has_work = true;
}

void WaitAccount::end_wait(Vf& vf, Nanoseconds at) {
    if (!vf.since) return;
    const Nanoseconds waited = std::max(Nanoseconds{0}, at - *vf.since);
    vf.waited += waited;
    vf.waits.add(waited, at);
    vf.since.reset();
}

void WaitAccount::on_inactive_idle(std::uint32_t number, Nanoseconds at) {
    Vf& vf = vfs_[number];
    end_wait(vf, at);
    vf.has_work = false;
}

void WaitAccount::on_run(std::uint32_t number, Nanoseconds ns, Nanoseconds end) {
    Vf& vf = vfs_[number];
    // if the VF woke during the run, end_wait() counts a wait of 0
    end_wait(vf, end - ns);
    if (vf.has_work) vf.since = end;
}

/// The lost event may be the end of a wait, which would otherwise count until the next run.
void WaitAccount::on_lost() {
    for (auto& [number, vf] : vfs_) vf.since.reset();
}

Nanoseconds WaitAccount::waited(std::uint32_t vf) const {
    const auto at = vfs_.find(vf);
    return at == vfs_.end() ? Nanoseconds{0} : at->second.waited;
}

Nanoseconds WaitAccount::quantile(std::uint32_t vf, double part, Nanoseconds now) const {
    const auto at = vfs_.find(vf);
    return at == vfs_.end() ? Nanoseconds{0} : at->second.waits.quantile(part, now);
}

}  // namespace vgpu::daemon
