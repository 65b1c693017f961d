// SPDX-License-Identifier: MIT
#include "daemon/service/wait_account.h"

#include <algorithm>

namespace vgpu::daemon {

void WaitAccount::on_wake(std::uint32_t number, Nanoseconds at) {
    Vf& vf = vfs_[number];
    if (!vf.has_work && !vf.since) vf.since = at;
    vf.has_work = true;
}

void WaitAccount::on_parked_idle(std::uint32_t number, Nanoseconds at) {
    Vf& vf = vfs_[number];
    if (vf.since) vf.waited += std::max(Nanoseconds{0}, at - *vf.since);
    vf.since.reset();
    vf.has_work = false;
}

void WaitAccount::on_run(std::uint32_t number, Nanoseconds ns, Nanoseconds end) {
    Vf& vf = vfs_[number];
    // a wake during the run is no wait: it was in the engine
    if (vf.since) vf.waited += std::max(Nanoseconds{0}, end - ns - *vf.since);
    vf.since.reset();
    if (vf.has_work) vf.since = end;
}

void WaitAccount::on_lost() {
    for (auto& [number, vf] : vfs_) vf.since.reset();
}

Nanoseconds WaitAccount::waited(std::uint32_t vf) const {
    const auto at = vfs_.find(vf);
    return at == vfs_.end() ? Nanoseconds{0} : at->second.waited;
}

}  // namespace vgpu::daemon
