// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/cp/pm4.h"

#include <algorithm>
#include <array>

#include "pf-driver/hw/fields.h"

namespace vgpu::softgpu::cp {

namespace {

/// The table of hw/pm4.def, by opcode. An action without a handler is a link error.
constexpr std::array<PacketRow, 256> make_rows() {
    std::array<PacketRow, 256> rows{};
#define PM4(name, opcode, min_body, max_body, action, doc) \
    rows[opcode] = {handle_##action, (min_body), (max_body)};
#include "pf-driver/hw/pm4.def"
#undef PM4
    return rows;
}
constexpr std::array<PacketRow, 256> kRows = make_rows();

enum class FetchResult : std::uint8_t {
    Packet,
    Filler,   ///< one dword without effect
    Nothing,  ///< the stream has no complete packet
    Bad,
    Fault
};

/// The VMID of the innermost stream, and how much of the stream is left.
struct Position {
    Vmid vmid;
    std::uint64_t left;  ///< dwords
};

Position position_of(const Queue& queue) {
    const QueueState& state = queue.state;
    if (state.frame_count == 0) return {queue.vmid(), stream_left(queue)};
    const IbFrame& frame = state.frames[state.frame_count - 1u];
    return {Vmid{static_cast<std::uint8_t>(frame.vmid)}, stream_left(queue)};
}

/// The address in the innermost stream, `first` dwords after its position.
std::uint64_t address_of(const Queue& queue, std::uint64_t first) {
    const QueueState& state = queue.state;
    if (state.frame_count != 0) {
        const IbFrame& frame = state.frames[state.frame_count - 1u];
        return frame.va + (frame.next + first) * 4;
    }
    return raw(queue.ring()) + ((state.rptr + first) & (queue.ring_dwords() - 1)) * 4;
}

/// Fills `out` from the innermost stream, `first` dwords after its position; the stream must hold
/// these dwords. Two reads are enough, because the dwords wrap around the ring at most once.
bool read_stream(Core& core, const Queue& queue, std::uint64_t first,
                 std::span<std::uint32_t> out) {
    const Vmid vmid = position_of(queue).vmid;
    const GpuVa va{address_of(queue, first)};
    if (queue.state.frame_count != 0)
        return core.memory.read(vmid, va, std::as_writable_bytes(out));
    const GpuVa base = queue.ring();
    const std::uint64_t to_end = queue.ring_dwords() - (raw(va) - raw(base)) / 4;
    const auto head = static_cast<std::size_t>(std::min<std::uint64_t>(to_end, out.size()));
    if (!core.memory.read(vmid, va, std::as_writable_bytes(out.first(head)))) return false;
    return head == out.size() ||
           core.memory.read(vmid, base, std::as_writable_bytes(out.subspan(head)));
}

bool is_in_ring(const Queue& queue) {
    return queue.state.frame_count == 0;
}

/// Handles a packet of `dwords` dwords that is longer than the rest of its stream. In a ring the
/// queue waits for the missing dwords. Returns Bad if these dwords can never come: in an IB, or in
/// a ring that is too small for the packet.
FetchResult handle_short_packet(Queue& queue, std::uint64_t dwords) {
    if (!is_in_ring(queue) || dwords >= queue.ring_dwords()) return FetchResult::Bad;
    queue.state.wait.kind = WaitKind::MoreData;
    queue.state.wait.reference = queue.state.wptr;
    return FetchResult::Nothing;
}

/// Fetches the next packet: its header and, in core.packet, the body for its handler. Reads the
/// header first, because it holds the packet's length. Does not read the body of a NOP.
FetchResult fetch(Core& core, Queue& queue, std::uint32_t& header) {
    const std::uint64_t left = stream_left(queue);
    if (left == 0) return FetchResult::Nothing;
    if (!read_stream(core, queue, 0, std::span(&header, 1))) return FetchResult::Fault;
    const std::uint32_t type = HW_GET(PM4_HEADER, TYPE, header);
    const std::uint32_t count = HW_GET(PM4_HEADER, COUNT, header);
    const std::uint32_t opcode = HW_GET(PM4_HEADER, OPCODE, header);
    if (type == PM4_TYPE_2) return FetchResult::Filler;
    if (type != PM4_TYPE_3) return FetchResult::Bad;
    if (opcode == PM4_OP_NOP && count == PM4_COUNT_NO_BODY) return FetchResult::Filler;
    const PacketRow& row = packet_row(opcode);
    const std::uint32_t body = count + 1;
    if (row.handler == nullptr || body < row.min_body || body > row.max_body)
        return FetchResult::Bad;
    if (body + 1 > left) return handle_short_packet(queue, std::uint64_t{body} + 1);
    core.packet.resize(opcode == PM4_OP_NOP ? 0 : body);
    if (!read_stream(core, queue, 1, core.packet)) return FetchResult::Fault;
    return FetchResult::Packet;
}

/// Writes the read pointer of a PM4 queue to memory if it has changed; writes nothing for a queue
/// that a memory fault has halted.
void report_rptr(Core& core, Queue& queue) {
    QueueState& state = queue.state;
    if (state.halt != Halt::None && state.halt != Halt::BadPacket) return;
    if (state.rptr == state.reported || queue.is_aql()) return;
    state.reported = state.rptr;
    const GpuVa address = queue.report_address();
    if (raw(address) == 0) return;
    if (!core.memory.store<std::uint32_t>(queue.vmid(), address, low32(state.rptr)))
        core.fault(queue);
}

/// Applies an outcome; true if the queue may continue at once. After Done, advances the stream past
/// the packet: a header, then a body of COUNT + 1 dwords. After Redirected, the handler has already
/// advanced the stream.
bool finish_packet(Core& core, Queue& queue, Outcome outcome, std::uint32_t header) {
    switch (outcome) {
        case Outcome::Done:
            queue.state.progress = 0;
            advance_stream(queue, HW_GET(PM4_HEADER, COUNT, header) + 2u);
            return true;
        case Outcome::Redirected:
            queue.state.progress = 0;
            return true;
        case Outcome::Partial:
            return true;
        case Outcome::Blocked:
            return false;
        case Outcome::BadPacket:
            core.refuse(queue, IH_SOURCE_CP_BAD_OPCODE, header);
            return false;
        case Outcome::PrivilegedRegister:
            core.refuse(queue, IH_SOURCE_CP_PRIV_REG, header);
            return false;
        case Outcome::Fault:
            core.fault(queue);
            return false;
    }
    return false;
}

/// Calls the handler of the packet at the position of the stream. Forgets progress that belongs to
/// a packet at another address. A packet that restarts its own ring is then over: the queue is
/// already at the start of the ring.
Outcome execute(Packet& packet, std::uint32_t header) {
    Core& core = packet.core;
    QueueState& state = packet.queue.state;
    const std::uint64_t at = address_of(packet.queue, 0);
    if (state.progress_at != at) {
        state.progress = 0;
        state.is_unmapping = 0;
    }
    state.progress_at = at;
    core.executing = packet.queue.id;
    core.has_restarted = false;
    const Outcome outcome = packet_row(HW_GET(PM4_HEADER, OPCODE, header)).handler(packet);
    core.executing = kNoQueue;
    if (!core.has_restarted) return outcome;
    state.wait = {};
    return Outcome::Redirected;
}

/// Executes one packet; true if the queue may continue at once. The privilege depends on the
/// stream, not only on the queue: an IB that a kernel queue runs in a process's VMID is not
/// privileged.
bool run_one(Core& core, Queue& queue, StepBudget& budget) {
    std::uint32_t header = 0;
    switch (fetch(core, queue, header)) {
        case FetchResult::Nothing:
            return false;
        case FetchResult::Fault:
            core.fault(queue);
            return false;
        case FetchResult::Bad:
            core.refuse(queue, IH_SOURCE_CP_BAD_OPCODE, header);
            return false;
        case FetchResult::Filler:
            budget.charge(4);
            queue.state.progress = 0;
            advance_stream(queue, 1);
            return true;
        case FetchResult::Packet:
            break;
    }
    const Vmid vmid = position_of(queue).vmid;
    Packet packet{core, queue, vmid, queue.is_privileged() && raw(vmid) == 0, core.packet, budget};
    const Outcome outcome = execute(packet, header);
    budget.charge(core.packet.size() * 4);
    if (outcome == Outcome::Done || outcome == Outcome::Redirected) ++core.counters.packets;
    return finish_packet(core, queue, outcome, header);
}

}  // namespace

const PacketRow& packet_row(std::uint32_t opcode) {
    return kRows[opcode & 0xffu];
}

std::uint64_t stream_left(const Queue& queue) {
    const QueueState& state = queue.state;
    if (state.frame_count != 0) {
        const IbFrame& frame = state.frames[state.frame_count - 1u];
        return frame.size - frame.next;
    }
    return (state.wptr - state.rptr) & (queue.ring_dwords() - 1);
}

void advance_stream(Queue& queue, std::uint64_t dwords) {
    QueueState& state = queue.state;
    if (state.frame_count == 0) {
        state.rptr = (state.rptr + dwords) & (queue.ring_dwords() - 1);
        return;
    }
    state.frames[state.frame_count - 1u].next += low32(dwords);
    while (state.frame_count != 0) {
        const IbFrame& frame = state.frames[state.frame_count - 1u];
        if (frame.next < frame.size) return;
        --state.frame_count;
    }
}

bool call_ib(Queue& queue, GpuVa va, std::uint32_t dwords, Vmid vmid) {
    QueueState& state = queue.state;
    if (dwords == 0) return true;
    if (state.frame_count == state.frames.size()) return false;
    state.frames[state.frame_count++] = {raw(va), dwords, 0, raw(vmid), 0};
    return true;
}

void run_pm4_packet(Core& core, Queue& queue, StepBudget& budget) {
    (void)run_one(core, queue, budget);
    report_rptr(core, queue);
}

/// Reports the read pointer once per step, not once per packet, because guests read the pointer
/// only to find room in the ring.
StepResult run_pm4(Core& core, Queue& queue, StepBudget& budget) {
    QueueState& state = queue.state;
    bool moved = false;
    while (!budget.is_spent() && state.halt == Halt::None) {
        if (state.wait.kind != WaitKind::None) {
            if (!is_wait_over(core, queue)) break;
            state.wait = {};
        }
        const bool was_in_ib = !is_in_ring(queue);
        const std::uint32_t before = budget.packets;
        const bool continues = run_one(core, queue, budget);
        moved |= budget.packets != before && state.wait.kind == WaitKind::None;
        // An AQL vendor packet ends with its IB. A queue that is being stopped executes at most the
        // rest of its IB, and only if the queue drains.
        const bool is_ib_over = was_in_ib && is_in_ring(queue);
        const bool is_stopped =
            state.phase != QueuePhase::Running && (is_in_ring(queue) || state.is_draining == 0);
        if (!continues || is_stopped || (is_ib_over && queue.is_aql())) break;
    }
    report_rptr(core, queue);
    if (moved) return StepResult::Progress;
    return state.wait.kind != WaitKind::None ? StepResult::Blocked : StepResult::Idle;
}

}  // namespace vgpu::softgpu::cp
