// SPDX-License-Identifier: MIT
//
// PM4 packets that control a stream (indirect buffers, conditions), write registers, or dispatch
// the kernel that the registers describe.
#include <algorithm>
#include <array>

#include "pf-driver/hw/aql.h"
#include "pf-driver/hw/fields.h"
#include "pf-driver/softgpu/cp/pm4.h"

namespace vgpu::softgpu::cp {

namespace {

/// The first register of which each queue has its own copy (QueueState::sh).
constexpr std::uint32_t kQueueRegisterFirst = REG_GC_COMPUTE_DISPATCH_INITIATOR;

/// The registers [first, end).
struct RegisterSpace {
    std::uint32_t first;
    std::uint32_t end;
};
constexpr RegisterSpace kConfig{HW_REG_BASE_CONFIG, HW_REG_END_CONFIG};
constexpr RegisterSpace kSh{HW_REG_BASE_SH, HW_REG_END_SH};
constexpr RegisterSpace kContext{HW_REG_BASE_CONTEXT, HW_REG_END_CONTEXT};
constexpr RegisterSpace kUconfig{HW_REG_BASE_UCONFIG, HW_REG_END_UCONFIG};
/// The only registers that a stream without privilege may access.
constexpr std::array kUserSpaces{kSh, kContext, kUconfig};

/// Bytes of the step budget that the write of a register takes: the write may map or stop a queue.
constexpr std::uint64_t kRegisterCost = 1u << 10;

bool is_queue_register(std::uint32_t index) {
    return index >= kQueueRegisterFirst && index - kQueueRegisterFirst < MQD_SH_COUNT;
}

Outcome set_registers(Packet& packet, const RegisterSpace& space) {
    const std::uint32_t first = space.first + HW_GET(SET_REG_1, OFFSET, packet.dword(1));
    const auto count = static_cast<std::uint32_t>(packet.body.size() - 1);
    if (first + count > space.end) return Outcome::PrivilegedRegister;
    return write_registers(packet, first, false, packet.body.subspan(1));
}

/// COMPUTE_PGM_LO/HI and COMPUTE_DISPATCH_SCRATCH_BASE_LO/HI hold addresses in units of 256 bytes.
constexpr unsigned kAddressShift = 8;

/// SET_BASE: the BASE_INDEX of the base for indirect arguments.
constexpr std::uint32_t kBaseOfIndirect = 1;

/// The operands of a dispatch, in addition to the registers of its queue.
struct Launch {
    std::array<std::uint32_t, 3> grid;  ///< work-groups; work-items if USE_THREAD_DIMENSIONS is set
    std::uint32_t initiator;            ///< COMPUTE_DISPATCH_INITIATOR
};

/// Size of a work-group in the dimension of register `which`, in work-items. A value of 0 counts as
/// 1, because a fresh MQD holds zeroes.
std::uint32_t group_size(const Queue& queue, hw_reg which) {
    return std::max(HW_GET(COMPUTE_NUM_THREAD, FULL, queue.sh(which)), 1u);
}

/// The grid in work-items; nullopt if a dimension exceeds 32 bits.
std::optional<std::array<std::uint32_t, 3>> grid_of(const Launch& launch,
                                                    const std::array<std::uint32_t, 3>& group) {
    const bool is_in_items =
        HW_GET(COMPUTE_DISPATCH_INITIATOR, USE_THREAD_DIMENSIONS, launch.initiator) != 0;
    std::array<std::uint32_t, 3> grid{};
    for (unsigned i = 0; i < 3; ++i) {
        const std::uint64_t items = std::uint64_t{launch.grid[i]} * (is_in_items ? 1u : group[i]);
        if (items > ~0u) return std::nullopt;
        grid[i] = low32(items);
    }
    return grid;
}

/// Copies the queue's scratch settings to `state` if the kernel uses scratch. WAVESIZE is in KiB.
void set_scratch(const Queue& queue, DispatchState& state) {
    if (HW_GET(COMPUTE_PGM_RSRC2, SCRATCH_EN, state.spec.pgm_rsrc2) == 0) return;
    const std::uint32_t ring = queue.sh(REG_GC_COMPUTE_TMPRING_SIZE);
    state.scratch_slots = HW_GET(COMPUTE_TMPRING_SIZE, WAVES, ring);
    state.spec.scratch_wave_bytes = HW_GET(COMPUTE_TMPRING_SIZE, WAVESIZE, ring) << 10;
    state.spec.scratch_base = join(queue.sh(REG_GC_COMPUTE_DISPATCH_SCRATCH_BASE_LO),
                                   queue.sh(REG_GC_COMPUTE_DISPATCH_SCRATCH_BASE_HI))
                              << kAddressShift;
}

void set_start(const Queue& queue, const Launch& launch, DispatchState& state) {
    if (HW_GET(COMPUTE_DISPATCH_INITIATOR, FORCE_START_AT_000, launch.initiator) != 0) return;
    for (unsigned i = 0; i < 3; ++i)
        state.start[i] = queue.state.sh[Queue::sh_slot(REG_GC_COMPUTE_START_X) + i];
    state.next = state.start;
}

/// True if the queue has no room for another kernel in flight; the queue then waits until its
/// kernels have ended.
bool wait_for_room(Queue& queue, const Core& core) {
    if (core.dispatcher.in_flight(queue.id) < kAqlWindow) return false;
    queue.state.wait.kind = WaitKind::Dispatches;
    return true;
}

/// Starts a kernel that the queue's registers describe (example: Linux 6.12, amdgpu/gfx_v9_0.c,
/// gfx_v9_0_do_edc_gpr_workarounds). A dispatch that is not enabled or has no work-group starts
/// nothing. Refuses a dispatch that grid_of() or isa::check() refuses, whose work-group fits no CU,
/// or whose work-group needs scratch and has more waves than the queue has scratch slots. If the
/// queue has 0 scratch slots (WAVES), the kernel takes none.
Outcome dispatch(Packet& packet, const Launch& launch) {
    Queue& queue = packet.queue;
    DispatchState state;
    isa::DispatchSpec& spec = state.spec;
    state.queue = queue.id;
    state.vmid = packet.vmid;
    spec.entry = join(queue.sh(REG_GC_COMPUTE_PGM_LO), queue.sh(REG_GC_COMPUTE_PGM_HI))
                 << kAddressShift;
    spec.pgm_rsrc1 = queue.sh(REG_GC_COMPUTE_PGM_RSRC1);
    spec.pgm_rsrc2 = queue.sh(REG_GC_COMPUTE_PGM_RSRC2);
    spec.lds_bytes = HW_GET(COMPUTE_PGM_RSRC2, LDS_SIZE, spec.pgm_rsrc2) * AQL_LDS_BLOCK_BYTES;
    spec.group_size = {group_size(queue, REG_GC_COMPUTE_NUM_THREAD_X),
                       group_size(queue, REG_GC_COMPUTE_NUM_THREAD_Y),
                       group_size(queue, REG_GC_COMPUTE_NUM_THREAD_Z)};
    spec.has_user_data = 1;
    std::copy_n(queue.state.sh.begin() + Queue::sh_slot(REG_GC_COMPUTE_USER_DATA_0),
                spec.user_data.size(), spec.user_data.begin());
    const bool is_enabled =
        HW_GET(COMPUTE_DISPATCH_INITIATOR, COMPUTE_SHADER_EN, launch.initiator) != 0;
    const auto grid = grid_of(launch, spec.group_size);
    if (!grid) return Outcome::BadPacket;
    spec.grid_size = *grid;
    const bool is_empty = std::find(grid->begin(), grid->end(), 0u) != grid->end();
    if (!is_enabled || is_empty) return Outcome::Done;
    set_scratch(queue, state);
    if (isa::check(spec) != isa::DispatchError::None) return Outcome::BadPacket;
    const Footprint footprint = Footprint::of(spec);
    if (!footprint.fits_a_cu() ||
        (state.scratch_slots != 0 && state.scratch_slots < footprint.waves))
        return Outcome::BadPacket;
    state.end = isa::group_counts(spec);
    set_start(queue, launch, state);
    for (unsigned i = 0; i < 3; ++i)
        if (state.next[i] >= state.end[i]) return Outcome::Done;
    state.start_ticks = packet.core.ticks();
    packet.core.dispatcher.start(state);
    return Outcome::Done;
}

}  // namespace

bool may_reach(const Packet& packet, std::uint32_t index) {
    if (index >= HW_REG_COUNT) return false;
    if (packet.is_privileged) return true;
    return std::any_of(kUserSpaces.begin(), kUserSpaces.end(), [&](const RegisterSpace& space) {
        return index >= space.first && index < space.end;
    });
}

bool write_register(Packet& packet, std::uint32_t index, std::uint32_t value) {
    if (!may_reach(packet, index)) return false;
    if (is_queue_register(index))
        packet.queue.state.sh[index - kQueueRegisterFirst] = value;
    else
        packet.core.registers.write(RegisterIndex{index}, value);
    return true;
}

/// Counts in a local variable, because a register that stops this packet's queue clears `progress`.
Outcome write_registers(Packet& packet, std::uint32_t first, bool is_one_register,
                        std::span<const std::uint32_t> values) {
    std::uint64_t& progress = packet.queue.state.progress;
    for (std::uint64_t i = progress; i < values.size(); ++i) {
        if (packet.budget.bytes == 0) {
            progress = i;
            return Outcome::Partial;
        }
        const std::uint32_t index = first + (is_one_register ? 0u : low32(i));
        if (!write_register(packet, index, values[i])) return Outcome::PrivilegedRegister;
        packet.budget.bytes -= std::min(kRegisterCost, packet.budget.bytes);
    }
    return Outcome::Done;
}

bool read_register(Packet& packet, std::uint32_t index, std::uint32_t& value) {
    if (!may_reach(packet, index)) return false;
    value = is_queue_register(index) ? packet.queue.state.sh[index - kQueueRegisterFirst]
                                     : packet.core.registers.read(RegisterIndex{index});
    return true;
}

Outcome handle_ignored(Packet&) {
    return Outcome::Done;
}

/// Sets the base address of indirect arguments, and refuses a packet for this base that has no
/// address. A packet for another base does nothing.
Outcome handle_set_base(Packet& packet) {
    const bool is_indirect = HW_GET(SET_BASE_1, BASE_INDEX, packet.dword(1)) == kBaseOfIndirect;
    if (is_indirect && packet.body.size() < 3) return Outcome::BadPacket;
    if (is_indirect) packet.queue.state.indirect_base = packet.pair(2);
    return Outcome::Done;
}

Outcome handle_event_write(Packet& packet) {
    // softgpu has no data caches to flush, so an event only waits for the end of earlier kernels.
    if (packet.core.dispatcher.in_flight(packet.queue.id) == 0) return Outcome::Done;
    packet.queue.state.wait.kind = WaitKind::Dispatches;
    return Outcome::Blocked;
}

/// Advances the stream past the packet before the new IB begins. If an IB chains to the new IB,
/// advances the stream of the old IB to its end, because the old IB never resumes.
Outcome handle_indirect_buffer(Packet& packet) {
    QueueState& state = packet.queue.state;
    const std::uint32_t control = packet.dword(3);
    const std::uint32_t dwords = HW_GET(INDIRECT_BUFFER_3, IB_SIZE, control);
    const GpuVa va{packet.pair(1) & ~3ull};
    const Vmid named{static_cast<std::uint8_t>(HW_GET(INDIRECT_BUFFER_3, VMID, control))};
    const Vmid vmid = packet.is_privileged ? named : packet.vmid;
    const bool is_chain = HW_GET(INDIRECT_BUFFER_3, CHAIN, control) != 0 && state.frame_count != 0;
    advance_stream(packet.queue, is_chain ? stream_left(packet.queue) : packet.body.size() + 1);
    return call_ib(packet.queue, va, dwords, vmid) ? Outcome::Redirected : Outcome::BadPacket;
}

/// A skip ends at the latest at the end of the packet's stream; in a ring, at the write pointer.
Outcome handle_cond_exec(Packet& packet) {
    const std::optional<std::uint32_t> flag =
        packet.core.memory.load<std::uint32_t>(packet.vmid, GpuVa{packet.pair(1) & ~3ull});
    if (!flag) return Outcome::Fault;
    const std::uint64_t own = packet.body.size() + 1;
    const std::uint64_t skip = *flag != 0 ? 0 : HW_GET(COND_EXEC_4, EXEC_COUNT, packet.dword(4));
    advance_stream(packet.queue, std::min(own + skip, stream_left(packet.queue)));
    return Outcome::Redirected;
}

Outcome handle_set_config_reg(Packet& packet) {
    return set_registers(packet, kConfig);
}

Outcome handle_set_context_reg(Packet& packet) {
    return set_registers(packet, kContext);
}

Outcome handle_set_sh_reg(Packet& packet) {
    return set_registers(packet, kSh);
}

Outcome handle_set_uconfig_reg(Packet& packet) {
    return set_registers(packet, kUconfig);
}

Outcome handle_dispatch_direct(Packet& packet) {
    if (wait_for_room(packet.queue, packet.core)) return Outcome::Blocked;
    const Launch launch{{packet.dword(1), packet.dword(2), packet.dword(3)}, packet.dword(4)};
    return dispatch(packet, launch);
}

/// On the gfx ring, the packet holds an offset from the base of SET_BASE; on other queues, it holds
/// an address and is one dword longer. The handler refuses a packet of the wrong size. It waits
/// until there is room for the kernel, then reads the grid from memory and starts the kernel like a
/// direct dispatch.
Outcome handle_dispatch_indirect(Packet& packet) {
    const bool is_offset = packet.queue.is_gfx();
    if (packet.body.size() != (is_offset ? 2u : 3u)) return Outcome::BadPacket;
    if (wait_for_room(packet.queue, packet.core)) return Outcome::Blocked;
    const std::uint64_t va =
        is_offset ? packet.queue.state.indirect_base + packet.dword(1) : packet.pair(1);
    Launch launch{{}, packet.body.back()};
    const auto into = std::as_writable_bytes(std::span(launch.grid));
    if (!packet.core.memory.read(packet.vmid, GpuVa{va & ~3ull}, into)) return Outcome::Fault;
    return dispatch(packet, launch);
}

}  // namespace vgpu::softgpu::cp
