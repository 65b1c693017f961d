// SPDX-License-Identifier: MIT
//
// Executes the PM4 packets of a queue. A stream is a sequence of packets: the ring of the queue, or
// an indirect buffer (IB) that a packet calls. The packet processor (pm4.cpp) checks a packet's
// length against hw/pm4.def and against the rest of the stream before a handler sees the packet's
// body. Handlers return an Outcome. Only handle_indirect_buffer() and handle_cond_exec() advance
// the stream themselves (Redirected).
//
// A stream is privileged if its VMID is 0 and its queue is a kernel queue (Queue::is_privileged()).
// All other streams, including the IBs that a kernel queue runs in another VMID, may use neither
// scheduler packets (those of scheduler.cpp and unmap.cpp) nor registers outside the SH, context
// and UCONFIG spaces.
#pragma once

#include <cstdint>
#include <span>

#include "pf-driver/softgpu/base/packet_source.h"
#include "pf-driver/softgpu/cp/core.h"

namespace vgpu::softgpu::cp {

/// The argument of a handler: a packet whose length fits its opcode. Exists for one call.
struct Packet {
    Core& core;
    Queue& queue;
    /// The VMID of the packet's ring or IB, in which most packets access memory.
    Vmid vmid;
    /// True if the packet's stream is privileged.
    bool is_privileged;
    /// The packet without its header; the length is in the range of the opcode's PacketRow. Empty
    /// for a NOP outside a run list.
    std::span<const std::uint32_t> body;
    /// handle_dma_data() charges `budget` for the bytes that it copies, and write_registers() for
    /// the registers. Both return Partial if the budget is spent before the end.
    StepBudget& budget;

    /// Dword `ordinal` of the packet. The header is dword 0, so `ordinal` is 1 to body.size().
    [[nodiscard]] std::uint32_t dword(std::size_t ordinal) const { return body[ordinal - 1]; }
    /// The 64-bit value whose low half is dword `ordinal` and whose high half is the next dword.
    [[nodiscard]] std::uint64_t pair(std::size_t ordinal) const {
        return join(dword(ordinal), dword(ordinal + 1));
    }
};

/// After Partial or Blocked, the handler is called again for the same packet. A handler keeps its
/// progress in queue.state.progress (UNMAP_QUEUES: in is_unmapping), which is 0 at the first call.
/// If the ring is moved meanwhile, the progress is forgotten, because another packet is there.
using PacketHandler = Outcome (*)(Packet&);

/// The handling of an opcode (a row of hw/pm4.def).
struct PacketRow {
    PacketHandler handler = nullptr;  ///< nullptr: no such opcode
    std::uint32_t min_body = 0;       ///< dwords without the header
    std::uint32_t max_body = 0;       ///< dwords without the header
};

/// The row of an opcode; only the low 8 bits of `opcode` count.
[[nodiscard]] const PacketRow& packet_row(std::uint32_t opcode);

/// Executes packets until `budget` is spent, the queue waits or halts, or no packet is left. Also
/// returns at the end of the IB of an AQL vendor packet, and when a queue that is being stopped may
/// not continue. Returns Progress if a packet was executed, completely or in part, and did not have
/// to wait. Else returns Blocked if the queue waits, and Idle if not.
[[nodiscard]] StepResult run_pm4(Core& core, Queue& queue, StepBudget& budget);

/// Executes only the head packet, or a part of a long packet.
void run_pm4_packet(Core& core, Queue& queue, StepBudget& budget);

/// Enters an IB; false if IBs nest too deep. Does nothing for an IB of 0 dwords and returns true.
[[nodiscard]] bool call_ib(Queue& queue, GpuVa va, std::uint32_t dwords, Vmid vmid);

/// Dwords left in the innermost stream; in a ring, up to the write pointer.
[[nodiscard]] std::uint64_t stream_left(const Queue& queue);
/// Advances the innermost stream by `dwords`, which must not exceed stream_left(). Leaves every IB
/// that has ended.
void advance_stream(Queue& queue, std::uint64_t dwords);

/// True if the condition of queue.state.wait is met. Also true if memory faults: another execution
/// of the packet then reports the fault.
[[nodiscard]] bool is_wait_over(Core& core, Queue& queue);

// Handlers, one for each action in hw/pm4.def.
#define PM4(name, opcode, min_body, max_body, action, doc) Outcome handle_##action(Packet& packet);
#include "pf-driver/hw/pm4.def"
#undef PM4

/// Writes register `index` for a packet; false if the packet's stream may not access the register.
[[nodiscard]] bool write_register(Packet& packet, std::uint32_t index, std::uint32_t value);
/// Writes `values` to registers from `first` on, or all to `first` if `is_one_register`. Returns
/// Done, Partial or PrivilegedRegister; progress counts the values written.
[[nodiscard]] Outcome write_registers(Packet& packet, std::uint32_t first, bool is_one_register,
                                      std::span<const std::uint32_t> values);
/// Reads a register for a packet; false if the packet's stream may not access the register.
[[nodiscard]] bool read_register(Packet& packet, std::uint32_t index, std::uint32_t& value);
/// True if the packet's stream may access the register.
[[nodiscard]] bool may_reach(const Packet& packet, std::uint32_t index);

}  // namespace vgpu::softgpu::cp
