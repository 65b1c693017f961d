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

Occupancy::Occupancy(std::uint32_t compute_units) : units_(std::max(compute_units, 1u)) {
    assign_places();
}

void Occupancy::set_mask(std::uint64_t mask) {
    bool has_unit = false;
    for (std::size_t i = 0; i < units_.size(); ++i) {
        units_[i].is_allowed = i < 64 && bit(mask, static_cast<unsigned>(i));
        has_unit |= units_[i].is_allowed;
    }
    // a VF without compute units could never finish a kernel, so the VF gets the first unit
    if (!has_unit) units_.front().is_allowed = true;
    assign_places();
}

/// Counts like ShaderArrays: CU n of the mask, counted from 0, is in shader engine n modulo
/// kEngines.
void Occupancy::assign_places() {
    std::uint32_t count = 0;
    for (Unit& unit : units_) {
        if (!unit.is_allowed) continue;
        unit.place = {count % regs::ShaderArrays::kEngines, count / regs::ShaderArrays::kEngines};
        ++count;
    }
}

bool Occupancy::is_open(const Unit& unit, const CuMask& queue) {
    return unit.is_allowed && bit(queue[unit.place.engine], unit.place.cu);
}

/// The mask comes from the guest (COMPUTE_STATIC_THREAD_MGMT) and may name no CU of the VF.
const CuMask& Occupancy::usable_mask(const CuMask& queue) const {
    const bool has_any = std::any_of(units_.begin(), units_.end(),
                                     [&](const Unit& unit) { return is_open(unit, queue); });
    return has_any ? queue : kAllCus;
}

bool Occupancy::has_room(const Unit& unit, const Footprint& need) {
    return unit.used.waves + need.waves <= kWavesPerCu &&
           unit.used.lds_bytes + need.lds_bytes <= kLdsBytesPerCu &&
           unit.used.vgpr_bytes + need.vgpr_bytes <= kVgprBytesPerCu;
}

void Occupancy::occupy(Unit& unit, const Footprint& need) {
    unit.used.waves += need.waves;
    unit.used.lds_bytes += need.lds_bytes;
    unit.used.vgpr_bytes += need.vgpr_bytes;
}

bool Occupancy::can_take(const Footprint& need, const CuMask& queue) const {
    const CuMask& mask = usable_mask(queue);
    return std::any_of(units_.begin(), units_.end(), [&](const Unit& unit) {
        return is_open(unit, mask) && has_room(unit, need);
    });
}

std::optional<std::uint32_t> Occupancy::take(const Footprint& need, const CuMask& queue) {
    const CuMask& mask = usable_mask(queue);
    for (std::uint32_t i = 0; i < units_.size(); ++i) {
        const std::uint32_t cu = (next_ + i) % compute_units();
        if (!is_open(units_[cu], mask) || !has_room(units_[cu], need)) continue;
        occupy(units_[cu], need);
        next_ = cu + 1;
        return cu;
    }
    return std::nullopt;
}

/// Takes the CU with the fewest waves among those that the queue may use.
std::uint32_t Occupancy::force(const Footprint& need, const CuMask& queue) {
    const CuMask& mask = usable_mask(queue);
    std::uint32_t best = 0;
    std::uint32_t min = ~0u;
    for (std::uint32_t i = 0; i < units_.size(); ++i) {
        if (!is_open(units_[i], mask) || units_[i].used.waves >= min) continue;
        best = i;
        min = units_[i].used.waves;
    }
    occupy(units_[best], need);
    return best;
}

void Occupancy::restore(std::uint32_t cu, const Footprint& need) {
    occupy(units_[cu % compute_units()], need);
}

/// A forged save area can make `vgpr_bytes` and `lds_bytes` of a CU wrap, but not `waves`.
bool Occupancy::is_overfull() const {
    std::uint64_t waves = 0;
    std::uint64_t lds_bytes = 0;
    std::uint64_t vgpr_bytes = 0;
    for (const Unit& unit : units_) {
        waves += unit.used.waves;
        lds_bytes += unit.used.lds_bytes;
        vgpr_bytes += unit.used.vgpr_bytes;
    }
    const std::uint64_t limit = 2 * std::uint64_t{compute_units()};
    return waves > limit * kWavesPerCu || lds_bytes > limit * kLdsBytesPerCu ||
           vgpr_bytes > limit * kVgprBytesPerCu;
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
