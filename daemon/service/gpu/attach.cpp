// SPDX-License-Identifier: MIT
//
// GpuModel: attaches to the PF core, adopts the VFs in service, and handles the loss of the PF
// core.
#include "daemon/service/gpu/gpu.h"

#include <fmt/format.h>
#include <algorithm>

namespace vgpu::daemon {

namespace {

EventKind event_of(GpuState state) {
    switch (state) {
        case GpuState::Starting:
            return EventKind::Starting;
        case GpuState::Ok:
            return EventKind::Serving;
        case GpuState::PfLost:
            return EventKind::PfLost;
        case GpuState::DeviceLost:
            return EventKind::DeviceLost;
        case GpuState::VersionMismatch:
            return EventKind::VersionMismatch;
        case GpuState::Failed:
            return EventKind::Failed;
    }
    return EventKind::Failed;
}

}  // namespace

/// The VF's entry in `record`; a new record if the VF is not on record.
VfRecord GpuModel::record_for(const VfFacts& active, const GpuRecord& record) const {
    const auto known = record.vfs.find(active.vf);
    if (known != record.vfs.end() && is_vf(active, known->second.spec.uuid)) return known->second;
    VfRecord found{.vf = active.vf,
                   .spec = {.name = fmt::format("{}-vf{}", id_, active.vf),
                            .uuid = active.uuid ? *active.uuid : make_uuid(),
                            .resources = resources_of(active)}};
    // If the driver cannot change the VRAM size, the record defines none, so that the actual size
    // never counts as a difference.
    if (!abilities_->can(Change::VramBytes)) found.spec.resources.vram_bytes = 0;
    return found;
}

/// Attaches if that is due. After a failure, closes the connection (lose()); vfs_ is as before.
void GpuModel::try_attach(Nanoseconds now) {
    if (now < retry_at_) return;
    const VfTable shown = vfs_;
    auto attached = attach(now);
    if (attached) {
        pf_.attached();
        retry_delay_ = kFirstRetry;
        return;
    }
    vfs_ = shown;
    lose(attached.error(), now);
}

/// The order matters. The lease comes first, so that no other client sets a run table meanwhile.
/// The event ring comes before the VFs, so that vgpud misses no change of a VF. The run table comes
/// last, when the schedule knows its members: if the table is fair for these members, it stays in
/// force, and no VF notices the restart of vgpud.
Result<> GpuModel::attach(Nanoseconds now) {
    TRY_VOID(pf_.connect());
    if (!ports_.store.is_read_only(id_)) TRY_VOID(pf_.ask(&Backend::acquire_lease));
    TRY(events_, pf_.ask(&Backend::open_events));
    TRY_VOID(read_info());
    are_shares_due_ = true;
    TRY_VOID(read_all_vfs());
    TRY_VOID(adopt_vfs());
    check_assignment_modes();
    schedule_.apply(trace::Restarted{});
    waits_.on_lost();
    refresh_members(now);
    for (auto& [vf, one] : vfs_) {
        one.may_be_idle = false;
        if (one.active.has_work())
            schedule_.on_wake(vf, now);
        else
            record_inactive_idle(vf, now);
    }
    if (abilities_->has_run_tables) {
        TRY(const vgpu_pf_run_table table, pf_.ask(&Backend::get_run_table));
        schedule_.adopt(table, now);
        table_ = std::make_shared<const vgpu_pf_run_table>(table);
    }
    refreshed_at_ = now;
    notice_device_state();
    const auto in_service = numbers_where(vfs_, [](const Vf& one) { return !one.is_absent(); });
    emit(0, EventKind::Attached, fmt::format("{} VFs in service", in_service.size()));
    return {};
}

Result<> GpuModel::read_all_vfs() {
    // A run that ends while the VFs are read may be counted twice: in the VF's counters and by its
    // RUN event. So all VFs are read again until no event arrives meanwhile. If events arrive in
    // each of the tries, a few runs are counted twice, and the shares are slightly wrong.
    constexpr int kTries = 8;
    for (int i = 0; i < kTries; ++i) {
        if (events_) events_->skip_to_end();
        const std::uint64_t before = events_ ? events_->next_seq() : 0;
        std::erase_if(vfs_, [this](const auto& at) { return at.first > info_.total_vfs; });
        for (std::uint32_t vf = 1; vf <= info_.total_vfs; ++vf) {
            TRY(VfFacts active, ask_vf(vf));
            if (active.state != VGPU_PF_VF_ABSENT || vfs_.contains(vf))
                vfs_[vf].active = std::move(active);
        }
        if (!events_ || events_->next_seq() == before) break;
    }
    for (auto& [vf, one] : vfs_) {
        sync_counted_service(one);
        one.scrubbed.reset();
    }
    return {};
}

/// Carries out the action of each VF (reconcile.h). Writes all changes of the record at once, and
/// only then recreates missing VFs.
Result<> GpuModel::adopt_vfs() {
    GpuRecord record = record_.get();
    if (!ports_.store.records().contains(id_)) {
        record.settings = {.quantum_us = config_.quantum_us, .max_gap_ms = config_.max_gap_ms};
    }
    std::set<std::uint32_t> numbers;
    for (const auto& [vf, one] : record.vfs) numbers.insert(vf);
    for (const auto& [vf, one] : vfs_) numbers.insert(vf);
    for (const std::uint32_t vf : numbers) TRY_VOID(adopt_vf(vf, record));
    if (ports_.store.is_read_only(id_)) return {};
    put(0, record);
    // check_growth() must know the owners of all VFs on record
    for (const auto& [vf, desired] : record.vfs)
        if (!vfs_.contains(vf)) show_absent(desired);
    enable_recorded_vfs();
    for (const auto& [vf, desired] : record.vfs)
        if (vfs_.at(vf).is_absent()) TRY_VOID(recreate(desired));
    return {};
}

Result<> GpuModel::adopt_vf(std::uint32_t vf, GpuRecord& record) {
    const auto shown = vfs_.find(vf);
    const VfFacts active = shown == vfs_.end() ? VfFacts{.vf = vf} : shown->second.active;
    const auto known = record.vfs.find(vf);
    VfRecord* desired = known == record.vfs.end() ? nullptr : &known->second;
    if (active.state != VGPU_PF_VF_ABSENT) shown->second.defined = record_for(active, record);
    switch (action_for(desired, active)) {
        case VfAction::Forget:
            forget(vf);
            return desired == nullptr ? Result<>() : forget_record(vf, record);
        case VfAction::Record:
            record.vfs[vf] = shown->second.defined;
            report_found(shown->second.defined);
            return {};
        case VfAction::Leave:
            emit(vf, EventKind::Replaced, condition(vf));
            return {};
        case VfAction::Release:
            if (ports_.store.is_read_only(id_)) return {};
            return continue_release(*desired, shown->second);
        case VfAction::EndChange:
        case VfAction::Recreate:
            resolve_next(*desired, active);
            shown->second.defined = *desired;
            return {};
        case VfAction::Await:
            // The event SCRUBBED may have come while no vgpud was attached. If the scrub is not
            // finished, the event comes later.
            record_scrub(shown->second);
            return {};
        case VfAction::Keep:
        case VfAction::Restore:
        case VfAction::Resize:
            return {};
    }
    return {};
}

/// Erases from `record` a VF that was being destroyed and has no resources any more, unless the
/// backend cannot scrub the VF (scrub_absent()).
Result<> GpuModel::forget_record(std::uint32_t vf, GpuRecord& record) {
    VfRecord& desired = record.vfs.at(vf);
    if (!ports_.store.is_read_only(id_)) {
        if (const auto ended = scrub_absent(desired); !ended)
            return cancel_release(desired, ended.error());
        reset_assignment_mode(desired);
    }
    record.vfs.erase(vf);
    return {};
}

void GpuModel::report_found(const VfRecord& found) {
    emit(found.vf, EventKind::Found,
         fmt::format("VF {} was in service but unknown; weight {} is assumed", found.vf,
                     found.spec.weight));
}

/// Continues a destroy() that a restart of vgpud or a loss of the PF core has interrupted. If the
/// PF core refuses the release, the VF stays.
Result<> GpuModel::continue_release(VfRecord& record, Vf& one) {
    const auto released = pf_.ask(&Backend::release, record.vf, one.active.generation);
    if (released) return {};
    TRY_VOID(cancel_release(record, released.error()));
    resolve_next(record, one.active);
    one.defined = record;
    return {};
}

/// Cancels the destroy of a VF that the PF driver refuses to release: the VF stays defined. Fails
/// only if the PF core is lost.
Result<> GpuModel::cancel_release(VfRecord& record, const Error& refusal) {
    if (!pf_.is_connected()) return tl::make_unexpected(refusal);
    record.is_releasing = false;
    emit(record.vf, EventKind::NotReleased,
         fmt::format("'{}' was being destroyed when vgpud ended; now the PF driver refuses the "
                     "release, so the VF stays: {}",
                     record.spec.name, refusal.cause));
    return {};
}

Result<> GpuModel::scrub_absent(const VfRecord& record) {
    const VfSize size{.vf = record.vf, .vram_bytes = record.spec.resources.vram_bytes};
    return pf_.ask(&Backend::scrub_absent, size);
}

/// Scrubs the VF if its record requires that. Has an effect only in a backend that keeps no VFs
/// over a restart of vgpud: there, a VF that must be scrubbed looks ABSENT
/// (Backend::scrub_absent()).
Result<> GpuModel::scrub_if_required(const VfRecord& desired) {
    return desired.next->needs_scrub ? scrub_absent(desired) : Result<>();
}

/// Provisions a VF that has no resources, if action_for() says so. Fails only if the PF core is
/// lost.
Result<> GpuModel::recreate(const VfRecord& desired) {
    const VfAction action = action_for(&desired, {.vf = desired.vf});
    if (action != VfAction::Resize && action != VfAction::Restore) return {};
    if (const auto idle = check_growth(desired.vf); !idle) {
        show_unrestored(
            desired, fmt::format("'{}' is not enabled: {}", desired.spec.name, idle.error().cause));
        return {};
    }
    if (action == VfAction::Resize) {
        if (const auto scrubbed = scrub_if_required(desired); !scrubbed) {
            if (!pf_.is_connected()) return scrubbed;
            show_unrestored(desired, fmt::format("'{}' waits for its scrub: {}", desired.spec.name,
                                                 scrubbed.error().cause));
            return {};
        }
        return finish_resize(desired.vf);
    }
    return restore_vf(desired);
}

/// Provisions a VF that is on record but ABSENT in the PF core, as after a restart of softgpu and
/// vgpu-pf. Fails only if the PF core is lost.
Result<> GpuModel::restore_vf(const VfRecord& desired) {
    const auto made = provision(desired);
    if (made) {
        emit(desired.vf, EventKind::Restored,
             fmt::format("'{}' has its resources again", desired.spec.name));
        return {};
    }
    if (!pf_.is_connected()) return made;
    show_unrestored(desired, fmt::format("'{}' did not get its resources back: {}",
                                         desired.spec.name, made.error().cause));
    return {};
}

/// Sets the VF's assignment mode, then requests the resources, of which the PF core gives all or
/// none. After a refusal the mode stays, because vgpud will try to provision the VF again;
/// undo_create() resets the mode. Leaves the mode alone if libvirt has bound the function for the
/// domain that owns the VF, such as before a restart of vgpud.
Result<> GpuModel::provision(const VfRecord& desired) {
    vgpu_pf_provision request = provision_of(desired.spec.resources);
    request.vf = desired.vf;
    std::copy(desired.spec.uuid.begin(), desired.spec.uuid.end(), std::begin(request.uuid));
    const AssignmentMode mode = desired.spec.assignment_policy.assignment_mode;
    const bool is_for_domain = mode != AssignmentMode::VfioPci && ports_.assignment_mode &&
                               ports_.assignment_mode->get(desired.vf) == AssignmentMode::VfioPci &&
                               has_running_domain(desired.owner);
    if (mode != AssignmentMode::Default && !is_for_domain)
        TRY_VOID(set_assignment_mode(desired.vf, mode));
    TRY_VOID(pf_.ask(&Backend::provision, request));
    TRY(VfFacts active, ask_vf(desired.vf));
    Vf& one = vfs_[desired.vf];
    one.active = std::move(active);
    one.defined = desired;
    one.refusal.reset();
    sync_counted_service(one);
    read_assignment_mode(one);
    return {};
}

void GpuModel::lose(const Error& error, Nanoseconds now) {
    pf_.disconnect();
    events_.reset();
    events_read_to_ = 0;
    retry_at_ = now + retry_delay_;
    // The PF core continues with the table in force, so a longer delay costs no VF its share.
    retry_delay_ = std::min(retry_delay_ * 2, kLongestRetry);
    const bool is_mismatch = error.id == ErrorId::VersionMismatch;
    const bool has_failed =
        ports_.managed_processes != nullptr && ports_.managed_processes->has_failed();
    const bool is_starting = ports_.managed_processes != nullptr &&
                             (state_ == GpuState::Starting || state_ == GpuState::Failed);
    const GpuState next = is_mismatch   ? GpuState::VersionMismatch
                          : has_failed  ? GpuState::Failed
                          : is_starting ? GpuState::Starting
                                        : GpuState::PfLost;
    enter_state(next, has_failed ? managed_processes_message_ : error.cause);
}

/// Reads the facts of the GPU, and the offset of the device's clock from CLOCK_MONOTONIC.
Result<> GpuModel::read_info() {
    TRY(info_, pf_.ask(&Backend::get_info));
    if (info_.abilities != *abilities_)
        abilities_ = std::make_shared<const Abilities>(info_.abilities);
    if (!info_.core) return {};
    // INT64_MAX / 2: the subtraction below cannot overflow
    const auto device = std::min<std::uint64_t>(info_.core->device_time_ns, INT64_MAX / 2);
    device_clock_ahead_ = Nanoseconds{device} - ports_.clock.now();
    return {};
}

void GpuModel::sync_counted_service(Vf& one) {
    one.counted_service_ns = one.active.service_ns.value_or(0);
    one.counted_reserved_ns = one.active.reserved_ns();
}

void GpuModel::notice_device_state() {
    if (info_.is_device_lost)
        enter_state(GpuState::DeviceLost, "the device does not answer vgpu-pf");
    else
        enter_state(GpuState::Ok, abilities_->is_observing ? "vgpud only watches this GPU" : "");
}

void GpuModel::enter_state(GpuState state, std::string message) {
    if (state != state_) emit(0, event_of(state), message.empty() ? "in service" : message);
    state_ = state;
    message_ = std::move(message);
}

}  // namespace vgpu::daemon
