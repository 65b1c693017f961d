// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/cp/occupancy.h"

#include <algorithm>
#include <cassert>

#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::softgpu::cp {

Footprint Footprint::of(const isa::DispatchSpec& spec) {
    Footprint footprint;
    footprint.waves = isa::waves_per_group(spec);
    footprint.lds_bytes = spec.lds_bytes;
    footprint.vgpr_bytes = footprint.waves * isa::vgprs_per_wave(spec) * kBytesPerVgpr;
    return footprint;
}

bool Footprint::fits_a_cu() const {
    return waves <= kWavesPerCu && lds_bytes <= kLdsBytesPerCu && vgpr_bytes <= kVgprBytesPerCu;
}

Occupancy::Occupancy(std::uint32_t compute_units) : units_(std::max(compute_units, 1u)) {}

void Occupancy::set_mask(std::uint64_t mask) {
    bool any = false;
    for (std::size_t i = 0; i < units_.size(); ++i) {
        units_[i].is_allowed = i < 64 && bit(mask, static_cast<unsigned>(i));
        any |= units_[i].is_allowed;
    }
    // a VF without compute units could never finish a kernel: it keeps the first one
    if (!any) units_.front().is_allowed = true;
}

bool Occupancy::has_room(const Unit& unit, const Footprint& need) {
    return unit.is_allowed && unit.used.waves + need.waves <= kWavesPerCu &&
           unit.used.lds_bytes + need.lds_bytes <= kLdsBytesPerCu &&
           unit.used.vgpr_bytes + need.vgpr_bytes <= kVgprBytesPerCu;
}

void Occupancy::add(Unit& unit, const Footprint& need) {
    unit.used.waves += need.waves;
    unit.used.lds_bytes += need.lds_bytes;
    unit.used.vgpr_bytes += need.vgpr_bytes;
}

bool Occupancy::can_take(const Footprint& need) const {
    return std::any_of(units_.begin(), units_.end(),
                       [&](const Unit& unit) { return has_room(unit, need); });
}

std::optional<std::uint32_t> Occupancy::take(const Footprint& need) {
    for (std::uint32_t i = 0; i < units_.size(); ++i) {
        const std::uint32_t cu = (next_ + i) % compute_units();
        if (!has_room(units_[cu], need)) continue;
        add(units_[cu], need);
        next_ = cu + 1;
        return cu;
    }
    return std::nullopt;
}

std::uint32_t Occupancy::force(const Footprint& need) {
    std::uint32_t best = 0;
    std::uint32_t least = ~0u;
    for (std::uint32_t i = 0; i < units_.size(); ++i) {
        if (!units_[i].is_allowed || units_[i].used.waves >= least) continue;
        best = i;
        least = units_[i].used.waves;
    }
    add(units_[best], need);
    return best;
}

void Occupancy::retake(std::uint32_t cu, const Footprint& need) {
    add(units_[cu % compute_units()], need);
}

void Occupancy::release(std::uint32_t cu, const Footprint& need) {
    Footprint& used = units_[cu % compute_units()].used;
    assert(used.waves >= need.waves);
    used.waves -= need.waves;
    used.lds_bytes -= need.lds_bytes;
    used.vgpr_bytes -= need.vgpr_bytes;
}

void Occupancy::clear() {
    for (Unit& unit : units_) unit.used = {};
    next_ = 0;
}

}  // namespace vgpu::softgpu::cp
