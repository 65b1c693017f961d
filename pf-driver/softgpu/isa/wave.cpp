// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/isa/wave.h"

#include <algorithm>

namespace vgpu::softgpu::isa {

namespace {

/// True if all members that handlers and the run loop use without a check are valid. The other
/// members may have any value.
bool is_sane(const WaveState& state) {
    const bool has_registers = state.vgpr_count != 0 && state.vgpr_count <= kMaxVgprs;
    const bool has_flags = state.scc <= 1 && state.is_privileged <= 1 && state.is_halting <= 1 &&
                           state.is_trap_enabled <= 1;
    return has_registers && has_flags && state.phase <= WavePhase::Ended && state.pc % 4 == 0;
}

/// Scratch rows are not in the stream, because their contents do not outlive an instruction.
Result<> load_wave(Reader& reader, Wave& wave) {
    TRY_VOID(reader.value(wave.state));
    if (!is_sane(wave.state)) return fail(EPROTO, "state stream holds an impossible wave");
    wave.resize_vgprs(wave.state.vgpr_count);
    return reader.bytes(std::as_writable_bytes(std::span(wave.vgprs).first(wave.state.vgpr_count)));
}

Result<> load_group(Reader& reader, Workgroup& group) {
    std::uint32_t count = 0;
    TRY_VOID(reader.value(count));
    if (count > kMaxWaves) return fail(EPROTO, "state stream holds a group of too many waves");
    TRY_VOID(reader.value(group.group_id));
    TRY_VOID(reader.value(group.next_wave));
    TRY_VOID(reader.value(group.tag));
    TRY_VOID(reader.vector(group.lds, kMaxLds.count));
    if (group.next_wave >= std::max(count, 1u))
        return fail(EPROTO, "state stream names a next wave that does not exist");
    group.waves.resize(count);
    for (Wave& wave : group.waves) TRY_VOID(load_wave(reader, wave));
    return {};
}

}  // namespace

void Wave::resize_vgprs(unsigned count) {
    state.vgpr_count = static_cast<std::uint16_t>(count);
    vgprs.assign(count + kTemporaryRows, VgprRow{});
}

bool Workgroup::ended() const {
    return std::ranges::all_of(
        waves, [](const Wave& wave) { return wave.state.phase == WavePhase::Ended; });
}

void Workgroup::save(Writer& writer) const {
    writer.value(static_cast<std::uint32_t>(waves.size()));
    writer.value(group_id);
    writer.value(next_wave);
    writer.value(tag);
    writer.vector(lds);
    for (const Wave& wave : waves) {
        writer.value(wave.state);
        writer.bytes(std::as_bytes(std::span(wave.vgprs).first(wave.state.vgpr_count)));
    }
}

Result<> Workgroup::load(Reader& reader) {
    auto loaded = load_group(reader, *this);
    if (!loaded) *this = {};
    return loaded;
}

}  // namespace vgpu::softgpu::isa
