// SPDX-License-Identifier: MIT
//
// Core: the state that the parts of one VF's command processor share, and the few operations that
// several parts need, for example to report a fault or a bad packet, or to raise an interrupt
// vector. Each part (PM4, AQL, scheduler, context save, registers) is a set of functions that take
// a Core. Code outside this folder does not use a Core.
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
    Redirected,          ///< like Done, but the handler has already advanced the stream
    Partial,             ///< the handler did a bounded part; call the handler again
    Blocked,             ///< queue.state.wait has the condition
    BadPacket,           ///< refused: the queue halts
    PrivilegedRegister,  ///< like BadPacket, for a register that the stream may not access
    Fault,               ///< memory fault; core.memory.fault() returns the fault
};

/// The ports and the decoded code of one worker, by VMID. An entry is null until the worker runs a
/// wave of the VMID.
struct WorkerContext {
    std::array<std::unique_ptr<mem::Port>, CP_VMIDS> ports;
    std::array<std::unique_ptr<isa::DecodeCache>, CP_VMIDS> caches;
};

/// Guarded by the VF lock, except the members that workers use while they run groups: code,
/// code_epoch, watches, scheduler.wave_sync, and each worker's own entry of contexts.
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
    /// Index of the queue at which the next step() begins (round robin). Saved, because a restart
    /// at 0 after each world switch would favour the first queues.
    std::uint32_t first_queue = 0;
    /// True if the next step() must look for work, for example because wake() was called or the
    /// last step() made progress.
    bool needs_check = true;
    /// True if the last step() left an active run list, or a wait whose end only polling can
    /// detect.
    bool has_waits = false;
    /// True if the last step() left a queue in phase Restoring that waits for room on the CUs. The
    /// end of a group or kernel then calls wake().
    bool has_waiting_restore = false;

    /// The clock when the VF began to wait for the engine; nullopt: it does not wait.
    std::optional<std::uint64_t> waiting_since;

    /// Memory accesses of packets; waves use the ports in WorkerContext.
    Memory memory;
    Dispatcher dispatcher;
    std::optional<isa::CodeShare> code;  ///< empty: waves are interpreted
    std::vector<WorkerContext> contexts;
    /// By VMID: code that a worker has decoded is valid while this number does not change.
    std::array<std::atomic<std::uint64_t>, CP_VMIDS> code_epoch{};
    /// The decoded registers TCP_WATCHn_*, which running waves read.
    isa::AddressWatches watches;
    /// Body of the PM4 packet being executed. A member, so that all packets reuse its memory.
    std::vector<std::uint32_t> packet;
    /// The queue whose PM4 packet is being executed; kNoQueue if none. A packet may write a
    /// register that stops a queue, and a step of the stopped queue then runs inside the register
    /// write. This step must not execute a packet: it would overwrite `packet`, and a packet that
    /// stops its own queue would execute itself without end.
    QueueId executing = kNoQueue;
    /// True if the packet being executed has restarted its own ring (the gfx ring).
    bool has_restarted = false;

    /// The "GPU clock" of packets: the device's clock in ticks of the reference clock. The VBIOS
    /// announces the rate of the reference clock (Linux 6.12, amdgpu/soc15.c, soc15_get_xclk).
    [[nodiscard]] std::uint64_t ticks() const { return regs::gpu_ticks(clock.now()); }
    [[nodiscard]] std::uint64_t now_ns() const {
        return static_cast<std::uint64_t>(clock.now().count());
    }
    /// The LDS and scratch apertures of the VMID: windows of flat addresses. SH_MEM_BASES holds
    /// bits [63:48] of both bases.
    [[nodiscard]] isa::Apertures apertures(Vmid vmid) const;
    /// The trap handler that MAP_PROCESS set for the VMID, and the id of the queue's doorbell, by
    /// which the handler identifies the queue to KFD (amdkfd in Linux).
    [[nodiscard]] isa::TrapHandler trap_handler(const Queue& queue, Vmid vmid) const;
    /// The global wave sync of the VMID's process; nullptr if the process has none.
    [[nodiscard]] isa::GlobalWaveSync* wave_sync(Vmid vmid);
    /// Moves the ends of all time limits by `ns`: of UNMAP_QUEUES and of the quanta of processes.
    void postpone(std::uint64_t ns);
    Queue& queue(QueueId id) { return queues[raw(id)]; }

    /// Raises an end-of-pipe interrupt with a context id.
    void raise_eop(const Queue& queue, std::uint32_t context_id);
    /// Raises an IH vector of the CP with the queue's ring id, VMID and PASID; `data0` is dword 0
    /// of the source data.
    void raise(const Queue& queue, ih_source source, std::uint32_t data0);
    /// Reports to KFD, and so to the runtime, why a user queue has stopped. Does nothing for queues
    /// in VMID 0 (kernel queues), because KFD ignores interrupts with that VMID. The inactive
    /// signal (aql.h) alone is not enough: under a KFD that supports debuggers, ROCr takes only
    /// requests for scratch from the signal (amd_aql_queue.cpp, ExceptionHandler).
    void raise_packet_error(const Queue& queue, ih_packet_error error);
    /// Raises the interrupt of a wave's s_sendmsg(MSG_INTERRUPT).
    void raise_message(Vmid vmid, const Message& message);

    /// Call after an access through `memory` has failed for the queue. Reports and counts the
    /// fault, halts the queue and drops its kernels.
    void fault(Queue& queue);
    /// The same for the fault `what` in `vmid`, for example of a wave.
    void fault(Queue& queue, Vmid vmid, const mem::Fault& what);
    /// Reports and counts a fault without halting a queue: for a fault that the wave's trap handler
    /// handles.
    void count_fault(Vmid vmid, const mem::Fault& what);
    /// Halts the queue. The queue keeps its position in the stream, but forgets its wait and its
    /// progress in the head packet.
    void halt(Queue& queue, Halt why);
    /// Refuses a packet or ends a kernel: counts a bad packet, halts the queue, drops its kernels
    /// and raises interrupt `source` with `header` as data (Linux 6.12, amdgpu/gfx_v9_0.c,
    /// priv_reg_irq and similar). `header` is the packet's header, or 0 for a bad context save
    /// area; for CP_PRIV_INSTR it is an error code (enum aql_queue_error). On a user queue,
    /// CP_BAD_OPCODE becomes a packet error for KFD (raise_packet_error()) instead of this
    /// interrupt, and CP_PRIV_REG raises both.
    void refuse(Queue& queue, ih_source source, std::uint32_t header);
    /// See CommandProcessor::invalidate_code().
    void invalidate_code(std::uint16_t vmids);
    /// Makes step() look for work again, and calls Services::work_arrived().
    void wake();
};

}  // namespace vgpu::softgpu::cp
