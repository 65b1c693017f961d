// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/cp/registers.h"

#include <array>

#include "pf-driver/hw/fields.h"
#include "pf-driver/softgpu/cp/scheduler.h"

namespace vgpu::softgpu::cp {

namespace {

RegisterIndex index_of(hw_reg which) {
    return RegisterIndex{static_cast<std::uint32_t>(which)};
}

std::uint32_t selection(const Core& core) {
    return core.registers.get(index_of(REG_GC_GRBM_GFX_CNTL));
}

/// The HQD that GRBM_GFX_CNTL selects; nullptr if its ME is not a compute processor (MEC).
Queue* find_selected_queue(Core& core) {
    const std::uint32_t control = selection(core);
    const std::uint32_t me = HW_GET(GRBM_GFX_CNTL, ME, control);
    if (me == 0 || me > CP_MEC_COUNT) return nullptr;
    const std::uint32_t index = (me - 1) * CP_PIPES_PER_MEC * CP_QUEUES_PER_PIPE +
                                HW_GET(GRBM_GFX_CNTL, PIPE, control) * CP_QUEUES_PER_PIPE +
                                HW_GET(GRBM_GFX_CNTL, QUEUE, control);
    return &core.queues[index];
}

/// While a queue is mapped, its ring pointers are in `rptr` and `wptr` of QueueState, so a read
/// first copies them to `hqd`.
std::uint32_t read_hqd(Core& core, RegisterIndex index, std::uint32_t stored) {
    Queue* queue = find_selected_queue(core);
    if (queue == nullptr) return stored;
    if (queue->is_mapped()) queue->store_pointers();
    return queue->state.hqd[raw(index) - REG_GC_CP_MQD_BASE_ADDR];
}

/// Values of CP_HQD_DEQUEUE_REQUEST: 1 drains, 2 resets, 3 saves waves (Linux 6.12,
/// amdgpu/amdgpu_amdkfd_gfx_v9.c, kgd_gfx_v9_hqd_destroy). softgpu treats every value but 0 and 2
/// as a preemption, which keeps the work in flight.
enum DequeueRequest : std::uint32_t { kDequeueNone = 0, kDequeueReset = 2 };

/// Begins to unmap the queue. Does one step at once: a queue with nothing in flight is then
/// unmapped before the register write returns, unless a packet of this same queue does the write.
/// For other queues, drivers poll CP_HQD_ACTIVE.
void stop(Core& core, Queue& queue, StopMode mode) {
    begin_stop(core, queue, mode);
    StepBudget budget;
    (void)step_transition(core, queue, budget);
    core.wake();
}

void write_active(Core& core, Queue& queue, std::uint32_t value) {
    const bool is_on = HW_GET(CP_HQD_ACTIVE, ACTIVE, value) != 0;
    if (is_on && !queue.is_mapped()) {
        queue.state.pasid =
            raw(queue.vmid()) == 0 ? std::uint16_t{0} : core.services.pasid_of(queue.vmid());
        activate(core, queue);
    } else if (!is_on && queue.is_mapped()) {
        stop(core, queue, StopMode::Preempt);
    }
}

void write_dequeue(Core& core, Queue& queue, std::uint32_t value) {
    const std::uint32_t request = HW_GET(CP_HQD_DEQUEUE_REQUEST, REQ, value);
    if (request == kDequeueNone || !queue.is_mapped()) return;
    stop(core, queue, request == kDequeueReset ? StopMode::Reset : StopMode::Preempt);
}

/// A write to ACTIVE maps or unmaps the queue and is not stored, because ACTIVE shows the state of
/// the queue. A write to the read pointer of a mapped queue has no effect.
void write_hqd(Core& core, RegisterIndex index, std::uint32_t value) {
    Queue* queue = find_selected_queue(core);
    if (queue == nullptr) return;
    const auto which = static_cast<hw_reg>(raw(index));
    if (which == REG_GC_CP_HQD_ACTIVE) return write_active(core, *queue, value);
    if (queue->is_mapped()) queue->store_pointers();
    queue->set_reg(which, value);
    if (which == REG_GC_CP_HQD_DEQUEUE_REQUEST) return write_dequeue(core, *queue, value);
    const bool is_wptr = which == REG_GC_CP_HQD_PQ_WPTR_LO || which == REG_GC_CP_HQD_PQ_WPTR_HI;
    if (!is_wptr || !queue->is_mapped()) return;
    queue->state.wptr = queue->reg_pair(REG_GC_CP_HQD_PQ_WPTR_LO);
    core.wake();
}

// --- SH_MEM -------------------------------------------------------------------------------------

std::uint32_t& sh_mem(Core& core, RegisterIndex index) {
    const std::uint32_t vmid = HW_GET(GRBM_GFX_CNTL, VMID, selection(core));
    const bool is_bases = index == index_of(REG_GC_SH_MEM_BASES);
    return is_bases ? core.scheduler.sh_mem_bases[vmid] : core.scheduler.sh_mem_config[vmid];
}

void claim_sh_mem(Core& core, hw_reg which) {
    core.registers.claim(
        index_of(which), 1,
        [&core](RegisterIndex index, std::uint32_t) { return sh_mem(core, index); },
        [&core](RegisterIndex index, std::uint32_t value) { sh_mem(core, index) = value; });
}

// --- gfx ring -----------------------------------------------------------------------------------

std::uint32_t get(const Core& core, hw_reg which) {
    return core.registers.get(index_of(which));
}

/// The command processor treats the gfx ring as an HQD. This function translates the ring's
/// registers (CP_RB0_*) to the registers of that HQD. Maps the ring once the driver has enabled the
/// ring's doorbell.
void refresh_gfx(Core& core) {
    Queue& queue = core.queue(kGfxQueue);
    queue.set_reg(REG_GC_CP_HQD_PQ_BASE, get(core, REG_GC_CP_RB0_BASE));
    queue.set_reg(REG_GC_CP_HQD_PQ_BASE_HI, get(core, REG_GC_CP_RB0_BASE_HI));
    queue.set_reg(REG_GC_CP_HQD_PQ_CONTROL,
                  HW_PREP(CP_HQD_PQ_CONTROL, QUEUE_SIZE,
                          HW_GET(CP_RB0_CNTL, RB_BUFSZ, get(core, REG_GC_CP_RB0_CNTL))));
    queue.set_reg(REG_GC_CP_HQD_PQ_RPTR_REPORT_ADDR, get(core, REG_GC_CP_RB0_RPTR_ADDR));
    queue.set_reg(REG_GC_CP_HQD_PQ_RPTR_REPORT_ADDR_HI, get(core, REG_GC_CP_RB0_RPTR_ADDR_HI));
    queue.set_reg(REG_GC_CP_HQD_VMID, HW_PREP(CP_HQD_VMID, VMID, get(core, REG_GC_CP_RB_VMID)));
    const std::uint32_t doorbell = get(core, REG_GC_CP_RB_DOORBELL_CONTROL);
    const std::uint32_t is_live = HW_GET(CP_RB_DOORBELL_CONTROL, ENABLE, doorbell);
    queue.set_reg(REG_GC_CP_HQD_PQ_DOORBELL_CONTROL,
                  HW_PREP(CP_HQD_PQ_DOORBELL_CONTROL, OFFSET,
                          HW_GET(CP_RB_DOORBELL_CONTROL, OFFSET, doorbell)) |
                      HW_PREP(CP_HQD_PQ_DOORBELL_CONTROL, EN, is_live));
    if (queue.state.phase == QueuePhase::Idle && is_live != 0) {
        queue.clear_progress();
        queue.state.phase = QueuePhase::Running;
    }
}

/// A write pointer of 0 restarts the ring.
void write_gfx_wptr(Core& core) {
    Queue& queue = core.queue(kGfxQueue);
    queue.state.wptr = join(get(core, REG_GC_CP_RB0_WPTR), get(core, REG_GC_CP_RB0_WPTR_HI));
    if (queue.state.wptr == 0) {
        const QueuePhase phase = queue.state.phase;
        core.dispatcher.drop(kGfxQueue);
        queue.clear_progress();
        queue.state.phase = phase;
        core.has_restarted |= core.executing == kGfxQueue;
    }
    core.wake();
}

constexpr std::array kGfxRegisters = {
    REG_GC_CP_RB0_BASE,
    REG_GC_CP_RB0_BASE_HI,
    REG_GC_CP_RB0_CNTL,
    REG_GC_CP_RB0_RPTR_ADDR,
    REG_GC_CP_RB0_RPTR_ADDR_HI,
    REG_GC_CP_RB_VMID,
    REG_GC_CP_RB_DOORBELL_CONTROL,
};
constexpr std::array kGfxPointers = {REG_GC_CP_RB0_WPTR, REG_GC_CP_RB0_WPTR_HI};

// --- address watches ----------------------------------------------------------------------------

constexpr std::uint32_t kFirstWatch = REG_GC_TCP_WATCH0_ADDR_H;
constexpr std::uint32_t kWatchStride = 3;  ///< registers per watch

std::uint32_t get(const Core& core, hw_reg which, unsigned watch) {
    return core.registers.get(RegisterIndex{which + watch * kWatchStride});
}

/// Decodes the registers of a watch. MASK has no bits for the upper part of an address, so that
/// part is always compared.
isa::AddressWatch decode(const Core& core, unsigned watch) {
    constexpr unsigned kHighShift = 32 - isa::AddressWatch::kUnitShift;
    constexpr std::uint64_t kMaskBits = HW_FIELD_MASK(TCP_WATCH0_CNTL, MASK);
    const std::uint32_t control = get(core, REG_GC_TCP_WATCH0_CNTL, watch);
    const std::uint64_t high =
        HW_GET(TCP_WATCH0_ADDR_H, ADDR, get(core, REG_GC_TCP_WATCH0_ADDR_H, watch));
    return {
        .is_valid = HW_GET(TCP_WATCH0_CNTL, VALID, control) != 0,
        .vmid = Vmid{static_cast<std::uint8_t>(HW_GET(TCP_WATCH0_CNTL, VMID, control))},
        .mode = static_cast<isa::WatchMode>(HW_GET(TCP_WATCH0_CNTL, MODE, control)),
        .unit = high << kHighShift |
                HW_GET(TCP_WATCH0_ADDR_L, ADDR, get(core, REG_GC_TCP_WATCH0_ADDR_L, watch)),
        .mask = ~kMaskBits | HW_GET(TCP_WATCH0_CNTL, MASK, control),
    };
}

void update_watch(Core& core, unsigned watch) {
    core.watches.set(watch, decode(core, watch));
}

}  // namespace

/// The HQD registers are consecutive, as in the MQD, so one claim covers them.
void claim_registers(Core& core) {
    core.registers.claim(
        index_of(REG_GC_CP_MQD_BASE_ADDR), MQD_HQD_COUNT,
        [&core](RegisterIndex index, std::uint32_t stored) {
            return read_hqd(core, index, stored);
        },
        [&core](RegisterIndex index, std::uint32_t value) { write_hqd(core, index, value); });
    claim_sh_mem(core, REG_GC_SH_MEM_BASES);
    claim_sh_mem(core, REG_GC_SH_MEM_CONFIG);
    for (const hw_reg which : kGfxRegisters)
        core.registers.claim(index_of(which), 1, {},
                             [&core](RegisterIndex, std::uint32_t) { refresh_gfx(core); });
    for (const hw_reg which : kGfxPointers)
        core.registers.claim(index_of(which), 1, {},
                             [&core](RegisterIndex, std::uint32_t) { write_gfx_wptr(core); });
    core.registers.claim(RegisterIndex{kFirstWatch}, isa::AddressWatches::kCount * kWatchStride, {},
                         [&core](RegisterIndex index, std::uint32_t) {
                             update_watch(core, (raw(index) - kFirstWatch) / kWatchStride);
                         });
}

void decode_watch_registers(Core& core) {
    for (unsigned watch = 0; watch < isa::AddressWatches::kCount; ++watch)
        update_watch(core, watch);
}

isa::LaunchExceptions launch_exceptions(const Core& core) {
    const std::uint32_t mask = core.registers.get(RegisterIndex{REG_GC_SPI_GDBG_TRAP_MASK});
    return {.enabled = HW_GET(SPI_GDBG_TRAP_MASK, EXCP_EN, mask),
            .replace = HW_GET(SPI_GDBG_TRAP_MASK, REPLACE, mask) != 0};
}

}  // namespace vgpu::softgpu::cp
