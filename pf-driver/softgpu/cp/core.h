// SPDX-License-Identifier: MIT
//
// Core: the state that the parts of one VF's command processor share, and the few operations that
// all parts need. These operations report a fault or a bad packet, raise interrupt vectors and wake
// the engine. The parts (PM4, AQL, scheduler, context save, registers) are functions over Core;
// outside code uses only command_processor.h.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "pf-driver/softgpu/cp/command_processor.h"
#include "pf-driver/softgpu/cp/dispatch.h"
#include "pf-driver/softgpu/cp/memory.h"
#include "pf-driver/softgpu/cp/queue.h"
#include "pf-driver/softgpu/cp/scheduler_state.h"
#include "pf-driver/softgpu/cp/services.h"
#include "pf-driver/softgpu/isa/translate/code_memory.h"
#include "pf-driver/softgpu/regs/gpu_clock.h"

namespace vgpu::softgpu::cp {

/// The result of a packet handler.
enum class Outcome : std::uint8_t {
    Done,
    Redirected,          ///< like Done, but the handler itself has moved the stream
    Partial,             ///< the handler did a bounded part; call it again
    Blocked,             ///< queue.state.wait has the condition
    BadPacket,           ///< refused: the queue halts
    PrivilegedRegister,  ///< like BadPacket, for a register that the stream may not access
    Fault,               ///< memory fault; core.memory.fault() has it
};

/// A port and decoded code per VMID, for one worker that runs waves of the VF. An entry is null
/// until the worker has run a wave of the VMID.
struct WorkerContext {
    std::array<std::unique_ptr<mem::Port>, CP_VMIDS> ports;
    std::array<std::unique_ptr<isa::DecodeCache>, CP_VMIDS> caches;
};

/// Guarded by the VF lock, except the members that workers use while they run groups: code,
/// code_epoch, watches, global wave sync, and the worker's own entry of contexts.
struct Core {
    Core(const CommandProcessor::Spec& spec_, regs::RegisterFile& registers_, Services& services_,
         const Clock& clock_);

    const CommandProcessor::Spec spec;
    regs::RegisterFile& registers;
    Services& services;
    const Clock& clock;

    Counters counters;
    std::array<Queue, kQueues> queues;
    SchedulerState scheduler;
    /// Number of the queue at which the next step() begins (round robin). Saved, so that a world
    /// switch does not favour the first queues.
    std::uint32_t first_queue = 0;
    /// True if the next step() must look for work: an event came, or the last step() made progress.
    bool needs_check = true;
    /// True if the last step() left an active run list or a wait that only polling can end.
    bool has_waits = false;

    /// The ports of packets; waves have other ports (WorkerContext).
    Memory memory;
    Dispatcher dispatcher;
    std::optional<isa::CodeShare> code;  ///< empty: waves are interpreted
    std::vector<WorkerContext> contexts;
    /// By VMID: decoded code of the VMID is valid while this number does not change.
    std::array<std::atomic<std::uint64_t>, CP_VMIDS> code_epoch{};
    /// The contents of TCP_WATCHn_*, for running waves.
    isa::AddressWatches watches;
    /// Body of the packet being executed. A member, so that its memory is reused from packet to
    /// packet.
    std::vector<std::uint32_t> packet;

    /// The "GPU clock" of packets: the device's clock in ticks of the reference clock. The VBIOS
    /// announces the rate of the reference clock (Linux 6.12, amdgpu/soc15.c, soc15_get_xclk).
    [[nodiscard]] std::uint64_t ticks() const { return regs::gpu_ticks(clock.now()); }
    [[nodiscard]] std::uint64_t now_ns() const {
        return static_cast<std::uint64_t>(clock.now().count());
    }
    /// The LDS and scratch apertures of the VMID: SH_MEM_BASES holds bits [63:48] of both.
    [[nodiscard]] isa::Apertures apertures(Vmid vmid) const;
    /// The handler that MAP_PROCESS gave the VMID, and the doorbell by which the handler names the
    /// queue to KFD (Linux' amdkfd, the driver of compute queues).
    [[nodiscard]] isa::TrapHandler trap_handler(const Queue& queue, Vmid vmid) const;
    /// The global wave sync of the VMID's process; nullptr if the process has none.
    [[nodiscard]] isa::GlobalWaveSync* wave_sync(Vmid vmid);
    Queue& queue(QueueId id) { return queues[raw(id)]; }

    /// Raises an end-of-pipe interrupt with a context id.
    void raise_eop(const Queue& queue, std::uint32_t context_id);
    /// Raises an IH vector of the CP with the queue's ring id, VMID and PASID.
    void raise(const Queue& queue, ih_source source, std::uint32_t data0);
    /// Reports to KFD, and so to the runtime, why a user queue has stopped. Does nothing for kernel
    /// queues, whose VMID KFD ignores. The inactive signal alone is not enough: under a KFD that
    /// supports debuggers, ROCr takes only requests for scratch from the signal
    /// (amd_aql_queue.cpp, ExceptionHandler).
    void raise_packet_error(const Queue& queue, ih_packet_error error);
    /// Raises the interrupt of a wave's s_sendmsg(MSG_INTERRUPT).
    void raise_message(Vmid vmid, const Message& message);

    /// For an access of `memory` that failed on behalf of the queue: reports and counts the fault,
    /// halts the queue, drops its kernels.
    void fault(Queue& queue);
    void fault(Queue& queue, Vmid vmid, const mem::Fault& what);
    /// Reports and counts a fault without halting the queue: for a fault that the wave's trap
    /// handler handles.
    void count_fault(Vmid vmid, const mem::Fault& what);
    /// Halts the queue; the queue keeps its position in the stream and forgets its wait.
    void halt(Queue& queue, Halt why);
    /// Refuses a packet: counts it, halts the queue and drops its kernels. The guest gets an
    /// interrupt with the header as data (Linux 6.12, amdgpu/gfx_v9_0.c, priv_reg_irq and similar).
    /// On a user queue, a bad opcode is reported to KFD as a packet error instead, and a privileged
    /// register both by this interrupt and as a packet error.
    void refuse(Queue& queue, ih_source source, std::uint32_t header);
    /// `vmids` has a bit per VMID: workers drop the decoded code of these VMIDs before their next
    /// block of code.
    void invalidate_code(std::uint16_t vmids);
    /// Makes step() look for work again, and wakes the engine.
    void wake();
};

}  // namespace vgpu::softgpu::cp
