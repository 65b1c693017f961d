// SPDX-License-Identifier: MIT
#include "daemon/service/config/profiles.h"

#include "daemon/service/config/capacity.h"

#include <fmt/format.h>
#include <algorithm>
#include <bit>
#include <cctype>
#include <string_view>
#include <utility>

namespace vgpu::daemon {

namespace {

/// The profile of a VF: its spec without name, UUID, profile name and description. (VFs of one
/// profile may have different descriptions.)
VfSpec profile_of(VfSpec vf) {
    vf.name.clear();
    vf.uuid = {};
    vf.profile.clear();
    vf.description.clear();
    return vf;
}

/// A name that shows the VRAM, and a weight other than the default: "64MiB" or "64MiB-w300"; "vf"
/// in place of the VRAM if the profile has none.
std::string descriptive_name(const VfSpec& profile) {
    constexpr unsigned kMiBShift = 20;
    std::string name = profile.resources.vram_bytes == 0
                           ? "vf"
                           : fmt::format("{}MiB", profile.resources.vram_bytes >> kMiBShift);
    if (profile.weight != scheduler::kDefaultWeight) name += fmt::format("-w{}", profile.weight);
    return name;
}

/// Adds a profile with the values of `vf`, unless `profiles` has it already. Returns its name: the
/// VF's own profile name, or a variant ("large-2") if a profile with other values has this name. A
/// VF without a profile name uses any profile with the same values, or else a profile with a
/// descriptive name.
std::string add_profile(std::map<std::string, VfSpec>& profiles, const VfSpec& vf) {
    const VfSpec profile = profile_of(vf);
    if (vf.profile.empty())
        for (const auto& [name, other] : profiles)
            if (other == profile) return name;
    const std::string base = vf.profile.empty() ? descriptive_name(profile) : vf.profile;
    std::string name = base;
    for (int n = 2; profiles.contains(name) && profiles.at(name) != profile; ++n) {
        const std::string number = fmt::format("-{}", n);
        name = base.substr(0, kMaxLabelBytes - number.size()) + number;
    }
    profiles[name] = profile;
    return name;
}

/// "web-" for "web-1": the part of the name before `number`; empty if the name does not end with
/// exactly this number.
std::string stem_of(const std::string& name, std::uint32_t number) {
    const std::string digits = std::to_string(number);
    if (!name.ends_with(digits)) return "";
    std::string stem = name.substr(0, name.size() - digits.size());
    const bool is_number_complete =
        !stem.empty() && std::isdigit(static_cast<unsigned char>(stem.back())) == 0;
    return is_number_complete ? stem : "";
}

/// Merges consecutive VFs with the same profile and description, and the names stem1, stem2, …,
/// into one group "stem{n}".
std::vector<VfGroup> merge_groups(std::vector<VfGroup> single) {
    std::vector<VfGroup> groups;
    for (std::size_t i = 0; i < single.size();) {
        const std::string stem = stem_of(single[i].name, 1);
        std::uint32_t count = 1;
        while (!stem.empty() && i + count < single.size() &&
               single[i + count].profile == single[i].profile &&
               single[i + count].description == single[i].description &&
               single[i + count].name == stem + std::to_string(count + 1))
            ++count;
        groups.push_back(single[i]);
        if (count > 1) {
            groups.back().count = count;
            groups.back().name = stem + "{n}";
        }
        i += count;
    }
    return groups;
}

constexpr std::array kRoundings{std::pair<std::string_view, Rounding>{"auto", Rounding::PowerOfTwo},
                                std::pair<std::string_view, Rounding>{"even", Rounding::Unit}};

/// Adds the split into `vfs` VFs, if it is possible. Writes the mask of all compute units and the
/// number of all doorbell pages instead of 0, so that the document shows them.
void add_split(Configuration& configuration, const GpuInventory& gpu, std::uint32_t vfs,
               std::string_view kind, Rounding rounding) {
    const std::uint64_t vram_bytes = split_vram_bytes(gpu, vfs, rounding);
    if (vram_bytes == 0) return;
    const std::string label = fmt::format("{}-{}", kind, vfs);
    const std::string profile = fmt::format("{}-{}", gpu.id, label);
    VfResources& resources = configuration.profiles[profile].resources;
    resources.vram_bytes = vram_bytes;
    if (gpu.abilities.can(Change::CuMask)) resources.cu_mask = all_cus(gpu);
    if (gpu.abilities.can(Change::DoorbellPages))
        resources.doorbell_pages =
            static_cast<std::uint32_t>(gpu.abilities[Change::DoorbellPages].max);
    configuration.configs[label].push_back(
        {.gpu = gpu.id, .vfs = {{.profile = profile, .count = vfs, .name = gpu.id + "-{n}"}}});
}

}  // namespace

Configuration current_configuration(std::span<const GpuInventory> gpus, const std::string& label) {
    Configuration configuration;
    std::vector<GpuSection>& sections = configuration.configs[label];
    for (const GpuInventory& gpu : gpus) {
        GpuSection section{.gpu = gpu.id, .scheduler = change_to(gpu.settings)};
        for (const InventoryVf& vf : gpu.vfs)
            section.vfs.push_back({.profile = add_profile(configuration.profiles, vf.spec),
                                   .name = vf.spec.name,
                                   .description = vf.spec.description});
        section.vfs = merge_groups(std::move(section.vfs));
        sections.push_back(std::move(section));
    }
    return configuration;
}

/// For PowerOfTwo, the number of units becomes a power of two. The unit is a power of two on every
/// device, so the size in bytes is a power of two as well.
std::uint64_t split_vram_bytes(const GpuInventory& gpu, std::uint32_t vfs, Rounding rounding) {
    const Ability& vram = gpu.abilities[Change::VramBytes];
    if (vfs > gpu.total_vfs || vram.needs == Needs::Never) return 0;
    const std::uint64_t units = std::min(gpu.vram_bytes / vfs, vram.max) / vram.unit;
    return (rounding == Rounding::PowerOfTwo ? std::bit_floor(units) : units) * vram.unit;
}

Configuration automatic_configuration(std::span<const GpuInventory> gpus) {
    Configuration configuration;
    for (const auto& [kind, rounding] : kRoundings)
        for (const std::uint32_t vfs : kSplits)
            for (const GpuInventory& gpu : gpus) add_split(configuration, gpu, vfs, kind, rounding);
    return configuration;
}

}  // namespace vgpu::daemon
