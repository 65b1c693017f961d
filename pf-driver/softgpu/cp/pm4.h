// SPDX-License-Identifier: MIT
//
// Pm4: executes the PM4 packets of a queue, from its ring and from the indirect buffers (IBs) that
// its packets call. A packet's length is checked against hw/pm4.def and against the rest of the
// stream before a handler sees the packet's body. Handlers answer with an Outcome. Only the
// handlers of INDIRECT_BUFFER and COND_EXEC move the stream (Redirected).
//
// A stream is privileged while a kernel queue executes in VMID 0. IBs that a kernel queue runs in
// another VMID and all streams of user queues are not privileged: they may use neither scheduler
// packets nor registers outside the SH, context and UCONFIG spaces.
#pragma once

#include <cstdint>
#include <span>

#include "pf-driver/softgpu/base/packet_source.h"
#include "pf-driver/softgpu/cp/core.h"

namespace vgpu::softgpu::cp {

/// A packet whose length fits its opcode. Lives for one call of its handler.
struct Packet {
    Core& core;
    Queue& queue;
    /// The VMID in which the packet reads and writes memory: the VMID of its ring or IB.
    Vmid vmid;
    /// True for a kernel queue that executes in VMID 0.
    bool is_privileged;
    /// The packet without its header: min_body to max_body dwords of its row; empty for a NOP.
    std::span<const std::uint32_t> body;
    /// A handler that copies much data charges the budget and answers Partial.
    Budget& budget;

    /// `ordinal` counts from the header, which is 0; it must be inside the body.
    [[nodiscard]] std::uint32_t dword(std::size_t ordinal) const { return body[ordinal - 1]; }
    /// Two dwords as an address or value; ordinals count from the header (0) as in the documents.
    [[nodiscard]] std::uint64_t pair(std::size_t ordinal) const {
        return join(dword(ordinal), dword(ordinal + 1));
    }
};

/// A handler may be called again for the same packet after Partial or Blocked. It keeps its
/// progress in queue.state.progress, which is 0 at the first call (UNMAP_QUEUES: in is_unmapping).
using PacketHandler = Outcome (*)(Packet&);

struct PacketRow {
    PacketHandler handler = nullptr;  ///< nullptr: no such opcode
    std::uint32_t min_body = 0;
    std::uint32_t max_body = 0;
};

/// The row of an opcode (8 bits).
[[nodiscard]] const PacketRow& packet_row(std::uint32_t opcode);

/// Executes packets until the budget is spent or the queue blocks, halts or is empty.
[[nodiscard]] StepResult run_pm4(Core& core, Queue& queue, Budget& budget);

/// Executes only the head packet, or a part of a long packet.
void run_pm4_packet(Core& core, Queue& queue, Budget& budget);

/// Enters an IB; false if the IB nests too deep. Does nothing for an IB of 0 dwords.
[[nodiscard]] bool call_ib(Queue& queue, GpuVa va, std::uint32_t dwords, Vmid vmid);

/// Dwords left in the innermost stream.
[[nodiscard]] std::uint64_t stream_left(const Queue& queue);
/// Moves the innermost stream by `dwords`, which the stream must hold. Leaves every IB that has
/// ended.
void advance_stream(Queue& queue, std::uint64_t dwords);

/// True if the condition of queue.state.wait is met, or memory faults: another execution of the
/// packet then reports the fault.
[[nodiscard]] bool is_wait_over(Core& core, Queue& queue);

// Handlers, one for each action of hw/pm4.def.
#define PM4(name, opcode, min_body, max_body, action, doc) Outcome handle_##action(Packet& packet);
#include "pf-driver/hw/pm4.def"
#undef PM4

/// Writes a register for a packet; false if the packet's stream may not access the register.
[[nodiscard]] bool write_register(Packet& packet, std::uint32_t index, std::uint32_t value);
/// Reads a register for a packet; false if the packet's stream may not access the register.
[[nodiscard]] bool read_register(Packet& packet, std::uint32_t index, std::uint32_t& value);
/// True if the packet's stream may access the register.
[[nodiscard]] bool may_reach(const Packet& packet, std::uint32_t index);

}  // namespace vgpu::softgpu::cp
