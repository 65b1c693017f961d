// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/isa/dispatch.h"

#include <algorithm>

#include "pf-driver/hw/fields.h"
#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/isa/env.h"

namespace vgpu::softgpu::isa {

namespace {

using std::uint32_t;
using std::uint64_t;

constexpr uint32_t kMaxGroupItems = 1024, kMaxUserSgprs = 16, kVgprGranule = 4;
constexpr uint64_t kLdsGranule = 512;

/// The bit number of a code property, and the number of user SGPRs that the property requests.
struct UserSgprs {
    unsigned property;
    unsigned count;
};
#define PROPERTY(name, count)                          \
    UserSgprs {                                        \
        KERNEL_CODE_PROPERTIES__##name##__SHIFT, count \
    }
constexpr std::array kUserSgprs{
    PROPERTY(PRIVATE_SEGMENT_BUFFER, 4), PROPERTY(DISPATCH_PTR, 2), PROPERTY(QUEUE_PTR, 2),
    PROPERTY(KERNARG_SEGMENT_PTR, 2),    PROPERTY(DISPATCH_ID, 2),  PROPERTY(FLAT_SCRATCH_INIT, 2),
    PROPERTY(PRIVATE_SEGMENT_SIZE, 1)};
#undef PROPERTY

uint32_t user_sgprs(const DispatchSpec& spec) {
    return HW_GET(COMPUTE_PGM_RSRC2, USER_SGPR, spec.pgm_rsrc2);
}

uint32_t needed_user_sgprs(const DispatchSpec& spec) {
    uint32_t needed = 0;
    for (const UserSgprs& part : kUserSgprs)
        if (bit(spec.code_properties, part.property)) needed += part.count;
    return needed;
}

uint64_t items(const std::array<uint32_t, 3>& size) {
    return uint64_t{size[0]} * size[1] * size[2];
}

uint32_t waves_for(uint64_t work_items) {
    return static_cast<uint32_t>((work_items + kLanes - 1) / kLanes);
}

/// Writes consecutive registers of a wave's scalar register file.
class SgprWriter {
public:
    explicit SgprWriter(WaveState& state) : state_(state) {}
    void word(uint32_t value) { state_.scalar[next_++] = value; }
    void pair(uint64_t value) {
        word(low32(value));
        word(high32(value));
    }
    void seek(uint32_t sgpr) { next_ = sgpr; }

private:
    WaveState& state_;
    std::size_t next_ = 0;
};

void write_user_sgprs(SgprWriter& out, const DispatchSpec& spec) {
    if (spec.has_user_data) {
        for (uint32_t i = 0; i < user_sgprs(spec); ++i) out.word(spec.user_data[i]);
        return;
    }
    // in the order of LLVM AMDGPUUsage, "SGPR register set up order"
    const std::uint16_t properties = spec.code_properties;
    if (HW_GET(KERNEL_CODE_PROPERTIES, PRIVATE_SEGMENT_BUFFER, properties))
        for (const uint32_t word : spec.scratch_descriptor) out.word(word);
    if (HW_GET(KERNEL_CODE_PROPERTIES, DISPATCH_PTR, properties)) out.pair(spec.packet_address);
    if (HW_GET(KERNEL_CODE_PROPERTIES, QUEUE_PTR, properties)) out.pair(spec.queue_address);
    if (HW_GET(KERNEL_CODE_PROPERTIES, KERNARG_SEGMENT_PTR, properties))
        out.pair(spec.kernarg_address);
    if (HW_GET(KERNEL_CODE_PROPERTIES, DISPATCH_ID, properties)) out.pair(spec.dispatch_id);
    if (HW_GET(KERNEL_CODE_PROPERTIES, FLAT_SCRATCH_INIT, properties)) out.pair(spec.scratch_base);
    if (HW_GET(KERNEL_CODE_PROPERTIES, PRIVATE_SEGMENT_SIZE, properties))
        out.word(spec.private_bytes);
}

/// TG_SIZE: bit 31 marks the first wave of the group; the low six bits hold the number of waves.
uint32_t group_info(uint32_t wave, uint32_t waves) {
    return (wave == 0 ? 1u << 31 : 0) | (waves & 0x3f);
}

/// The system SGPRs that PGM_RSRC2 enables follow the user SGPRs.
void write_system_sgprs(SgprWriter& out, const DispatchSpec& spec, const Placement& placement,
                        uint32_t wave, uint32_t waves) {
    out.seek(user_sgprs(spec));
    for (unsigned d = 0; d < 3; ++d)
        if (bit(spec.pgm_rsrc2, COMPUTE_PGM_RSRC2__TGID_X_EN__SHIFT + d))
            out.word(placement.group_id[d]);
    if (HW_GET(COMPUTE_PGM_RSRC2, TG_SIZE_EN, spec.pgm_rsrc2)) out.word(group_info(wave, waves));
    if (HW_GET(COMPUTE_PGM_RSRC2, SCRATCH_EN, spec.pgm_rsrc2))
        out.word((placement.first_scratch_slot + wave) * spec.scratch_wave_bytes);
}

/// The value of MODE.EXCP_EN. PGM_RSRC2 holds the kernel's bits in two fields.
uint32_t exceptions_of(uint32_t rsrc2, const LaunchExceptions& debug) {
    const uint32_t own =
        HW_GET(COMPUTE_PGM_RSRC2, EXCP_EN, rsrc2) | HW_GET(COMPUTE_PGM_RSRC2, EXCP_EN_MSB, rsrc2)
                                                        << COMPUTE_PGM_RSRC2__EXCP_EN__WIDTH;
    return (debug.replace ? 0 : own) | debug.enabled;
}

uint32_t mode_of(uint32_t rsrc1, uint32_t exceptions) {
    return HW_GET(COMPUTE_PGM_RSRC1, FLOAT_MODE, rsrc1) | (exceptions << mode::kExceptionShift) |
           (HW_GET(COMPUTE_PGM_RSRC1, DX10_CLAMP, rsrc1) ? mode::kDx10Clamp : 0) |
           (HW_GET(COMPUTE_PGM_RSRC1, IEEE_MODE, rsrc1) ? mode::kIeee : 0) |
           (HW_GET(COMPUTE_PGM_RSRC1, FP16_OVFL, rsrc1) ? mode::kHalfOverflow : 0);
}

/// Writes the local ids to v0, v1 and v2; returns EXEC. `first` is the index of the wave's first
/// work-item in the group. Work-items have consecutive indices even in a partial group, so only the
/// last wave of a group may have fewer than 64 work-items.
uint64_t write_local_ids(Wave& wave, const std::array<uint32_t, 3>& size, uint32_t first) {
    const auto active = static_cast<uint32_t>(std::min<uint64_t>(items(size) - first, kLanes));
    std::array<uint32_t, 3> id{first % size[0], first / size[0] % size[1],
                               first / size[0] / size[1]};
    for (uint32_t lane = 0; lane < active; ++lane) {
        for (unsigned d = 0; d < id.size(); ++d) wave.vgprs[d].lane[lane] = id[d];
        if (++id[0] < size[0]) continue;
        id[0] = 0;
        if (++id[1] < size[1]) continue;
        id[1] = 0;
        ++id[2];
    }
    return ~uint64_t{0} >> (kLanes - active);
}

/// Writes the values that hardware puts into TTMP6 to TTMP11 for debuggers: the number of the
/// packet (TTMP6), 0 (TTMP7), the position of the group in the grid (TTMP8 to TTMP10), and the
/// number of the wave in the group (TTMP11, whose bit 6 says that the kernel uses no scratch).
/// Sources: ROCr trap handler; ROCdbgapi, architecture gfx9.
void write_trap_temporaries(SgprWriter& out, const DispatchSpec& spec, const Placement& placement,
                            uint32_t wave) {
    constexpr uint32_t kTtmp6 = static_cast<uint32_t>(ScalarReg::Ttmp0) + 6;
    constexpr uint32_t kPacketMask = 0x1ff'ffff, kNoScratch = 1u << 6;
    out.seek(kTtmp6);
    out.word(static_cast<uint32_t>(spec.dispatch_id) & kPacketMask);
    out.word(0);
    for (const uint32_t id : placement.group_id) out.word(id);
    out.word(wave | (HW_GET(COMPUTE_PGM_RSRC2, SCRATCH_EN, spec.pgm_rsrc2) ? 0 : kNoScratch));
}

/// Work-items of this group in each dimension: fewer than group_size at the end of the grid.
std::array<uint32_t, 3> actual_size(const DispatchSpec& spec, const Placement& placement) {
    std::array<uint32_t, 3> size{};
    for (unsigned d = 0; d < 3; ++d) {
        const uint64_t before = uint64_t{placement.group_id[d]} * spec.group_size[d];
        size[d] = static_cast<uint32_t>(
            std::min<uint64_t>(spec.group_size[d], spec.grid_size[d] - before));
    }
    return size;
}

}  // namespace

DispatchError check(const DispatchSpec& spec) {
    constexpr uint64_t kMaxAddress = uint64_t{1} << 48;
    const auto is_zero = [](uint32_t n) { return n == 0; };
    if (std::ranges::any_of(spec.group_size, is_zero) ||
        std::ranges::any_of(spec.grid_size, is_zero))
        return DispatchError::Dimensions;
    const bool too_long =
        std::ranges::any_of(spec.group_size, [](uint32_t n) { return n > kMaxGroupItems; });
    if (too_long || items(spec.group_size) > kMaxGroupItems) return DispatchError::GroupTooBig;
    if (spec.lds_bytes > kMaxLds.count) return DispatchError::LdsTooBig;
    const bool too_few = !spec.has_user_data && needed_user_sgprs(spec) > user_sgprs(spec);
    if (user_sgprs(spec) > kMaxUserSgprs || too_few) return DispatchError::UserSgprs;
    if (spec.entry % 4 != 0 || spec.entry >= kMaxAddress) return DispatchError::EntryAddress;
    return DispatchError::None;
}

std::array<uint32_t, 3> group_counts(const DispatchSpec& spec) {
    std::array<uint32_t, 3> counts{};
    for (unsigned d = 0; d < 3; ++d)
        counts[d] = static_cast<uint32_t>((uint64_t{spec.grid_size[d]} + spec.group_size[d] - 1) /
                                          spec.group_size[d]);
    return counts;
}

uint32_t waves_per_group(const DispatchSpec& spec) {
    return waves_for(items(spec.group_size));
}

uint32_t vgprs_per_wave(const DispatchSpec& spec) {
    const uint32_t blocks = HW_GET(COMPUTE_PGM_RSRC1, VGPRS, spec.pgm_rsrc1) + 1;
    return std::min(blocks * kVgprGranule, kMaxVgprs);
}

/// The vectors of `group` keep the memory of the earlier group; all their contents are rewritten.
void start_workgroup(Workgroup& group, const DispatchSpec& spec, const Placement& placement) {
    const std::array<uint32_t, 3> size = actual_size(spec, placement);
    const uint32_t waves = waves_for(items(size));
    const uint32_t exceptions = exceptions_of(spec.pgm_rsrc2, placement.debug);
    group.waves.resize(waves);
    group.group_id = placement.group_id;
    group.next_wave = 0;
    group.lds.assign((spec.lds_bytes + kLdsGranule - 1) / kLdsGranule * kLdsGranule, std::byte{0});
    for (uint32_t i = 0; i < waves; ++i) {
        Wave& wave = group.waves[i];
        wave.state = {};
        wave.resize_vgprs(vgprs_per_wave(spec));
        wave.state.pc = spec.entry;
        wave.state.mode = mode_of(spec.pgm_rsrc1, exceptions);
        wave.state.hw_id = placement.hw_id + i;
        wave.state.wave_in_group = static_cast<std::uint8_t>(i);
        wave.state.scalar[static_cast<std::size_t>(ScalarReg::M0)] = ~0u;
        SgprWriter sgprs(wave.state);
        write_user_sgprs(sgprs, spec);
        write_system_sgprs(sgprs, spec, placement, i, waves);
        write_trap_temporaries(sgprs, spec, placement, i);
        wave.state.is_trap_enabled =
            HW_GET(COMPUTE_PGM_RSRC2, TRAP_PRESENT, spec.pgm_rsrc2) != 0 ? 1 : 0;
        // for n blocks of 16 SGPRs, SGPRS is 2 * n - 2 and sgpr_blocks is n - 1
        wave.state.sgpr_blocks =
            static_cast<std::uint8_t>(HW_GET(COMPUTE_PGM_RSRC1, SGPRS, spec.pgm_rsrc1) / 2);
        wave.state.set_pair(ScalarReg::Exec, write_local_ids(wave, size, i * kLanes));
    }
}

}  // namespace vgpu::softgpu::isa
