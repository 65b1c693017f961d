// SPDX-License-Identifier: MIT
//
// GpuModel: VFs that are not in service as defined. They stay visible with the reason, and vgpud
// tries again until it succeeds or the operator changes or destroys the definition.
#include "daemon/service/gpu/gpu.h"

#include <fmt/format.h>
#include <algorithm>

namespace vgpu::daemon {

namespace {

/// The generation of the VF's resources; 0 if ABSENT.
std::uint32_t incarnation_of(const VfFacts& active) {
    return active.state == VGPU_PF_VF_ABSENT ? 0 : active.generation;
}

}  // namespace

bool GpuModel::is_replaced(std::uint32_t vf) const {
    const auto defined = record_.uuid(vf);
    return defined && !is_vf(active_.at(vf), *defined);
}

std::string GpuModel::condition(std::uint32_t vf) const {
    const auto active = active_.find(vf);
    if (active == active_.end()) return "";
    const auto why = refusals_.find(vf);
    if (why != refusals_.end() && why->second.generation == incarnation_of(active->second))
        return why->second.text;
    if (incarnation_of(active->second) == 0 || !is_replaced(vf)) return "";
    const std::string name = record_.get().vfs.at(vf).spec.name;
    return fmt::format(
        "'{}' is defined here, but another VF {} (UUID {}) is in service; destroy it to restore "
        "'{}'",
        name, vf, uuid_text(active->second.uuid.value_or(Uuid{})), name);
}

std::size_t GpuModel::count_troubled() const {
    return static_cast<std::size_t>(
        std::count_if(active_.begin(), active_.end(),
                      [this](const auto& entry) { return !condition(entry.first).empty(); }));
}

void GpuModel::record_refusal(std::uint32_t vf, std::string text) {
    refusals_[vf] = {.generation = incarnation_of(active_.at(vf)), .text = std::move(text)};
}

/// Shows a VF without resources, and logs each reason once.
void GpuModel::show_unrestored(const VfRecord& desired, std::string why) {
    if (condition(desired.vf) != why) emit(desired.vf, EventKind::NotRestored, why);
    show_absent(desired);
    record_refusal(desired.vf, std::move(why));
}

/// Adds the VF as the PF core would report it.
void GpuModel::show_absent(const VfRecord& desired) {
    VfFacts absent;
    absent.vf = desired.vf;
    absent.state = VGPU_PF_VF_ABSENT;
    active_[desired.vf] = absent;
    defined_[desired.vf] = desired;
}

/// Drops counters and waits of the scrubbed VF. Keeps the VF in view, even if the PF core is lost
/// before it makes the new VF. Keeps the refusal, so that it is not logged again.
void GpuModel::reset_vf(const VfRecord& desired) {
    auto refusal = refusals_.extract(desired.vf);
    forget(desired.vf);
    show_absent(desired);
    refusals_.insert(std::move(refusal));
}

/// The VF has no resources. Forgets it if it is not defined; else keeps it in view, for
/// restore_missing().
void GpuModel::record_absent(const VfFacts& absent) {
    const GpuRecord record = record_.get();
    const auto desired = record.vfs.find(absent.vf);
    const bool is_defined = desired != record.vfs.end() && !desired->second.is_releasing;
    if (!is_defined) return forget(absent.vf);
    if (active_.contains(absent.vf) && incarnation_of(active_.at(absent.vf)) == 0)
        active_[absent.vf] = absent;
    else
        show_unrestored(desired->second, fmt::format("'{}' was released by another program",
                                                     desired->second.spec.name));
}

void GpuModel::restore_missing(Nanoseconds now) {
    const auto is_absent = [](const auto& entry) { return incarnation_of(entry.second) == 0; };
    if (now < restore_at_ || !may_plan()) return;
    if (std::none_of(active_.begin(), active_.end(), is_absent)) return;
    // Missing resources rarely return by themselves. Requests that may free resources reset
    // restore_at_.
    restore_at_ = now + kRestoreRetry;
    const GpuRecord record = record_.get();
    for (const auto& [vf, desired] : record.vfs) {
        const auto active = active_.find(vf);
        if (active == active_.end() || !is_absent(*active) || desired.is_releasing) continue;
        const auto done = desired.next ? finish_resize(vf) : restore_vf(desired);
        if (!pf_.is_connected()) return;
        if (done) ask_again();
    }
    refresh_members(now);
}

/// Erases the record of a VF without resources, which needs no scrub.
Result<> GpuModel::forget_definition(std::uint32_t vf) {
    GpuRecord record = record_.get();
    record.vfs.erase(vf);
    TRY_VOID(commit(record));
    reset_assignment_mode(defined_.at(vf));
    forget(vf);
    emit(vf, EventKind::Released,
         fmt::format("VF {} is no longer defined; it had no resources", vf));
    return {};
}

/// Defines other resources for a VF that has none, and tries at once to get them.
Result<> GpuModel::redefine(std::uint32_t vf, const VfResources& resources) {
    GpuRecord record = record_.get();
    VfRecord& one = record.vfs.try_emplace(vf, defined_.at(vf)).first->second;
    one.spec.resources = resources;
    one.next.reset();
    TRY_VOID(commit(record));
    restore_at_ = Nanoseconds{0};
    step();
    return {};
}

Result<> GpuModel::in_service(std::uint32_t vf) const {
    if (active_.at(vf).state != VGPU_PF_VF_ABSENT) return {};
    const std::string why = condition(vf);
    return fail(ErrorId::WrongState, fmt::format("{} has no resources now: {}", describe_name(vf),
                                                 why.empty() ? "it is being created" : why));
}

/// Success without a VF in service under this number, or if it is as defined.
Result<> GpuModel::defined_here(std::uint32_t vf) const {
    if (incarnation_of(active_.at(vf)) == 0) return {};
    const std::string why = condition(vf);
    if (why.empty()) return {};
    return fail(ErrorId::WrongState, fmt::format("{}/vf{}: {}", id_, vf, why));
}

}  // namespace vgpu::daemon
