// SPDX-License-Identifier: MIT
//
// GpuModel: attach to a PF core, adopt VFs in service, handle the loss.
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

/// The record of a VF, or a new one for a VF that this vgpud did not make.
VfRecord GpuModel::record_for(const VfFacts& active) const {
    const GpuRecord record = record_.get();
    const auto known = record.vfs.find(active.vf);
    if (known != record.vfs.end() && is_vf(active, known->second.spec.uuid)) return known->second;
    VfRecord found{.vf = active.vf,
                   .spec = {.name = fmt::format("{}-vf{}", id_, active.vf),
                            .uuid = active.uuid ? *active.uuid : make_uuid(),
                            .resources = resources_of(active)}};
    // What the driver cannot change is not defined, so that another size is no difference.
    if (!abilities_->can(Change::VramBytes)) found.spec.resources.vram_bytes = 0;
    return found;
}

/// Attaches completely or not at all. After a failure VFs are shown as before.
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

/// The order matters. The lease is first, so that nobody changes policy while VFs are read. The
/// ring is opened before the VFs are read, so that no change is missed. The table is read last,
/// when the members are known: a table that is fair for them stays, and no VF notices the restart
/// of vgpud.
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
    // An event in between would be counted twice, as an event and in the counter. If the PF core
    // never pauses for that long, a few runs are counted twice. Shares are then off by these runs,
    // and lags begin at 0 anyway.
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
        count_from(one);
        one.scrubbed.reset();
        one.released_at.reset();
    }
    return {};
}

/// Reconciles records and PF core; each case says which of the two wins.
Result<> GpuModel::adopt_vfs() {
    GpuRecord record = record_.get();
    if (!ports_.store.records().contains(id_)) {
        record.settings = {.quantum_us = config_.quantum_us, .max_gap_ms = config_.max_gap_ms};
    }
    std::vector<VfRecord> missing;
    for (auto at = record.vfs.begin(); at != record.vfs.end();) {
        const auto shown = vfs_.find(at->first);
        const bool is_active = shown != vfs_.end() && !shown->second.is_absent();
        if (!is_active && !at->second.is_releasing) missing.push_back(at->second);
        const bool is_over = !is_active && at->second.is_releasing;
        if (is_over && !ports_.store.is_read_only(id_)) reset_assignment_mode(at->second);
        at = is_over ? record.vfs.erase(at) : std::next(at);
    }
    std::erase_if(vfs_, [&](const auto& at) {
        return at.second.is_absent() && !record.vfs.contains(at.first);
    });
    for (auto& [vf, one] : vfs_)
        if (!one.is_absent()) TRY_VOID(adopt_vf(one, record));
    if (ports_.store.is_read_only(id_)) return {};
    put(0, record);
    for (const VfRecord& desired : missing)
        TRY_VOID(desired.next ? finish_resize(desired.vf) : restore_vf(desired));
    return {};
}

Result<> GpuModel::adopt_vf(Vf& one, GpuRecord& record) {
    const VfFacts& active = one.active;
    const std::uint32_t vf = active.vf;
    const auto known = record.vfs.find(vf);
    const bool is_known = known != record.vfs.end() && is_vf(active, known->second.spec.uuid);
    one.defined = is_known ? known->second : record_for(active);
    if (active.state == VGPU_PF_VF_SCRUBBING) {
        // SCRUBBED may have come while no vgpud listened. An unfinished scrub still sends it.
        note_scrub(one);
        return {};
    }
    if (is_known) {
        settle_next(known->second, active);
        one.defined = known->second;
        // If the previous vgpud owed a scrub, this vgpud owes it as well.
        if (known->second.next) one.released_at = ports_.clock.now();
        if (!known->second.is_releasing || ports_.store.is_read_only(id_)) return {};
        return go_on_releasing(known->second, one);
    }
    if (known != record.vfs.end()) {
        // Same number, other UUID: another program made this VF. Leave both alone: one computes,
        // and the record is the operator's.
        emit(vf, EventKind::Replaced, condition(vf));
        return {};
    }
    record.vfs[vf] = one.defined;
    emit(vf, EventKind::Found,
         fmt::format("VF {} was in service but unknown; weight {} is assumed", vf,
                     one.defined.spec.weight));
    return {};
}

/// Continues a destroy that an earlier vgpud began. If the PF core refuses, the VF stays, as in
/// destroy().
Result<> GpuModel::go_on_releasing(VfRecord& record, Vf& one) {
    const auto released = pf_.ask(&Backend::release, record.vf, one.active.generation);
    if (released || !pf_.is_connected()) return released;
    record.is_releasing = false;
    one.defined = record;
    emit(
        record.vf, EventKind::NotReleased,
        fmt::format("'{}' was being destroyed when vgpud ended; now the PF core refuses it, so the "
                    "VF stays: {}",
                    record.spec.name, released.error().cause));
    return {};
}

/// Makes a VF that is on record but missing in the PF core, as after a restart of both.
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

/// The PF core gives all resources or none. After a refusal the function stays assigned as defined,
/// because the definition is tried again.
Result<> GpuModel::provision(const VfRecord& desired) {
    vgpu_pf_provision request = provision_of(desired.spec.resources);
    request.vf = desired.vf;
    std::copy(desired.spec.uuid.begin(), desired.spec.uuid.end(), std::begin(request.uuid));
    if (desired.spec.assignment_policy.assignment_mode != AssignmentMode::Default)
        TRY_VOID(set_assignment_mode(desired.vf, desired.spec.assignment_policy.assignment_mode));
    TRY_VOID(pf_.ask(&Backend::provision, request));
    TRY(VfFacts active, ask_vf(desired.vf));
    Vf& one = vfs_[desired.vf];
    one.active = std::move(active);
    one.defined = desired;
    count_from(one);
    read_assignment_mode(one);
    return {};
}

void GpuModel::lose(const Error& error, Nanoseconds now) {
    pf_.disconnect();
    events_.reset();
    events_read_to_ = 0;
    retry_at_ = now + retry_delay_;
    // VFs continue by the table in force, so being late costs no VF its share.
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
    become(next, has_failed ? managed_processes_message_ : error.cause);
}

/// Reads the GPU, and the offset from CLOCK_MONOTONIC to the clock of its device.
Result<> GpuModel::read_info() {
    TRY(info_, pf_.ask(&Backend::get_info));
    if (info_.abilities != *abilities_)
        abilities_ = std::make_shared<const Abilities>(info_.abilities);
    if (!info_.core) return {};
    const auto device = std::min<std::uint64_t>(info_.core->device_time_ns, INT64_MAX / 2);
    device_clock_ahead_ = Nanoseconds{device} - ports_.clock.now();
    return {};
}

void GpuModel::count_from(Vf& one) {
    one.counted_service_ns = one.active.service_ns.value_or(0);
    one.counted_reserved_ns = one.active.reserved_ns();
}

void GpuModel::notice_device_state() {
    if (info_.is_device_lost)
        become(GpuState::DeviceLost, "the device does not answer vgpu-pf");
    else
        become(GpuState::Ok, "");
}

void GpuModel::become(GpuState state, std::string message) {
    if (state != state_) emit(0, event_of(state), message.empty() ? "in service" : message);
    state_ = state;
    message_ = std::move(message);
}

}  // namespace vgpu::daemon
