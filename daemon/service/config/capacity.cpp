// SPDX-License-Identifier: MIT
#include "daemon/service/config/capacity.h"

#include "daemon/service/slicing/gpu_schedule.h"
#include "daemon/service/vf/settings.h"
#include "daemon/service/vf/shares.h"
#include "daemon/service/words.h"

#include <fmt/format.h>
#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

namespace vgpu::daemon {

namespace {

std::string describe(const VfSpec& vf) {
    return vf.profile.empty() ? fmt::format("'{}'", vf.name)
                              : fmt::format("'{}' (profile '{}')", vf.name, vf.profile);
}

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}

/// "96 MiB or 112 MiB": the multiples of `unit` just below and above `bytes`. Leaves out the lower
/// multiple if it is 0, or else the upper multiple if it exceeds `max`.
std::string multiples_near(std::uint64_t bytes, std::uint64_t unit, std::uint64_t max) {
    const std::uint64_t above = round_up(bytes, unit);
    const std::uint64_t below = above - unit;
    if (below == 0) return size_text(above);
    if (above > max) return size_text(below);
    return fmt::format("{} or {}", size_text(below), size_text(above));
}

/// ", or 2 VFs of 80 MiB each": the same VRAM, split into VFs of a possible size. Empty if the GPU
/// has no room for these VFs.
std::string split_hint(const GpuInventory& gpu, std::uint64_t bytes) {
    const Ability& vram = gpu.abilities[Change::VramBytes];
    if (vram.max == 0) return "";
    const std::uint64_t count = (bytes + vram.max - 1) / vram.max;
    const std::uint64_t each = round_up((bytes + count - 1) / count, vram.unit);
    if (count > gpu.total_vfs || each > gpu.vram_bytes / count) return "";
    return fmt::format(", or {} VFs of {} each", count, size_text(each));
}

Result<> check_vram(const GpuInventory& gpu, const VfSpec& vf) {
    const std::uint64_t vram = vf.resources.vram_bytes;
    const Ability& ability = gpu.abilities[Change::VramBytes];
    if (!gpu.abilities.can(Change::VramBytes)) {
        // A driver that gives every VF the same VRAM may report this size as the maximum.
        const bool is_known = ability.max != Ability{}.max;
        if (vram == 0 || (is_known && vram <= ability.max)) return {};
        return check_offered(gpu.id, gpu.abilities, Change::VramBytes, describe(vf));
    }
    if (vram == 0)
        return fail(ErrorId::OutOfRange,
                    fmt::format("{}: VRAM: {} has no size; set a multiple of {}", gpu.id,
                                describe(vf), size_text(ability.unit)));
    if (vram % ability.unit != 0)
        return fail(ErrorId::OutOfRange,
                    fmt::format("{}: VRAM: {} for {} is not a multiple of {}; {} would fit", gpu.id,
                                size_text(vram), describe(vf), size_text(ability.unit),
                                multiples_near(vram, ability.unit, ability.max)));
    if (vram <= ability.max) return {};
    const std::string max = size_text(ability.max);
    return fail(
        ErrorId::NoVram,
        fmt::format("{}: VRAM: {} wanted for {}, but one VF can have at most {} (its BAR0), short "
                    "by {}; {} would fit{}",
                    gpu.id, size_text(vram), describe(vf), max, size_text(vram - ability.max), max,
                    split_hint(gpu, vram)));
}

Result<> check_doorbells(const GpuInventory& gpu, const VfSpec& vf) {
    const std::uint32_t pages = vf.resources.doorbell_pages;
    const std::uint64_t max = gpu.abilities[Change::DoorbellPages].max;
    if (pages <= max) return {};
    return fail(ErrorId::NoDoorbells,
                fmt::format("{}: doorbell pages: {} wanted for {}, but one VF can have at most {}, "
                            "short by {}; {} would fit, also by leaving doorbell_pages out",
                            gpu.id, pages, describe(vf), max, pages - max, max));
}

/// The error suggests the units of the mask that exist, unless these are none or all.
Result<> check_cus(const GpuInventory& gpu, const VfSpec& vf) {
    const std::uint64_t all = all_cus(gpu);
    const std::uint64_t missing = vf.resources.cu_mask & ~all;
    const std::uint64_t existing = vf.resources.cu_mask & all;
    if (missing == 0) return {};
    const std::string part =
        existing == 0 || existing == all ? "" : fmt::format("mask {:#x} or ", existing);
    return fail(
        ErrorId::NoComputeUnits,
        fmt::format("{}: compute units: mask {:#x} wanted for {}, but there are {} (mask {:#x}), "
                    "short by {}; {}all {} would fit, also by leaving compute_units out",
                    gpu.id, vf.resources.cu_mask, describe(vf), std::popcount(all), all,
                    std::popcount(missing), part, std::popcount(all)));
}

/// Checks that the driver offers everything that differs from the default, except VRAM
/// (check_vram()).
Result<> check_abilities(const GpuInventory& gpu, const VfSpec& vf) {
    for (const auto& [change, value] : differences(VfSpec{}, vf)) {
        if (change == Change::VramBytes) continue;
        TRY_VOID(value ? check_value(gpu.id, gpu.abilities, change, *value, describe(vf))
                       : check_offered(gpu.id, gpu.abilities, change, describe(vf)));
    }
    return {};
}

/// " (the PF keeps 16 MiB)"; empty if the PF keeps no VRAM.
std::string reserve_text(const GpuInventory& gpu) {
    return gpu.pf_vram_bytes == 0 ? ""
                                  : fmt::format(" (the PF keeps {})", size_text(gpu.pf_vram_bytes));
}

/// Suggests which VFs to leave out: the smallest VF that covers the shortage or, if no single VF
/// does, the largest VFs.
std::string omission_hint(std::span<const VfSpec> vfs, std::uint64_t shortage) {
    std::vector<const VfSpec*> by_size;
    for (const VfSpec& vf : vfs) by_size.push_back(&vf);
    std::stable_sort(by_size.begin(), by_size.end(), [](const auto* a, const auto* b) {
        return a->resources.vram_bytes < b->resources.vram_bytes;
    });
    for (const VfSpec* vf : by_size)
        if (vf->resources.vram_bytes >= shortage)
            return fmt::format("leave out '{}' ({})", vf->name,
                               size_text(vf->resources.vram_bytes));
    std::uint64_t freed = 0;
    std::vector<std::string> names;
    for (auto vf = by_size.rbegin(); vf != by_size.rend() && freed < shortage; ++vf) {
        freed += (*vf)->resources.vram_bytes;
        names.push_back(fmt::format("'{}'", (*vf)->name));
    }
    return fmt::format("leave out {}", fmt::join(names, ", "));
}

/// Suggests smaller VFs. Chooses the size for which (size · number of VFs of this size) is largest,
/// and takes an equal part of the shortage from each of these VFs. Empty if they are too small for
/// that.
std::string shrink_hint(const GpuInventory& gpu, std::span<const VfSpec> vfs,
                        std::uint64_t shortage) {
    std::map<std::uint64_t, std::uint64_t> count_by_size;
    for (const VfSpec& vf : vfs) ++count_by_size[vf.resources.vram_bytes];
    const auto max = std::max_element(
        count_by_size.begin(), count_by_size.end(),
        [](const auto& a, const auto& b) { return a.first * a.second < b.first * b.second; });
    const auto [size, count] = *max;
    const std::uint64_t less =
        round_up((shortage + count - 1) / count, gpu.abilities[Change::VramBytes].unit);
    if (less >= size) return "";
    return count == 1 ? fmt::format(", or shrink the VF of {} by {} to {}", size_text(size),
                                    size_text(less), size_text(size - less))
                      : fmt::format(", or shrink the {} VFs of {} by {} each to {}", count,
                                    size_text(size), size_text(less), size_text(size - less));
}

Result<> check_sums(const GpuInventory& gpu, std::span<const VfSpec> vfs) {
    if (vfs.size() > gpu.total_vfs)
        return fail(ErrorId::NoFreeVf,
                    fmt::format("{}: VF numbers: {} VFs wanted, {} exist, short by {}; leave out "
                                "that many",
                                gpu.id, vfs.size(), gpu.total_vfs, vfs.size() - gpu.total_vfs));
    const std::uint64_t desired = std::accumulate(
        vfs.begin(), vfs.end(), std::uint64_t{0},
        [](std::uint64_t sum, const VfSpec& vf) { return sum + vf.resources.vram_bytes; });
    if (desired <= gpu.vram_bytes || !gpu.abilities.can(Change::VramBytes)) return {};
    const std::uint64_t shortage = desired - gpu.vram_bytes;
    return fail(ErrorId::NoVram,
                fmt::format("{}: VRAM: {} wanted by {} VFs, {} there for VFs{}, short by {}; {}{}",
                            gpu.id, size_text(desired), vfs.size(), size_text(gpu.vram_bytes),
                            reserve_text(gpu), size_text(shortage), omission_hint(vfs, shortage),
                            shrink_hint(gpu, vfs, shortage)));
}

}  // namespace

std::uint64_t all_cus(const GpuInventory& gpu) {
    return gpu.abilities[Change::CuMask].max;
}

VfResources normalised(VfResources resources, const GpuInventory& gpu) {
    if (resources.cu_mask == all_cus(gpu)) resources.cu_mask = 0;
    if (resources.doorbell_pages == gpu.abilities[Change::DoorbellPages].max)
        resources.doorbell_pages = 0;
    return resources;
}

Result<> check_capacity(const GpuInventory& gpu, const VfSpec& vf) {
    TRY_VOID(check_vram(gpu, vf));
    TRY_VOID(check_abilities(gpu, vf));
    TRY_VOID(check_doorbells(gpu, vf));
    return check_cus(gpu, vf);
}

Result<> check_settings(const GpuInventory& gpu, const GpuSettings& from, const GpuSettings& to) {
    for (const ChangedValue& one : differences(from, to)) {
        TRY_VOID(check_value(gpu.id, gpu.abilities, one.change, *one.value, "the GPU"));
        if (one.change == Change::QuantumUs && has_quanta_by_weight(gpu.abilities))
            return fail(ErrorId::NotOffered,
                        fmt::format("{}: quantum_us of the GPU: quanta follow from the weights of "
                                    "its VFs; a VF can have its own",
                                    describe(gpu.id, gpu.abilities)));
        if (one.change == Change::MaxGapMs && gpu.abilities.pf_quantum_ms)
            return fail(ErrorId::NotOffered,
                        fmt::format("{}: max_gap_ms of the GPU: its driver has none; each VF can "
                                    "have its own",
                                    describe(gpu.id, gpu.abilities)));
    }
    return {};
}

namespace {

Result<> admit_quanta(const GpuInventory& gpu, const GpuSettings& settings,
                      std::span<const VfSpec> vfs) {
    const auto quanta = quanta_of(gpu.abilities, settings, vfs);
    if (quanta) return {};
    return fail(quanta.error().id, fmt::format("{}: schedule: {}", gpu.id, quanta.error().cause));
}

}  // namespace

Result<> admit(const GpuInventory& gpu, const GpuSettings& settings, std::span<const VfSpec> vfs) {
    for (const VfSpec& vf : vfs) TRY_VOID(check_abilities(gpu, vf));
    if (gpu.abilities.pf_quantum_ms) return admit_quanta(gpu, settings, vfs);
    if (!gpu.abilities.has_run_tables) return {};
    std::vector<GpuSchedule::Member> members;
    std::vector<std::string> names;
    for (const VfSpec& vf : vfs) {
        // Any distinct numbers will do, because new VFs have no number yet.
        const auto number = static_cast<std::uint32_t>(members.size() + 1);
        members.push_back(GpuSchedule::member_of(number, vf, settings.quantum_us));
        names.push_back(vf.name);
    }
    auto admitted = GpuSchedule::admit(members, settings.max_gap_ms, names);
    if (!admitted)
        admitted.error().cause = fmt::format("{}: schedule: {}", gpu.id, admitted.error().cause);
    return admitted;
}

Result<> check_capacity(const GpuInventory& gpu, const GpuSettings& settings,
                        std::span<const VfSpec> vfs) {
    for (const VfSpec& vf : vfs) TRY_VOID(check_capacity(gpu, vf));
    TRY_VOID(check_sums(gpu, vfs));
    return admit(gpu, settings, vfs);
}

}  // namespace vgpu::daemon
