// SPDX-License-Identifier: MIT
#include "daemon/backend/pf_core.h"

#include <algorithm>

namespace vgpu::daemon {

namespace {

/// A VF's resources, guest limits and assignment mode change only while the VF is idle. Everything
/// else may change at any time; scheduling settings take effect with the next run table.
Abilities abilities_of(const vgpu_pf_info& info) {
    Abilities abilities(info.platform == 0 ? "vgpu-pf" : "vgpu_pf");  // platform 0: a process
    abilities.has_run_tables = true;
    abilities.of.fill({.needs = Needs::Nothing});
    abilities[Change::VramBytes] = {.needs = Needs::VfIdle,
                                    .unit = std::max<std::uint64_t>(1, info.vram_unit_bytes),
                                    .min = std::max<std::uint64_t>(1, info.vram_unit_bytes),
                                    .max = info.vram_aperture_bytes};
    abilities[Change::CuMask].needs = Needs::VfIdle;
    abilities[Change::CuMask].max = info.cu_count >= 64 ? ~0ull : (1ull << info.cu_count) - 1;
    abilities[Change::DoorbellPages] = {.needs = Needs::VfIdle, .max = info.doorbell_pages};
    abilities[Change::GuestLimits].needs = Needs::VfIdle;
    abilities[Change::AssignmentMode].needs = Needs::VfIdle;
    abilities[Change::Vfs].max = info.total_vfs;
    return abilities;
}

}  // namespace

GpuFacts facts_of(const vgpu_pf_info& info) {
    return {.abilities = abilities_of(info),
            .total_vfs = info.total_vfs,
            .enabled_vfs = info.total_vfs,
            .is_device_lost = info.device_lost != 0,
            .vram = VramFacts{.bytes = info.vram_bytes,
                              .free_bytes = info.vram_free_bytes,
                              .largest_free = info.vram_largest_free_bytes,
                              .pf_bytes = info.vram_pf_bytes},
            .core = info};
}

VfFacts facts_of(const vgpu_pf_vf& vf) {
    text::Uuid uuid{};
    std::copy(std::begin(vf.uuid), std::end(vf.uuid), uuid.begin());
    const bool has_uuid = uuid != text::Uuid{};
    return {.vf = vf.vf,
            .state = vf.state,
            .generation = vf.generation,
            .is_attached = vf.attached != 0,
            .last_error = vf.last_error,
            .uuid = has_uuid ? std::optional(uuid) : std::nullopt,
            .vram_bytes = vf.vram_bytes,
            .cu_mask = vf.cu_mask,
            .doorbell_pages = vf.doorbell_pages,
            .service_ns = vf.service_ns,
            .core = vf};
}

}  // namespace vgpu::daemon
