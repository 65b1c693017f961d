// SPDX-License-Identifier: MIT
//
// Core: the state that the parts of one VF's command processor share, and the few acts that all of
// them need: answering a fault or a bad packet, raising interrupt vectors, waking the engine. The
// parts (Pm4, Aql, Scheduler, ContextSave, HqdRegisters) are functions over it; command_processor.h
// is the only way in from outside.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "pf-driver/softgpu/cp/command_processor.h"
#include "pf-driver/softgpu/cp/dispatch.h"
#include "pf-driver/softgpu/cp/memory.h"
#include "pf-driver/softgpu/cp/queue.h"
#include "pf-driver/softgpu/cp/scheduler_state.h"
#include "pf-driver/softgpu/cp/services.h"

namespace vgpu::softgpu::cp {

/// What became of a packet. Handlers never move the stream themselves.
enum class Outcome : std::uint8_t {
    Done,
    Redirected,          ///< the handler has set up where to go on
    Partial,             ///< did a bounded part; call again
    Blocked,             ///< queue.wait says for what
    BadPacket,           ///< refused: halt the queue
    PrivilegedRegister,  ///< as BadPacket, for a register that the stream may not reach
    Fault,               ///< memory fault, in core.memory
};

/// What one worker needs to run waves of this VF: a port and decoded code per VMID.
/// Made as needed; entries are null until the worker has run a wave of that VMID.
struct Lane {
    std::array<std::unique_ptr<mem::Port>, CP_VMIDS> ports;
    std::array<std::unique_ptr<isa::DecodeCache>, CP_VMIDS> caches;
};

/// Guarded by the VF lock, but for what workers use while they run: code_epoch, watches, and the
/// ports and caches of their own lane.
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
    /// Round robin over queues; saved, so that a world switch does not favour the first ones.
    std::uint32_t turn = 0;  ///< queue that is looked at first
    bool needs_look = true;  ///< something happened since the last step() that found nothing
    bool has_waits = false;  ///< that step() left waits that only polling can end

    /// Packets' own ports, apart from those of waves.
    Memory memory;
    Dispatcher dispatcher;
    std::vector<Lane> lanes;
    /// Decoded code of a VMID is valid while its number stays.
    std::array<std::atomic<std::uint64_t>, CP_VMIDS> code_epoch{};
    /// What TCP_WATCHn_* say, for waves that run.
    isa::AddressWatches watches;
    /// A member, so that fetching a packet allocates nothing after the largest one.
    std::vector<std::uint32_t> packet;  ///< body of the packet being executed

    /// "GPU clock" of packets: the device's clock in ticks of the reference clock, which the VBIOS
    /// announces (Linux 6.12, amdgpu/soc15.c, soc15_get_xclk).
    [[nodiscard]] std::uint64_t ticks() const;
    [[nodiscard]] std::uint64_t now_ns() const {
        return static_cast<std::uint64_t>(clock.now().count());
    }
    /// SH_MEM_BASES: bits [63:48] of both windows.
    [[nodiscard]] isa::Apertures apertures(Vmid vmid) const;
    /// What MAP_PROCESS gave the VMID, and the doorbell by which the handler names the queue to
    /// KFD.
    [[nodiscard]] isa::TrapHandler trap_handler(const Queue& queue, Vmid vmid) const;
    /// nullptr: its process has not been given any.
    [[nodiscard]] isa::GlobalWaveSync* wave_sync(Vmid vmid);
    Queue& queue(QueueId id) { return queues[raw(id)]; }

    /// End-of-pipe interrupt with a context id.
    void raise_eop(const Queue& queue, std::uint32_t context_id);
    /// IH vector of the CP: the queue says ring id, VMID and PASID.
    void raise(const Queue& queue, ih_source source, std::uint32_t data0);
    /// Tells KFD, and so the runtime, why a user queue has stopped; nothing for kernel queues,
    /// whose VMID KFD does not look at. The inactive signal alone is not enough: with a
    /// debugger-capable KFD ROCr takes only requests for scratch from it (amd_aql_queue.cpp,
    /// ExceptionHandler).
    void raise_packet_error(const Queue& queue, ih_packet_error error);
    /// s_sendmsg(MSG_INTERRUPT) of a wave.
    void raise_message(Vmid vmid, const Message& message);

    /// The last access of `memory` failed on behalf of the queue: report, count, halt, drop.
    void fault(Queue& queue);
    void fault(Queue& queue, Vmid vmid, const mem::Fault& what);
    /// Reports and counts a fault that the wave's own trap handler deals with.
    void count_fault(Vmid vmid, const mem::Fault& what);
    /// The queue keeps its place and forgets its wait.
    void halt(Queue& queue, Halt why);
    /// A packet that makes no sense: counted, the queue halts and loses its kernels, and the guest
    /// gets an interrupt with the header as data (Linux 6.12, amdgpu/gfx_v9_0.c, priv_reg_irq and
    /// its kin). A bad opcode of a user queue is a packet error for KFD instead; so is a register,
    /// besides.
    void refuse(Queue& queue, ih_source source, std::uint32_t header);
    /// Bit per VMID: workers drop decoded code before their next block.
    void invalidate_code(std::uint16_t vmids);
    /// Something that step() has to look at has happened.
    void wake();
};

}  // namespace vgpu::softgpu::cp
