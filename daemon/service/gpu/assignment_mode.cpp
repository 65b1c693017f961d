// SPDX-License-Identifier: MIT
//
// GpuModel: changes of settings, and which driver gets the functions of VFs (assignment modes).
// GpuModel sets a defined assignment mode before it provisions the VF, and again if the platform
// restarts or another program changes the mode. While the defined mode is Default, the platform
// decides, and vgpud only shows the mode in force.
#include "daemon/service/config/capacity.h"
#include "daemon/service/gpu/gpu.h"

#include <fmt/format.h>

namespace vgpu::daemon {

namespace {

/// True if the VF is on record and is not being destroyed.
bool is_defined_in(const GpuRecord& record, std::uint32_t vf) {
    const auto at = record.vfs.find(vf);
    return at != record.vfs.end() && !at->second.is_releasing;
}

AssignmentMode assignment_mode_in(const GpuRecord& record, std::uint32_t vf) {
    const auto at = record.vfs.find(vf);
    return at == record.vfs.end() ? AssignmentMode::Default
                                  : at->second.spec.assignment_policy.assignment_mode;
}

}  // namespace

/// Checks the settings and makes them durable, then sets the changed assignment modes. If a mode
/// cannot be set, rolls back the record and the modes.
Result<> GpuModel::apply_settings(const GpuRecord& before, const GpuRecord& after,
                                  const Requester& requester) {
    TRY_VOID(admit(after));
    TRY_VOID(check_needs(before, after, requester));
    TRY_VOID(commit(after));
    const auto changed = change_assignment_modes(before, after, requester.force);
    if (!changed) put(0, before);
    return changed;
}

Result<> GpuModel::check_needs(const GpuRecord& before, const GpuRecord& after,
                               const Requester& requester) const {
    TRY_VOID(check_settings(capacity(), before.settings, after.settings));
    TRY_VOID(check_all_idle(need_of(*abilities_, differences(before.settings, after.settings)),
                            "the GPU", requester));
    for (const auto& [vf, one] : after.vfs) {
        const auto known = before.vfs.find(vf);
        VfSpec from = known == before.vfs.end() ? VfSpec{} : known->second.spec;
        from.resources = one.spec.resources;  // resize() checks changes of resources
        const Need need = need_of(*abilities_, differences(from, one.spec));
        if (need.needs == Needs::Nothing) continue;
        TRY_VOID(check_all_idle(need, describe_name(vf), requester));
        TRY_VOID(check_owner(vf, "set", requester.force, requester.owner));
        TRY_VOID(check_attached(vf, "set", requester.force));
    }
    return {};
}

Result<> GpuModel::change_assignment_modes(const GpuRecord& before, const GpuRecord& after,
                                           Force force) {
    const TakeFromHost take = force == Force::Yes ? TakeFromHost::Yes : TakeFromHost::No;
    std::vector<std::uint32_t> changed;
    for (const auto& [vf, one] : after.vfs) {
        if (one.spec.assignment_policy.assignment_mode == assignment_mode_in(before, vf)) continue;
        const auto set = set_assignment_mode(vf, one.spec.assignment_policy.assignment_mode, take);
        if (!set) {
            for (const std::uint32_t other : changed)
                if (const auto back =
                        set_assignment_mode(other, assignment_mode_in(before, other), take);
                    !back)
                    emit(other, EventKind::AssignmentModeFailed, back.error().cause);
            return set;
        }
        changed.push_back(vf);
    }
    return {};
}

Result<> GpuModel::set_assignment_mode(std::uint32_t vf, AssignmentMode assignment_mode,
                                       TakeFromHost take) {
    if (!ports_.assignment_mode)
        return fail(
            ErrorId::AssignmentRefused,
            fmt::format("{}/vf{}: assignment modes of this GPU cannot be changed", id_, vf));
    if (const auto set = ports_.assignment_mode->set(vf, assignment_mode, take); !set)
        return fail(set.error().id, fmt::format("{}/vf{}: assignment mode '{}': {}", id_, vf,
                                                name_of(assignment_mode), set.error().cause));
    if (const auto at = vfs_.find(vf); at != vfs_.end()) {
        at->second.assignment_mode_condition.clear();
        read_assignment_mode(at->second);
    }
    return {};
}

/// Sets one.assignment_mode to the mode in force, or to Default if the mode cannot be read.
void GpuModel::read_assignment_mode(Vf& one) {
    if (ports_.assignment_mode)
        one.assignment_mode =
            ports_.assignment_mode->get(one.defined.vf).value_or(AssignmentMode::Default);
}

/// Sets the mode Default. Call it when the VF of `record` is gone, so that the next VF with the
/// same number begins with the default assignment mode.
void GpuModel::reset_assignment_mode(const VfRecord& record) {
    if (record.spec.assignment_policy.assignment_mode == AssignmentMode::Default ||
        !ports_.assignment_mode)
        return;
    if (const auto back = set_assignment_mode(record.vf, AssignmentMode::Default); !back)
        emit(record.vf, EventKind::AssignmentModeFailed, back.error().cause);
}

/// A claim of a domain is made before libvirt binds the function. For a domain without a claim,
/// kOwnerGrace gives QEMU the time to open the function.
bool GpuModel::may_be_libvirts(Vf& one) {
    if (one.assignment_mode != AssignmentMode::VfioPci) {
        one.vfio_bound_since.reset();
        return false;
    }
    const Nanoseconds now = ports_.clock.now();
    if (!one.vfio_bound_since) one.vfio_bound_since = now;
    return one.active.is_attached || now - *one.vfio_bound_since < kOwnerGrace ||
           has_running_domain(one.defined.owner);
}

/// Sets the defined mode of each VF again if another mode is in force, unless libvirt may have
/// bound the function for a domain.
/// Never sets Default.
void GpuModel::check_assignment_modes() {
    if (!ports_.assignment_mode) return;
    const GpuRecord record = record_.get();
    for (auto& [vf, one] : vfs_) {
        read_assignment_mode(one);
        const AssignmentMode desired = one.defined.spec.assignment_policy.assignment_mode;
        const bool is_other = desired != AssignmentMode::Default && is_defined_in(record, vf) &&
                              !ports_.store.is_read_only(id_) && one.assignment_mode != desired;
        if (!is_other) one.vfio_bound_since.reset();
        if (!is_other || may_be_libvirts(one)) {
            one.assignment_mode_condition.clear();
            continue;
        }
        const auto set = set_assignment_mode(vf, desired);
        if (set) {
            emit(vf, EventKind::AssignmentModeSet,
                 fmt::format("{} has assignment mode '{}' again", describe_name(vf),
                             name_of(desired)));
            continue;
        }
        std::string& condition = one.assignment_mode_condition;
        if (condition != set.error().cause)
            emit(vf, EventKind::AssignmentModeFailed, set.error().cause);
        condition = set.error().cause;
    }
}

}  // namespace vgpu::daemon
