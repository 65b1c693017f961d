// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/cp/scheduler.h"

#include <algorithm>
#include <optional>

#include "pf-driver/hw/fields.h"

namespace vgpu::softgpu::cp {

namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr std::uint32_t kLatencyUnitMs = 100;

/// The result of a run list entry. After NoRoom the list waits until a process has left the
/// hardware. Bad and Fault end the list.
enum class MapResult : std::uint8_t { Mapped, NoRoom, Bad, Fault };

/// Values of QUERY_STATUS.COMMAND; values 1 and 2 write only the fence.
enum QueryCommand : std::uint32_t { kInterruptOnly = 0, kFenceAndInterrupt = 3 };

// --- VMIDs --------------------------------------------------------------------------------------

/// True if the process of the VMID has a queue on the hardware: in an HQD, if a packet mapped the
/// queue, or on an SDMA engine.
bool has_queues(const Core& core, Vmid vmid) {
    const SchedulerState& scheduler = core.scheduler;
    const std::uint16_t pasid = scheduler.processes[raw(vmid)].pasid;
    const bool has_compute =
        std::any_of(core.queues.begin(), core.queues.end(), [&](const Queue& queue) {
            return queue.is_mapped() && queue.vmid() == vmid && queue.state.mapped_by != kNoQueue;
        });
    return has_compute ||
           std::any_of(scheduler.sdma.begin(), scheduler.sdma.end(), [&](const SdmaSlot& slot) {
               return slot.is_used != 0 && slot.pasid == pasid;
           });
}

/// True for a VMID that SET_RESOURCES gave to the scheduler. VMID 0 always belongs to the kernel.
bool is_scheduler_vmid(const SchedulerState& scheduler, unsigned vmid) {
    return vmid != 0 && bit(scheduler.vmid_mask, vmid);
}

/// True for a VMID in which the scheduler maps processes: a VMID from SET_RESOURCES, or the VMID of
/// a process under a debugger.
bool is_process_vmid(const SchedulerState& scheduler, unsigned vmid) {
    return is_scheduler_vmid(scheduler, vmid) || scheduler.processes[vmid].is_debugged != 0;
}

/// The VMID for a process: its current VMID, else an unused VMID, else the VMID of a process
/// without queues. nullopt if all VMIDs have processes with queues.
std::optional<Vmid> find_vmid(const Core& core, std::uint16_t pasid) {
    const SchedulerState& scheduler = core.scheduler;
    std::optional<Vmid> unused;
    std::optional<Vmid> idle;
    for (unsigned i = 0; i < CP_VMIDS; ++i) {
        if (!is_scheduler_vmid(scheduler, i)) continue;
        const ProcessState& process = scheduler.processes[i];
        const Vmid vmid{static_cast<std::uint8_t>(i)};
        if (process.is_valid != 0 && process.pasid == pasid) return vmid;
        if (process.is_valid == 0) {
            if (!unused) unused = vmid;
        } else if (!idle && !has_queues(core, vmid)) {
            idle = vmid;
        }
    }
    return unused ? unused : idle;
}

/// VMID `number`, for the process under a debugger; nullopt while another process has queues in
/// this VMID. KFD takes this VMID from the scheduler and keeps it for the debugged process, because
/// an address watch applies to one VMID (Linux, kfd_device_queue_manager.c,
/// reserve_debug_trap_vmid).
std::optional<Vmid> find_debug_vmid(const Core& core, std::uint32_t number, std::uint16_t pasid) {
    const Vmid vmid{static_cast<std::uint8_t>(number)};
    const ProcessState& process = core.scheduler.processes[number];
    const bool is_taken = process.is_valid != 0 && process.pasid != pasid && has_queues(core, vmid);
    return is_taken ? std::nullopt : std::optional(vmid);
}

/// The address in SQ_SHADER_TBA or SQ_SHADER_TMA: 40 bits in units of 256 bytes; flags follow.
std::uint64_t trap_address(const Packet& packet, std::size_t dword) {
    constexpr unsigned kBits = 40;
    constexpr unsigned kUnitShift = 8;
    return (packet.pair(dword) & ((1ull << kBits) - 1)) << kUnitShift;
}

void map_trap_handler(Packet& packet, Vmid vmid) {
    SchedulerState& scheduler = packet.core.scheduler;
    const bool has_handler = HW_GET(MAP_PROCESS_7, TRAP_EN, packet.dword(7)) != 0;
    scheduler.trap_base[raw(vmid)] = has_handler ? trap_address(packet, 6) : 0;
    scheduler.trap_memory[raw(vmid)] = has_handler ? trap_address(packet, 8) : 0;
}

/// The bank for a process: its current bank, else an unused bank, else, of the banks of processes
/// without queues, the bank that was mapped longest ago. Such a bank exists, because there are as
/// many banks as VMIDs.
WaveSyncBank& find_wave_sync(Core& core, std::uint16_t pasid) {
    SchedulerState& scheduler = core.scheduler;
    const auto is_in_use = [&](const WaveSyncBank& bank) {
        const auto number = static_cast<std::uint8_t>(&bank - scheduler.wave_sync.data() + 1);
        for (unsigned i = 0; i < CP_VMIDS; ++i) {
            const Vmid vmid{static_cast<std::uint8_t>(i)};
            if (scheduler.wave_sync_number[i] == number && has_queues(core, vmid)) return true;
        }
        return false;
    };
    WaveSyncBank* oldest = nullptr;
    for (WaveSyncBank& bank : scheduler.wave_sync) {
        if (bank.is_used != 0 && bank.pasid == pasid) return bank;
        const bool is_older =
            oldest == nullptr || bank.is_used < oldest->is_used ||
            (bank.is_used == oldest->is_used && bank.mapped_at < oldest->mapped_at);
        if (is_older && !is_in_use(bank)) oldest = &bank;
    }
    *oldest = {};
    oldest->pasid = pasid;
    oldest->is_used = 1;
    return *oldest;
}

/// KFD gives a process all global wave sync (GWS) or none (AMDKFD_IOC_ALLOC_QUEUE_GWS). In softgpu
/// each process has its own full set, so processes with GWS need not take turns.
void map_wave_sync(Packet& packet, Vmid vmid, std::uint16_t pasid) {
    SchedulerState& scheduler = packet.core.scheduler;
    std::uint8_t& number = scheduler.wave_sync_number[raw(vmid)];
    number = 0;
    if (HW_GET(MAP_PROCESS_13, NUM_GWS, packet.dword(13)) == 0) return;
    WaveSyncBank& bank = find_wave_sync(packet.core, pasid);
    bank.mapped_at = packet.core.now_ns();
    number = static_cast<std::uint8_t>(&bank - scheduler.wave_sync.data() + 1);
}

/// Executes a MAP_PROCESS. KFD also sends the packet for a process that has queues on the hardware,
/// to change its page table root; the process then keeps its VMID.
MapResult map_process(Packet& packet) {
    Core& core = packet.core;
    const std::uint32_t control = packet.dword(1);
    const auto pasid = static_cast<std::uint16_t>(HW_GET(MAP_PROCESS_1, PASID, control));
    const std::uint32_t debug = HW_GET(MAP_PROCESS_1, DEBUG_VMID, control);
    const bool is_debugged = HW_GET(MAP_PROCESS_1, NEW_DEBUG, control) != 0 && debug != 0;
    const std::optional<Vmid> vmid =
        is_debugged ? find_debug_vmid(core, debug, pasid) : find_vmid(core, pasid);
    if (!vmid) return MapResult::NoRoom;
    SchedulerState& scheduler = core.scheduler;
    ProcessState& process = scheduler.processes[raw(*vmid)];
    if (process.is_being_evicted != 0) return MapResult::NoRoom;
    const std::uint64_t quantum = HW_GET(MAP_PROCESS_1, PROCESS_QUANTUM, control);
    process.root = packet.pair(2);
    process.quantum_ns = quantum * kNsPerMs;
    process.pasid = pasid;
    process.is_valid = 1;
    process.is_debugged = is_debugged ? 1 : 0;
    if (!has_queues(core, *vmid)) process.mapped_at = core.now_ns();
    scheduler.sh_mem_bases[raw(*vmid)] = packet.dword(4);
    scheduler.sh_mem_config[raw(*vmid)] = packet.dword(5);
    map_trap_handler(packet, *vmid);
    map_wave_sync(packet, *vmid, pasid);
    scheduler.run_list.vmid = raw(*vmid);
    core.services.set_process(*vmid, process.root, pasid);
    core.invalidate_code(static_cast<std::uint16_t>(1u << raw(*vmid)));
    return MapResult::Mapped;
}

// --- queues -------------------------------------------------------------------------------------

GpuVa mqd_of(const Packet& packet) {
    return GpuVa{packet.pair(3)};
}

/// The user queue with this MQD; nullptr if the queue is not mapped.
Queue* find_mapped(Core& core, GpuVa mqd) {
    const auto found = std::find_if(core.queues.begin(), core.queues.end(), [&](const Queue& q) {
        return q.is_mapped() && !q.is_gfx() && q.mqd() == mqd &&
               q.state.mapped_by == core.scheduler.owner;
    });
    return found == core.queues.end() ? nullptr : &*found;
}

Queue* find_slot(Core& core) {
    for (unsigned i = 0; i < CP_USER_HQDS; ++i) {
        if (bit(core.scheduler.queue_mask, i) && !core.queues[i].is_mapped())
            return &core.queues[i];
    }
    return nullptr;
}

/// Loads a queue's registers from its MQD and from the packet that maps the queue. False if memory
/// faults.
bool load_mqd(Packet& packet, Queue& queue, Vmid vmid) {
    std::array<std::uint32_t, MQD_DWORDS> mqd{};
    Core& core = packet.core;
    const GpuVa address = mqd_of(packet);
    if (!core.memory.read(Vmid{0}, address, std::as_writable_bytes(std::span(mqd)))) return false;
    queue.clear_progress();
    std::copy_n(mqd.begin() + MQD_SH_FIRST, MQD_SH_COUNT, queue.state.sh.begin());
    std::copy_n(mqd.begin() + MQD_HQD_FIRST, MQD_HQD_COUNT, queue.state.hqd.begin());
    queue.set_reg(REG_GC_CP_MQD_BASE_ADDR, low32(raw(address)));
    queue.set_reg(REG_GC_CP_MQD_BASE_ADDR_HI, high32(raw(address)));
    queue.set_reg(REG_GC_CP_HQD_VMID,
                  HW_PREP(CP_HQD_VMID, VMID, raw(vmid)) | HW_PREP(CP_HQD_VMID, IB_VMID, raw(vmid)));
    const std::uint32_t doorbell = HW_GET(MAP_QUEUES_2, DOORBELL_OFFSET, packet.dword(2));
    std::uint32_t control = queue.reg(REG_GC_CP_HQD_PQ_DOORBELL_CONTROL);
    control = HW_SET(CP_HQD_PQ_DOORBELL_CONTROL, OFFSET, control, doorbell);
    queue.set_reg(REG_GC_CP_HQD_PQ_DOORBELL_CONTROL,
                  HW_SET(CP_HQD_PQ_DOORBELL_CONTROL, EN, control, 1));
    queue.set_reg(REG_GC_CP_HQD_PQ_WPTR_POLL_ADDR, packet.dword(5));
    queue.set_reg(REG_GC_CP_HQD_PQ_WPTR_POLL_ADDR_HI, packet.dword(6));
    return true;
}

/// Loads the write pointer from memory, because a queue may be mapped with work in its ring. Keeps
/// the write pointer from the MQD if memory faults.
void poll_wptr(Core& core, Queue& queue, Vmid vmid) {
    const GpuVa address{queue.reg_pair(REG_GC_CP_HQD_PQ_WPTR_POLL_ADDR) & ~7ull};
    if (raw(address) == 0) return;
    const auto wptr = core.memory.load<std::uint64_t>(vmid, address);
    if (!wptr) return;
    queue.set_reg(REG_GC_CP_HQD_PQ_WPTR_LO, low32(*wptr));
    queue.set_reg(REG_GC_CP_HQD_PQ_WPTR_HI, high32(*wptr));
}

/// Maps the queue of a MAP_QUEUES to `slot`. If an old queue is still mapped there, drops the old
/// queue's kernels, and the new queue replaces the old one.
MapResult map_compute(Packet& packet, Queue& slot, Vmid vmid, QueueId mapped_by) {
    if (slot.is_mapped()) {
        packet.core.dispatcher.drop(slot.id);
        packet.core.dispatcher.resume(slot.id);
    }
    if (!load_mqd(packet, slot, vmid)) return MapResult::Fault;
    poll_wptr(packet.core, slot, vmid);
    slot.state.mapped_by = mapped_by;
    slot.state.queue_type =
        static_cast<std::uint8_t>(HW_GET(MAP_QUEUES_1, QUEUE_TYPE, packet.dword(1)));
    activate(packet.core, slot);
    return MapResult::Mapped;
}

/// Maps an SDMA queue. Also returns Mapped for a queue that is already on its engine, because a new
/// pass over the run list names every queue again.
MapResult map_sdma(Packet& packet, SdmaEngine engine) {
    Core& core = packet.core;
    SchedulerState& scheduler = core.scheduler;
    const std::uint64_t mqd = raw(mqd_of(packet));
    SdmaSlot* free_slot = nullptr;
    for (SdmaSlot& slot : scheduler.sdma) {
        if (slot.is_used != 0 && slot.mqd == mqd) return MapResult::Mapped;
        if (slot.is_used == 0 && free_slot == nullptr) free_slot = &slot;
    }
    if (free_slot == nullptr) return MapResult::NoRoom;
    const std::uint8_t vmid = scheduler.run_list.vmid;
    const sdma::MapRequest queue{
        mqd_of(packet), DoorbellIndex{HW_GET(MAP_QUEUES_2, DOORBELL_OFFSET, packet.dword(2))},
        GpuVa{packet.pair(5)}, Vmid{vmid}, scheduler.processes[vmid].pasid};
    if (!core.services.map_sdma(engine, queue)) return MapResult::NoRoom;
    *free_slot = {mqd, raw(queue.doorbell), queue.pasid, static_cast<std::uint8_t>(engine), 1};
    return MapResult::Mapped;
}

/// Executes a MAP_QUEUES of a run list. The scheduler picks the slot; the preceding MAP_PROCESS
/// determines the VMID.
MapResult map_listed_queue(Packet& packet) {
    Core& core = packet.core;
    const RunListState& list = core.scheduler.run_list;
    if (!is_process_vmid(core.scheduler, list.vmid)) return MapResult::Bad;
    switch (HW_GET(MAP_QUEUES_1, ENGINE_SEL, packet.dword(1))) {
        case PM4_ENGINE_SDMA0:
            return map_sdma(packet, SdmaEngine::Sdma0);
        case PM4_ENGINE_SDMA1:
            return map_sdma(packet, SdmaEngine::Sdma1);
        case PM4_ENGINE_COMPUTE:
            break;
        default:
            return MapResult::Bad;
    }
    if (Queue* mapped = find_mapped(core, mqd_of(packet)))
        return mapped->state.phase == QueuePhase::Stopping ||
                       mapped->state.phase == QueuePhase::Saving
                   ? MapResult::NoRoom
                   : MapResult::Mapped;
    if (core.scheduler.processes[list.vmid].is_being_evicted != 0) return MapResult::NoRoom;
    Queue* slot = find_slot(core);
    if (slot == nullptr) return MapResult::NoRoom;
    const MapResult result = map_compute(packet, *slot, Vmid{list.vmid}, core.scheduler.owner);
    if (result == MapResult::Mapped) slot->state.pasid = core.scheduler.processes[list.vmid].pasid;
    return result;
}

// --- run list -----------------------------------------------------------------------------------

/// Ends the list because of an entry that is bad or can never be mapped, and raises an interrupt.
/// Returns false, for the caller to return.
bool refuse_run_list(Core& core, std::uint32_t header) {
    end_run_list(core);
    ++core.counters.bad_packets;
    core.raise(core.queue(core.scheduler.owner), IH_SOURCE_CP_BAD_OPCODE, header);
    return false;
}

/// Ends the list because of a memory fault. Returns false, for the caller to return.
bool fault_run_list(Core& core) {
    core.fault(core.queue(core.scheduler.owner));
    end_run_list(core);
    return false;
}

/// Call at the end of the list. If a process was evicted in this round (one pass over the list),
/// the next round begins at the top. Otherwise all queues are mapped, and the list is done.
void finish_round(Core& core) {
    RunListState& list = core.scheduler.run_list;
    list.next = 0;
    list.is_active = list.has_preempted;
    list.has_preempted = 0;
}

MapResult execute_entry(Packet& packet, std::uint32_t opcode) {
    switch (opcode) {
        case PM4_OP_NOP:
            return MapResult::Mapped;
        case PM4_OP_MAP_PROCESS:
            return map_process(packet);
        case PM4_OP_MAP_QUEUES:
            return map_listed_queue(packet);
        default:
            return MapResult::Bad;
    }
}

/// Handles a RUN_LIST inside the run list, which ends a round: if the queues of a list do not all
/// fit, KFD ends the list with a RUN_LIST that refers to the top of the list (Linux,
/// kfd_packet_manager.c, pm_create_runlist_ib).
void chain(Core& core, const Packet& packet) {
    RunListState& list = core.scheduler.run_list;
    list.va = packet.pair(1) & ~3ull;
    list.size = HW_GET(RUN_LIST_3, IB_SIZE, packet.dword(3));
    finish_round(core);
}

/// Reads and executes the entry at `next`. False if the entry must wait for room, or if an error
/// has ended the list.
bool run_entry(Core& core, StepBudget& budget) {
    RunListState& list = core.scheduler.run_list;
    const GpuVa at{list.va + std::uint64_t{list.next} * 4};
    const auto header = core.memory.load<std::uint32_t>(Vmid{0}, at);
    if (!header) return fault_run_list(core);
    const std::uint32_t opcode = HW_GET(PM4_HEADER, OPCODE, *header);
    const std::uint32_t body = HW_GET(PM4_HEADER, COUNT, *header) + 1;
    const PacketRow& row = packet_row(opcode);
    const bool is_sound = HW_GET(PM4_HEADER, TYPE, *header) == PM4_TYPE_3 &&
                          row.handler != nullptr && body >= row.min_body && body <= row.max_body &&
                          body < list.size - list.next;
    if (!is_sound) return refuse_run_list(core, *header);
    std::vector<std::uint32_t> words(body);
    if (!core.memory.read(Vmid{0}, GpuVa{raw(at) + 4}, std::as_writable_bytes(std::span(words))))
        return fault_run_list(core);
    budget.charge(body * 4);
    Packet packet{core, core.queue(core.scheduler.owner), Vmid{0}, true, words, budget};
    if (opcode == PM4_OP_RUN_LIST) {
        chain(core, packet);
        return true;
    }
    switch (execute_entry(packet, opcode)) {
        case MapResult::Mapped:
            list.next += body + 1;
            return true;
        case MapResult::NoRoom:
            list.is_starved = 1;
            return false;
        case MapResult::Bad:
            return refuse_run_list(core, *header);
        case MapResult::Fault:
            break;
    }
    return fault_run_list(core);
}

/// The VMID of the process that has been on the hardware longest; nullopt if no process is on the
/// hardware.
std::optional<unsigned> find_oldest(const Core& core) {
    std::optional<unsigned> found;
    const auto& processes = core.scheduler.processes;
    for (unsigned i = 0; i < CP_VMIDS; ++i) {
        const Vmid vmid{static_cast<std::uint8_t>(i)};
        if (!is_process_vmid(core.scheduler, i) || processes[i].is_valid == 0 ||
            !has_queues(core, vmid))
            continue;
        if (!found || processes[i].mapped_at < processes[*found].mapped_at) found = i;
    }
    return found;
}

bool is_quantum_over(const Core& core, const ProcessState& process) {
    return process.is_being_evicted == 0 && core.now_ns() - process.mapped_at >= process.quantum_ns;
}

/// Begins to evict the process of VMID `index`. Leaves mapped_at unchanged: until the process has
/// left, find_oldest() returns this process, for which is_quantum_over() is false. So no other
/// process is evicted meanwhile.
void preempt(Core& core, unsigned index) {
    ProcessState& process = core.scheduler.processes[index];
    const Vmid vmid{static_cast<std::uint8_t>(index)};
    process.is_being_evicted = 1;
    core.scheduler.run_list.has_preempted = 1;
    for (Queue& queue : core.queues) {
        if (queue.is_mapped() && queue.vmid() == vmid &&
            queue.state.mapped_by == core.scheduler.owner)
            begin_stop(core, queue, StopMode::Preempt);
    }
    for (SdmaSlot& slot : core.scheduler.sdma)
        if (slot.is_used != 0 && slot.pasid == process.pasid) unmap_sdma_slot(core, slot);
}

/// Ends the eviction of each process whose queues are all off the hardware. True if it has ended an
/// eviction.
bool finish_evictions(Core& core) {
    bool has_ended_one = false;
    for (unsigned i = 0; i < CP_VMIDS; ++i) {
        ProcessState& process = core.scheduler.processes[i];
        const Vmid vmid{static_cast<std::uint8_t>(i)};
        if (process.is_being_evicted == 0 || has_queues(core, vmid)) continue;
        process.is_being_evicted = 0;
        // The entry that waits for room may be a queue of this same process. If so, the queue is
        // mapped without another MAP_PROCESS, so the process's new quantum begins here.
        process.mapped_at = core.now_ns();
        has_ended_one = true;
    }
    return has_ended_one;
}

/// True if finish_evictions() would end an eviction.
bool is_eviction_done(const Core& core) {
    for (unsigned i = 0; i < CP_VMIDS; ++i) {
        const Vmid vmid{static_cast<std::uint8_t>(i)};
        if (core.scheduler.processes[i].is_being_evicted != 0 && !has_queues(core, vmid))
            return true;
    }
    return false;
}

/// Evicts the process that has been on the hardware longest when its quantum is over. Evicts one
/// process at a time, because the entry at `next` needs only one VMID or slot. True if an eviction
/// has begun or ended. False if the list must wait, or has ended because no process is left to
/// evict.
bool step_starved(Core& core) {
    RunListState& list = core.scheduler.run_list;
    if (finish_evictions(core)) {
        list.is_starved = 0;
        return true;
    }
    const std::optional<unsigned> victim = find_oldest(core);
    // no process is left that could make room, so the entry can never be mapped
    if (!victim) return refuse_run_list(core, 0);
    if (!is_quantum_over(core, core.scheduler.processes[*victim])) return false;
    preempt(core, *victim);
    return true;
}

}  // namespace

// --- shared with unmapping ----------------------------------------------------------------------

void unmap_sdma_slot(Core& core, SdmaSlot& slot) {
    core.services.unmap_sdma(static_cast<SdmaEngine>(slot.engine), DoorbellIndex{slot.doorbell});
    slot = {};
}

void end_run_list(Core& core) {
    core.scheduler.run_list.is_active = 0;
    core.scheduler.run_list.is_starved = 0;
    core.scheduler.run_list.has_preempted = 0;
}

// --- packets ------------------------------------------------------------------------------------

/// Handles the packet that KFD sends on the HIQ (Linux 6.12, amdkfd/kfd_packet_manager_v9.c,
/// pm_set_resources_v9). The packet that amdgpu sends on the KIQ changes nothing.
Outcome handle_set_resources(Packet& packet) {
    if (!packet.is_privileged) return Outcome::BadPacket;
    constexpr std::uint32_t kHiq = 1;
    const std::uint32_t control = packet.dword(1);
    if (HW_GET(SET_RESOURCES_1, QUEUE_TYPE, control) != kHiq) return Outcome::Done;
    SchedulerState& scheduler = packet.core.scheduler;
    scheduler.vmid_mask = static_cast<std::uint16_t>(HW_GET(SET_RESOURCES_1, VMID_MASK, control));
    scheduler.unmap_latency_ms = HW_GET(SET_RESOURCES_1, UNMAP_LATENCY, control) * kLatencyUnitMs;
    scheduler.queue_mask = packet.pair(2);
    scheduler.owner = packet.queue.id;
    scheduler.has_resources = 1;
    return Outcome::Done;
}

Outcome handle_map_process(Packet& packet) {
    if (!packet.is_privileged) return Outcome::BadPacket;
    return map_process(packet) == MapResult::Mapped ? Outcome::Done : Outcome::BadPacket;
}

/// A MAP_QUEUES outside a run list names the slot, as in the packets that amdgpu/gfx_v9_0.c sends
/// on the KIQ (gfx_v9_0_kiq_map_queues).
Outcome handle_map_queues(Packet& packet) {
    if (!packet.is_privileged) return Outcome::BadPacket;
    Core& core = packet.core;
    const std::uint32_t control = packet.dword(1);
    const std::uint32_t engine = HW_GET(MAP_QUEUES_1, ENGINE_SEL, control);
    const unsigned index =
        HW_GET(MAP_QUEUES_1, ME, control) * CP_PIPES_PER_MEC * CP_QUEUES_PER_PIPE +
        HW_GET(MAP_QUEUES_1, PIPE, control) * CP_QUEUES_PER_PIPE +
        HW_GET(MAP_QUEUES_1, QUEUE, control);
    const bool is_slot_given = HW_GET(MAP_QUEUES_1, QUEUE_SEL, control) == 0;
    const bool is_compute = engine == PM4_ENGINE_COMPUTE || engine == PM4_ENGINE_HIQ;
    if (!is_slot_given || !is_compute || index == raw(packet.queue.id)) return Outcome::BadPacket;
    const Vmid vmid{static_cast<std::uint8_t>(HW_GET(MAP_QUEUES_1, VMID, control))};
    Queue& slot = core.queues[index];
    // Waves of the slot's earlier queue still run: stop them before the slot is mapped again.
    if (core.dispatcher.has_leased_groups(slot.id)) {
        begin_stop(core, slot, StopMode::Reset);
        slot.state.stopped_by = packet.queue.id;
        packet.queue.state.wait.kind = WaitKind::Unmap;
        return Outcome::Blocked;
    }
    const MapResult result = map_compute(packet, slot, vmid, packet.queue.id);
    slot.state.pasid = raw(vmid) == 0 ? std::uint16_t{0} : core.services.pasid_of(vmid);
    return result == MapResult::Mapped ? Outcome::Done : Outcome::Fault;
}

Outcome handle_query_status(Packet& packet) {
    if (!packet.is_privileged) return Outcome::BadPacket;
    const std::uint32_t command = HW_GET(QUERY_STATUS_1, COMMAND, packet.dword(1));
    if (command != kInterruptOnly && !packet.core.memory.store<std::uint64_t>(
                                         Vmid{0}, GpuVa{packet.pair(3) & ~7ull}, packet.pair(5)))
        return Outcome::Fault;
    if (command == kInterruptOnly || command == kFenceAndInterrupt)
        packet.core.raise_eop(packet.queue, HW_GET(QUERY_STATUS_1, CONTEXT_ID, packet.dword(1)));
    return Outcome::Done;
}

/// A new list replaces the current list. Mapped queues that the new list does not name stay mapped:
/// KFD sends an UNMAP_QUEUES before it sends a new list.
Outcome handle_run_list(Packet& packet) {
    Core& core = packet.core;
    if (!packet.is_privileged || core.scheduler.has_resources == 0) return Outcome::BadPacket;
    RunListState& list = core.scheduler.run_list;
    list = {};
    list.va = packet.pair(1) & ~3ull;
    list.size = HW_GET(RUN_LIST_3, IB_SIZE, packet.dword(3));
    list.is_active = list.size != 0 ? 1 : 0;
    core.scheduler.owner = packet.queue.id;
    for (unsigned i = 0; i < CP_VMIDS; ++i) {
        ProcessState& process = core.scheduler.processes[i];
        // ends evictions that are complete: the list cannot map a process that is leaving
        if (!has_queues(core, Vmid{static_cast<std::uint8_t>(i)})) process.is_being_evicted = 0;
    }
    // Begin to read the list now: the queues of a short list are mapped before a later fence is
    // written.
    (void)step_run_list(core, packet.budget);
    return Outcome::Done;
}

Outcome handle_invalidate_tlbs(Packet& packet) {
    if (!packet.is_privileged) return Outcome::BadPacket;
    packet.core.services.invalidate_pasid(
        static_cast<std::uint16_t>(HW_GET(INVALIDATE_TLBS_1, PASID, packet.dword(1))));
    return Outcome::Done;
}

// --- stepping -----------------------------------------------------------------------------------

bool step_run_list(Core& core, StepBudget& budget) {
    RunListState& list = core.scheduler.run_list;
    bool moved = false;
    while (list.is_active != 0 && !budget.is_spent()) {
        if (list.is_starved != 0) {
            if (!step_starved(core)) break;
        } else if (list.next >= list.size) {
            finish_round(core);
        } else if (!run_entry(core, budget)) {
            break;
        }
        moved = true;
    }
    return moved;
}

bool has_run_list_work(const Core& core) {
    const RunListState& list = core.scheduler.run_list;
    if (list.is_active == 0) return false;
    if (list.is_starved == 0 || is_eviction_done(core)) return true;
    const std::optional<unsigned> victim = find_oldest(core);
    return !victim || is_quantum_over(core, core.scheduler.processes[*victim]);
}

bool is_run_list_active(const Core& core) {
    return core.scheduler.run_list.is_active != 0;
}

}  // namespace vgpu::softgpu::cp
