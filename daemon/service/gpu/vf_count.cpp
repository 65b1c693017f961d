// SPDX-License-Identifier: MIT
//
// GpuModel: changes the number of enabled VFs, for drivers that must disable all VFs to do so.
// Checks that all VFs are idle, enables VFs through the backend, and reads the facts again. The
// number of enabled VFs is not on record. After a crash during these steps, the next vgpud enables
// as many VFs as its record needs, all at once.
#include "daemon/service/gpu/gpu.h"

#include <fmt/format.h>
#include <algorithm>

namespace vgpu::daemon {

namespace {

std::vector<VfSize> sizes_of(const VfCount& count) {
    std::vector<VfSize> sizes;
    for (const auto& [vf, bytes] : count.vram_bytes)
        sizes.push_back({.vf = vf, .vram_bytes = bytes});
    return sizes;
}

}  // namespace

Result<> GpuModel::enable_vfs(const VfCount& count, Force force) {
    TRY_VOID(check_usable());
    TRY_VOID(check_gpu());
    if (count.to < count.from) return discard_new_vfs(count);
    if (count.to <= info_.enabled_vfs) return {};
    TRY_VOID(check_offered(id_, *abilities_, Change::Vfs, ""));
    for (const std::uint32_t vf : vfs()) refresh(vf);
    TRY_VOID(check_usable());
    TRY_VOID(
        check_all_idle({(*abilities_)[Change::Vfs].needs, Change::Vfs}, id_, {.force = force}));
    const auto enabled = pf_.ask(&Backend::enable_vfs, count.to, sizes_of(count));
    if (!pf_.is_connected()) return enabled;
    if (!enabled) show_lost_vfs(enabled.error());
    make_refresh_due();
    are_shares_due_ = true;
    if (enabled) return check_gpu();
    return tl::make_unexpected(
        Error{enabled.error().id, fmt::format("{}: {}", id_, enabled.error().cause)});
}

/// After enable_vfs() has failed, shows the VFs that have disappeared as ABSENT, with the failure
/// as the reason. step() tries to recreate these VFs with the same numbers.
void GpuModel::show_lost_vfs(const Error& cause) {
    for (const std::uint32_t vf : vfs()) {
        const auto active = pf_.ask(&Backend::get_vf, vf);
        if (!active || active->state != VGPU_PF_VF_ABSENT || vfs_.at(vf).is_absent()) continue;
        show_unrestored(
            vfs_.at(vf).defined,
            fmt::format("'{}' was disabled to change the number of VFs, which then failed: {}",
                        vfs_.at(vf).defined.spec.name, cause.cause));
    }
    restore_at_ = Nanoseconds{0};
}

/// Rolls back enable_vfs(), except the number of VFs: the driver can only disable all VFs at once.
/// enable_vfs() has given VRAM to VFs that were then not created; scrub_absent() frees this VRAM.
/// It does nothing for a VF that was created and destroyed meanwhile, and enables no VF that is
/// missing.
Result<> GpuModel::discard_new_vfs(const VfCount& count) {
    for (const VfSize& size : sizes_of(count)) {
        if (vfs_.contains(size.vf) || size.vram_bytes == 0) continue;
        TRY_VOID(pf_.ask(&Backend::scrub_absent, size));
    }
    make_refresh_due();
    return {};
}

/// Checks, before vgpud disables VFs to recreate those on record up to `count`, what enable_vfs()
/// checks.
Result<> GpuModel::check_growth(std::uint32_t count) const {
    if (info_.enabled_vfs == 0 || count <= info_.enabled_vfs) return {};
    return check_all_idle({(*abilities_)[Change::Vfs].needs, Change::Vfs}, id_, {});
}

/// Ignores a refusal, because each VF that could not be enabled then shows the reason itself.
void GpuModel::enable_recorded_vfs() {
    if ((*abilities_)[Change::Vfs].needs != Needs::AllIdle) return;
    std::uint32_t count = 0;
    std::vector<VfSize> sizes;
    for (const auto& [vf, one] : record_.get().vfs) {
        if (one.is_releasing) continue;
        count = std::max(count, vf);
        const VfResources& resources = one.next ? one.next->resources : one.spec.resources;
        sizes.push_back({.vf = vf, .vram_bytes = resources.vram_bytes});
    }
    if (count <= info_.enabled_vfs || !check_growth(count)) return;
    // reads the number also after a failure, for check_growth()
    static_cast<void>(pf_.ask(&Backend::enable_vfs, count, sizes));
    if (pf_.is_connected()) static_cast<void>(read_info());
}

}  // namespace vgpu::daemon
