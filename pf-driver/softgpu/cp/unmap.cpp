// SPDX-License-Identifier: MIT
//
// The packet UNMAP_QUEUES: stops the queues that the packet names, and waits until these queues are
// off the hardware or a time limit has passed.
#include <algorithm>

#include "pf-driver/hw/fields.h"
#include "pf-driver/softgpu/cp/scheduler.h"

namespace vgpu::softgpu::cp {

namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr unsigned kMaxDoorbells = 4;

struct UnmapRequest {
    std::uint32_t select = 0;
    std::uint32_t engine = 0;
    std::uint32_t doorbell_count = 0;
    std::array<DoorbellIndex, kMaxDoorbells> doorbells{};
    std::uint16_t pasid = 0;
};

/// Reads all fields. A field that QUEUE_SEL does not use holds an arbitrary value; is_selected()
/// reads only the fields that QUEUE_SEL uses.
UnmapRequest parse_unmap(const Packet& packet) {
    UnmapRequest request;
    const std::uint32_t control = packet.dword(1);
    request.select = HW_GET(UNMAP_QUEUES_1, QUEUE_SEL, control);
    request.engine = HW_GET(UNMAP_QUEUES_1, ENGINE_SEL, control);
    request.doorbell_count = std::min(HW_GET(UNMAP_QUEUES_1, NUM_QUEUES, control), kMaxDoorbells);
    for (unsigned i = 0; i < kMaxDoorbells; ++i)
        request.doorbells[i] =
            DoorbellIndex{HW_GET(UNMAP_QUEUES_2, DOORBELL_OFFSET, packet.dword(2 + i))};
    request.pasid = static_cast<std::uint16_t>(HW_GET(UNMAP_QUEUES_2, PASID, packet.dword(2)));
    return request;
}

bool names_doorbell(const UnmapRequest& request, DoorbellIndex doorbell) {
    return std::find(request.doorbells.begin(), request.doorbells.begin() + request.doorbell_count,
                     doorbell) != request.doorbells.begin() + request.doorbell_count;
}

/// Queues with this QUEUE_TYPE or a higher one stay mapped unless UNMAP_QUEUES selects them by
/// doorbell or PASID, or selects all queues.
constexpr std::uint8_t kStaticQueue = 2;

/// True if the packet, which is in `scheduler_queue`, selects the queue. A doorbell can name any
/// mapped queue except `scheduler_queue`: the gfx ring if ENGINE_SEL is the gfx engine, else any
/// other queue. The other values of QUEUE_SEL select only queues that `scheduler_queue` has mapped
/// in a VMID other than 0 (Linux 6.12, amdkfd/kfd_packet_manager_v9.c, pm_unmap_queues_v9).
bool is_selected(const UnmapRequest& request, const Queue& scheduler_queue, const Queue& queue) {
    if (!queue.is_mapped() || queue.id == scheduler_queue.id) return false;
    if (queue.is_gfx() != (request.engine == PM4_ENGINE_GFX)) return false;
    const bool is_listed = queue.state.mapped_by == scheduler_queue.id && raw(queue.vmid()) != 0;
    switch (request.select) {
        case PM4_UNMAP_BY_DOORBELL:
            return names_doorbell(request, queue.doorbell());
        case PM4_UNMAP_BY_PASID:
            return is_listed && queue.state.pasid == request.pasid;
        case PM4_UNMAP_ALL:
            return is_listed;
        default:
            return is_listed && queue.state.queue_type < kStaticQueue;
    }
}

/// True if the packet selects the SDMA queue. A packet that names no SDMA engine can select SDMA
/// queues, too: those of its PASID (PM4_UNMAP_BY_PASID), or all of them if it names the compute
/// engine and neither doorbells nor a PASID.
bool is_selected(const UnmapRequest& request, const SdmaSlot& slot) {
    const bool is_engine = request.engine == std::uint32_t{PM4_ENGINE_SDMA0} + slot.engine;
    const bool is_sdma = request.engine == PM4_ENGINE_SDMA0 || request.engine == PM4_ENGINE_SDMA1;
    if (slot.is_used == 0 || (is_sdma && !is_engine)) return false;
    switch (request.select) {
        case PM4_UNMAP_BY_DOORBELL:
            return is_sdma && names_doorbell(request, DoorbellIndex{slot.doorbell});
        case PM4_UNMAP_BY_PASID:
            return slot.pasid == request.pasid;
        default:
            return is_sdma || request.engine == PM4_ENGINE_COMPUTE;
    }
}

void begin_unmap(Packet& packet, StopMode mode) {
    Core& core = packet.core;
    const UnmapRequest request = parse_unmap(packet);
    const bool is_sdma_only =
        request.engine == PM4_ENGINE_SDMA0 || request.engine == PM4_ENGINE_SDMA1;
    if (request.select != PM4_UNMAP_BY_DOORBELL && !is_sdma_only) end_run_list(core);
    for (SdmaSlot& slot : core.scheduler.sdma)
        if (is_selected(request, slot)) unmap_sdma_slot(core, slot);
    if (is_sdma_only) return;
    for (Queue& queue : core.queues) {
        if (!is_selected(request, packet.queue, queue)) continue;
        begin_stop(core, queue, mode);
        queue.state.stopped_by = packet.queue.id;
    }
}

/// Ends the wait for queues that have not stopped in time; does nothing if all have stopped. Writes
/// the doorbell of each queue that has not stopped to the scheduler queue's MQD (always to the same
/// dword), as the firmware of a real GPU does. These queues stay mapped and continue, so an
/// eviction of their process has failed.
void end_unmap_wait(Core& core, Queue& scheduler_queue) {
    for (Queue& queue : core.queues) {
        if (!queue.is_mapped() || queue.state.stopped_by != scheduler_queue.id) continue;
        const GpuVa report_address{raw(scheduler_queue.mqd()) + MQD_DOORBELL_ID0 * 4};
        if (raw(scheduler_queue.mqd()) != 0 &&
            !core.memory.store<std::uint32_t>(Vmid{0}, report_address, raw(queue.doorbell())))
            ++core.counters.faults;
        queue.state.stopped_by = kNoQueue;
        queue.state.is_draining = 0;
        queue.state.phase = QueuePhase::Running;
        queue.free_stream();
        core.scheduler.processes[raw(queue.vmid())].is_being_evicted = 0;
        core.dispatcher.resume(queue.id);
    }
}

}  // namespace

/// Begins to stop the queues at the first call for a packet, when is_unmapping is 0; later calls
/// only check whether the wait is over.
Outcome handle_unmap_queues(Packet& packet) {
    if (!packet.is_privileged) return Outcome::BadPacket;
    const std::uint32_t action = HW_GET(UNMAP_QUEUES_1, ACTION, packet.dword(1));
    // amdgpu preempts the gfx ring with this action, then waits for a fence in the ring. The ring
    // reaches the fence without preemption, too.
    if (action == PM4_UNMAP_PREEMPT_NO_UNMAP) return Outcome::Done;
    QueueState& state = packet.queue.state;
    Core& core = packet.core;
    if (state.is_unmapping == 0) {
        const std::uint64_t latency = core.scheduler.unmap_latency_ms * kNsPerMs;
        const bool has_limit = core.scheduler.owner == packet.queue.id && latency != 0;
        state.is_unmapping = 1;
        state.stop_deadline = has_limit ? core.now_ns() + latency : kNoDeadline;
        begin_unmap(packet, action == PM4_UNMAP_RESET ? StopMode::Reset : StopMode::Preempt);
        for (Queue& queue : core.queues)
            if (queue.state.stopped_by == packet.queue.id)
                (void)step_transition(core, queue, packet.budget);
    }
    if (!is_unmap_over(core, packet.queue)) {
        state.wait.kind = WaitKind::Unmap;
        return Outcome::Blocked;
    }
    state.is_unmapping = 0;
    end_unmap_wait(core, packet.queue);
    return Outcome::Done;
}

bool is_unmap_over(Core& core, const Queue& queue) {
    if (queue.state.is_unmapping != 0 && core.now_ns() >= queue.state.stop_deadline) return true;
    return std::none_of(core.queues.begin(), core.queues.end(), [&](const Queue& other) {
        return other.is_mapped() && other.state.stopped_by == queue.id;
    });
}

}  // namespace vgpu::softgpu::cp
