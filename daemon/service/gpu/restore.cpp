// SPDX-License-Identifier: MIT
//
// GpuModel: VFs that are not in service as defined. vgpud shows each of these VFs with the reason.
// vgpud tries to provision a VF without resources again, until that succeeds or the operator
// destroys the VF. If another VF is in service under the number of a defined VF, vgpud changes
// neither VF.
#include "daemon/service/gpu/gpu.h"

#include <fmt/format.h>
#include <algorithm>

namespace vgpu::daemon {

bool GpuModel::is_replaced(std::uint32_t vf) const {
    const auto defined = record_.uuid(vf);
    return defined && !is_vf(vfs_.at(vf).active, *defined);
}

std::string GpuModel::condition(std::uint32_t vf) const {
    const auto at = vfs_.find(vf);
    if (at == vfs_.end()) return "";
    const Vf& one = at->second;
    if (one.refusal && one.refusal->generation == one.resource_generation())
        return one.refusal->text;
    if (one.is_absent() || !is_replaced(vf)) return "";
    const std::string name = record_.get().vfs.at(vf).spec.name;
    return fmt::format(
        "'{}' is defined here, but another VF {} (UUID {}) is in service; destroy that other VF to "
        "restore '{}'",
        name, vf, uuid_text(one.active.uuid.value_or(Uuid{})), name);
}

std::size_t GpuModel::count_vfs_with_problems() const {
    return static_cast<std::size_t>(
        std::count_if(vfs_.begin(), vfs_.end(),
                      [this](const auto& entry) { return !condition(entry.first).empty(); }));
}

void GpuModel::record_refusal(std::uint32_t vf, std::string text) {
    Vf& one = vfs_.at(vf);
    one.refusal = Vf::Refusal{.generation = one.resource_generation(), .text = std::move(text)};
}

/// Shows `desired` as a VF without resources. Emits an event, unless the VF shows `why` already.
void GpuModel::show_unrestored(const VfRecord& desired, std::string why) {
    if (condition(desired.vf) != why) emit(desired.vf, EventKind::NotRestored, why);
    show_absent(desired);
    record_refusal(desired.vf, std::move(why));
}

/// Enters the VF in vfs_ with the state ABSENT.
void GpuModel::show_absent(const VfRecord& desired) {
    Vf& one = vfs_[desired.vf];
    one.active = {.vf = desired.vf};
    one.defined = desired;
}

/// Drops the counters and waits of the scrubbed VF. The VF stays in vfs_ as ABSENT, in case the PF
/// core is lost before the VF has resources again. Keeps the refusal, so that it is not logged
/// again.
void GpuModel::reset_vf(const VfRecord& desired) {
    auto refusal = std::move(vfs_[desired.vf].refusal);
    forget(desired.vf);
    show_absent(desired);
    vfs_.at(desired.vf).refusal = std::move(refusal);
}

/// Call it when the PF core reports the VF as ABSENT. Forgets a VF that is not defined or is being
/// destroyed; keeps any other VF in vfs_, for restore_missing().
void GpuModel::record_absent(const VfFacts& absent) {
    const GpuRecord record = record_.get();
    const auto desired = record.vfs.find(absent.vf);
    const VfRecord* known = desired == record.vfs.end() ? nullptr : &desired->second;
    if (action_for(known, absent) == VfAction::Forget) return forget(absent.vf);
    const auto at = vfs_.find(absent.vf);
    if (at != vfs_.end() && at->second.is_absent())
        at->second.active = absent;
    else
        show_unrestored(desired->second, fmt::format("'{}' was released by another program",
                                                     desired->second.spec.name));
}

void GpuModel::restore_missing(Nanoseconds now) {
    if (now < restore_at_ || !may_plan()) return;
    const auto absent = numbers_where(vfs_, [](const Vf& one) { return one.is_absent(); });
    if (absent.empty()) return;
    // Missing resources rarely become free by themselves. finish_scrub(), redefine() and
    // show_lost_vfs() set restore_at_ to 0, so that the next step tries at once.
    restore_at_ = now + kRestoreRetry;
    enable_recorded_vfs();
    const GpuRecord record = record_.get();
    for (const std::uint32_t vf : absent) {
        const auto at = record.vfs.find(vf);
        if (at != record.vfs.end() && !recreate(at->second)) return;
    }
    make_refresh_due();
    are_members_stale_ = true;
}

/// Destroys a VF without resources. First scrubs it, because a vendor's VF that looks ABSENT may
/// hold the data of its last user (Backend::scrub_absent()).
Result<> GpuModel::forget_definition(std::uint32_t vf) {
    TRY_VOID(scrub_absent(vfs_.at(vf).defined));
    GpuRecord record = record_.get();
    record.vfs.erase(vf);
    TRY_VOID(commit(record));
    reset_assignment_mode(vfs_.at(vf).defined);
    forget(vf);
    emit(vf, EventKind::Released,
         fmt::format("VF {} is no longer defined; it had no resources", vf));
    return {};
}

Result<> GpuModel::redefine(std::uint32_t vf, const VfResources& resources) {
    GpuRecord record = record_.get();
    VfRecord& one = record_in(record, vf);
    one.spec.resources = resources;
    one.next.reset();
    TRY_VOID(commit(record));
    restore_at_ = Nanoseconds{0};
    return recreate(one);
}

Result<> GpuModel::check_in_service(std::uint32_t vf) const {
    if (!vfs_.at(vf).is_absent()) return {};
    const std::string why = condition(vf);
    return fail(ErrorId::WrongState, fmt::format("{} has no resources now: {}", describe_name(vf),
                                                 why.empty() ? "it is being created" : why));
}

Result<> GpuModel::check_defined(std::uint32_t vf) const {
    if (vfs_.at(vf).is_absent()) return {};
    const std::string why = condition(vf);
    if (why.empty()) return {};
    return fail(ErrorId::WrongState, fmt::format("{}/vf{}: {}", id_, vf, why));
}

}  // namespace vgpu::daemon
