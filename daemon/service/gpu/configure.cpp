// SPDX-License-Identifier: MIT
//
// GpuModel: the requests that carry out plans: inventory() reads the GPU, configure() changes many
// settings in one durable step, resize() gives a VF new resources.
//
// resize() makes the new resources durable (VfRecord::next), then sends RELEASE. When the scrub has
// ended, step() makes its end durable, sends SCRUB_DURABLE and PROVISION, and records the new
// resources without `next`. After a crash before RELEASE, the VF keeps its old resources. After a
// later crash, the VF gets the new resources. If the PF core refuses the new resources, the VF gets
// its old ones.
#include "daemon/service/config/capacity.h"
#include "daemon/service/gpu/gpu.h"

#include <fmt/format.h>
#include <algorithm>

namespace vgpu::daemon {

namespace {

/// True if the VF in service has `resources`. Ignores resources.security, which the PF core does
/// not report.
bool has_resources(const VfFacts& active, VfResources resources, const GpuInventory& gpu) {
    resources = normalised(resources, gpu);
    resources.security = {};
    return resources == normalised(resources_of(active, resources), gpu);
}

InventoryVf inventory_of(const VfRecord& record, const VfFacts& active, const GpuInventory& gpu,
                         UnixTime now, const std::string& condition) {
    InventoryVf vf{.vf = record.vf,
                   .spec = record.spec,
                   .is_attached = active.is_attached,
                   .owner = record.owner,
                   .is_lease_over = is_expired(record.owner, now),
                   .condition = condition};
    vf.spec.resources = normalised(vf.spec.resources, gpu);
    return vf;
}

}  // namespace

GpuInventory GpuModel::capacity() const {
    const VramFacts vram = info_.vram.value_or(VramFacts{});
    return {.id = id_,
            .vram_bytes = vram.free_bytes,
            .pf_vram_bytes = vram.pf_bytes,
            .abilities = info_.abilities,
            .total_vfs = info_.total_vfs,
            .enabled_vfs = info_.enabled_vfs};
}

Result<GpuInventory> GpuModel::inventory() {
    TRY_VOID(check_usable());
    TRY_VOID(check_gpu());
    for (const std::uint32_t vf : vfs()) refresh(vf);
    TRY_VOID(check_usable());
    const GpuRecord record = record_.get();
    GpuInventory all = capacity();
    all.settings = record.settings;
    all.other_users = info_.other_users;
    const std::set<std::uint32_t> running = vfs_of_running_domains();
    for (const auto& [vf, one] : vfs_) {
        const VfFacts& active = one.active;
        // capacity() has set vram_bytes to the free VRAM. The total is free + used. A VF that is
        // being scrubbed still uses its VRAM.
        all.vram_bytes += active.vram_bytes.value_or(0);
        all.is_scrubbing = all.is_scrubbing || active.state == VGPU_PF_VF_SCRUBBING;
        const auto known = record.vfs.find(vf);
        if (known == record.vfs.end() || known->second.is_releasing) continue;
        VfRecord defined = known->second;
        resolve_next(defined, active);
        all.vfs.push_back(
            inventory_of(defined, active, all, ports_.store.leases().now(), condition(vf)));
        all.vfs.back().has_running_domain = running.contains(vf);
    }
    TRY(all.used_numbers, used_numbers(record));
    return all;
}

/// As in free_vf(), an open function counts, because its client would have access to the new VF. A
/// VF that is being scrubbed does not count, because a plan is carried out after the scrub.
Result<std::set<std::uint32_t>> GpuModel::used_numbers(const GpuRecord& record) {
    std::set<std::uint32_t> used;
    for (std::uint32_t vf = 1; vf <= info_.total_vfs; ++vf) {
        if (record.vfs.contains(vf)) continue;
        TRY(const VfFacts active, pf_.ask(&Backend::get_vf, vf));
        const bool is_free =
            active.state == VGPU_PF_VF_ABSENT || active.state == VGPU_PF_VF_SCRUBBING;
        if (active.is_attached || !is_free) used.insert(vf);
    }
    return used;
}

Result<> GpuModel::configure(const Settings& settings) {
    TRY_VOID(check_usable());
    for (const auto& [vf, change] : settings.vfs) {
        TRY_VOID(check_known(vf));
        TRY_VOID(check_defined(vf));
    }
    const GpuRecord before = record_.get();
    GpuRecord record = before;
    apply(settings.gpu, record.settings);
    for (const auto& [vf, change] : settings.vfs) apply(change, record_in(record, vf).spec);
    TRY_VOID(apply_settings(before, record, {.force = settings.force}));
    refresh_members(ports_.clock.now());
    return {};
}

/// If the VF is already being scrubbed for a resize or a release, only replaces VfRecord::next.
Result<> GpuModel::resize(std::uint32_t vf, const VfResources& resources, Force force) {
    TRY_VOID(refresh_before_change(vf));
    TRY_VOID(check_defined(vf));
    const Vf& one = vfs_.at(vf);
    VfSpec desired = one.defined.spec;
    desired.resources = resources;
    TRY_VOID(check_capacity(capacity(), desired));
    TRY_VOID(check_owner(vf, "resize", force, ""));
    TRY_VOID(check_all_idle(need_of(*abilities_, differences(one.defined.spec, desired)),
                            describe_name(vf), {.force = force}));
    const VfFacts active = one.active;
    if (active.state == VGPU_PF_VF_ABSENT) return redefine(vf, resources);
    const GpuRecord before = record_.get();
    GpuRecord after = before;
    VfRecord& record = record_in(after, vf);
    const bool is_under_way = active.state == VGPU_PF_VF_SCRUBBING && record.next.has_value();
    if (active.state == VGPU_PF_VF_SCRUBBING && !is_under_way)
        return fail(ErrorId::WrongState, fmt::format("{}/vf{} is being destroyed", id_, vf));
    if (!is_under_way) TRY_VOID(check_attached(vf, "resize", force));
    // Make `next` durable before the release, so that a new vgpud knows that this VF must be
    // provisioned again, and with which resources.
    record.next = VfNext{.resources = resources,
                         .replaces = active.generation,
                         .needs_scrub = record.next && record.next->needs_scrub};
    TRY_VOID(commit(after));
    // The scrub continues; finish_scrub() then uses the new `next`.
    if (is_under_way) return {};
    if (const auto released = pf_.ask(&Backend::release, vf, active.generation); !released) {
        // If the PF core is lost, it may have released the VF, so `next` stays.
        if (pf_.is_connected()) put(vf, before);
        return tl::make_unexpected(
            Error{released.error().id,
                  fmt::format("{}/vf{}: resize refused: {}", id_, vf, released.error().cause)});
    }
    refresh(vf);
    refresh_members(ports_.clock.now());
    return {};
}

/// Gives an ABSENT VF its new resources, or its old resources if the PF core refuses.
Result<> GpuModel::finish_resize(std::uint32_t vf) {
    GpuRecord record = record_.get();
    VfRecord old_record = record.vfs.at(vf);
    old_record.next.reset();
    VfRecord new_record = old_record;
    new_record.spec.resources = record.vfs.at(vf).next->resources;
    auto made = provision(new_record);
    if (!made && !pf_.is_connected()) return made;
    if (made) {
        refresh_members(ports_.clock.now());
        record.vfs[vf] = new_record;
        put(vf, record);
        return {};
    }
    emit(vf, EventKind::NotResized,
         fmt::format("'{}' did not get {}: {}", new_record.spec.name,
                     size_text(new_record.spec.resources.vram_bytes), made.error().cause));
    // Write the record before requesting the old resources. In the other order, a crash between the
    // two would leave a VF with its old resources and a record with `next`. If old and new
    // resources differ only in the limits of the guest, which the PF core does not report,
    // resolve_next() would then record the new limits.
    record.vfs[vf] = old_record;
    put(vf, record);
    made = restore_vf(old_record);
    refresh_members(ports_.clock.now());
    return made;
}

/// Corrects `record`, the record of a VF in service, if a resize did not end, such as after a
/// crash. A VF that was not released keeps its old resources; if a scrub is required, the scrub
/// stays in `record`. A VF that was recreated has the old or the new resources.
void GpuModel::resolve_next(VfRecord& record, const VfFacts& active) const {
    const VfAction action = action_for(&record, active);
    if (action == VfAction::Recreate) record.next->resources = record.spec.resources;
    if (action != VfAction::EndChange) return;
    const VfNext next = *std::exchange(record.next, std::nullopt);
    if (active.generation != next.replaces && has_resources(active, next.resources, capacity()))
        record.spec.resources = next.resources;
}

}  // namespace vgpu::daemon
