// SPDX-License-Identifier: MIT
//
// Maps and unmaps queues, and saves and restores their context.
//
// When a queue is preempted with kernels or an IB in flight, its context goes to the queue's
// context save area (CWSR, compute wave save and restore). The area gets one stream, after the
// space for the control stack: the state of the packets in flight and every resident work-group
// with its waves and LDS. The format of the stream is private to vgpu. CNTL_STACK_OFFSET and
// WG_STATE_OFFSET give the stream's size, as after a save by hardware. The next map of the same MQD
// reads the stream back. The guest can write the area, so load_stream() checks the stream, and
// takes the queue number and, for a user queue, the VMIDs from the queue, not from the stream.
// Without an area, or if the area is too small, the kernels and IBs in flight run to their end
// before the queue is unmapped, as on hardware without CWSR.
#include <algorithm>
#include <array>
#include <cassert>
#include <optional>

#include "pf-driver/hw/fields.h"
#include "pf-driver/softgpu/cp/aql.h"
#include "pf-driver/softgpu/cp/scheduler.h"

namespace vgpu::softgpu::cp {

namespace {

constexpr std::uint32_t kStreamMagic = 0x53574356;  // "VCWS" in memory
constexpr std::uint32_t kStreamVersion = 4;
/// Size of the one entry on the control stack, which holds the stream's size.
constexpr std::uint32_t kControlRecordBytes = 8;
/// Initial capacity for a stream, to avoid reallocations.
constexpr std::size_t kStreamReserve = 64u << 10;
/// Limit, per compute unit, of the size of a stream that is read back; more than twice the state of
/// a CU (256 KiB of VGPRs, 64 KiB of LDS). A guest chooses the size, so the memory for the stream
/// grows only as the stream is read.
constexpr std::uint64_t kStreamBytesPerCu = 1u << 20;

/// The first part of a stream: the state of the packets in flight (see QueueState). The output of
/// Dispatcher::save() for the queue follows, padded to a dword.
struct StreamHead {
    std::uint32_t magic = kStreamMagic;
    std::uint32_t version = kStreamVersion;
    std::uint64_t in_flight = 0;  ///< AQL: packets between rptr and next; PM4: 0
    std::uint64_t aql_signal = 0;
    std::uint64_t packet_ticks = 0;
    std::array<IbFrame, PM4_MAX_IB_NESTING> frames{};
    std::uint32_t done = 0;
    std::uint8_t frame_count = 0;
    std::uint8_t in_aql_ib = 0;
    std::array<std::uint8_t, 2> reserved{};
};

struct SaveArea {
    std::uint64_t base = 0;           ///< address
    std::uint64_t control_stack = 0;  ///< bytes reserved for the control stack, before the stream
    std::uint64_t room = 0;           ///< bytes for the stream; 0: the area cannot be used
};

/// The queue's save area (Linux 6.12, amdkfd/kfd_mqd_manager_v9.c, cp_hqd_ctx_save_*). The area
/// cannot be used if QSWITCH_MODE is off, the address is 0, the control stack is shorter than its
/// entry, or no room is left after the control stack.
SaveArea save_area(const Queue& queue) {
    SaveArea area;
    const bool is_on = HW_GET(CP_HQD_PERSISTENT_STATE, QSWITCH_MODE,
                              queue.reg(REG_GC_CP_HQD_PERSISTENT_STATE)) != 0;
    if (!is_on) return area;
    area.base = queue.reg_pair(REG_GC_CP_HQD_CTX_SAVE_BASE_ADDR_LO);
    area.control_stack = queue.reg(REG_GC_CP_HQD_CNTL_STACK_SIZE);
    const std::uint64_t size = queue.reg(REG_GC_CP_HQD_CTX_SAVE_SIZE);
    const bool has_room =
        area.base != 0 && size > area.control_stack && area.control_stack >= kControlRecordBytes;
    area.room = has_room ? size - area.control_stack : 0;
    return area;
}

/// Size in bytes of the stream that an earlier save has left in the area; 0: none.
std::uint64_t saved_bytes(const Queue& queue) {
    const SaveArea area = save_area(queue);
    const std::uint64_t end = queue.reg(REG_GC_CP_HQD_WG_STATE_OFFSET);
    const bool has_records = queue.reg(REG_GC_CP_HQD_CNTL_STACK_OFFSET) < area.control_stack;
    if (area.room == 0 || !has_records || end <= area.control_stack) return 0;
    return std::min(end - area.control_stack, area.room);
}

/// Records the size of the stream in CNTL_STACK_OFFSET and WG_STATE_OFFSET, from which KFD computes
/// the used sizes of control stack and stream (get_wave_state). The control stack grows down from
/// CNTL_STACK_SIZE, so CNTL_STACK_OFFSET == CNTL_STACK_SIZE means an empty stack.
void record_stream_size(Queue& queue, std::uint64_t stream_bytes) {
    const SaveArea area = save_area(queue);
    const std::uint64_t records = stream_bytes == 0 ? 0 : kControlRecordBytes;
    queue.set_reg(REG_GC_CP_HQD_CNTL_STACK_OFFSET, low32(area.control_stack - records));
    queue.set_reg(REG_GC_CP_HQD_WG_STATE_OFFSET, low32(area.control_stack + stream_bytes));
}

// --- MQD ----------------------------------------------------------------------------------------

constexpr std::array kWrittenBack = {
    REG_GC_CP_HQD_PQ_RPTR,           REG_GC_CP_HQD_PQ_WPTR_LO,      REG_GC_CP_HQD_PQ_WPTR_HI,
    REG_GC_CP_HQD_CNTL_STACK_OFFSET, REG_GC_CP_HQD_WG_STATE_OFFSET, REG_GC_CP_HQD_ERROR,
};

/// Writes the registers of kWrittenBack and the compute registers to the MQD. The compute registers
/// are written because PM4 packets, also those in IBs of AQL queues, set them. False if memory
/// faults.
bool write_mqd(Core& core, Queue& queue) {
    const std::uint64_t mqd = raw(queue.mqd());
    if (mqd == 0 || queue.is_gfx()) return true;
    for (const hw_reg which : kWrittenBack) {
        const GpuVa va{mqd + std::uint64_t{MQD_DWORD_OF(which)} * 4};
        if (!core.memory.store<std::uint32_t>(Vmid{0}, va, queue.reg(which))) return false;
    }
    const GpuVa va{mqd + MQD_SH_FIRST * 4};
    return core.memory.write(Vmid{0}, va, std::as_bytes(std::span(queue.state.sh)));
}

/// Takes the queue off the hardware: writes its MQD, then frees its slot, because the next map of
/// the queue reads the MQD. If the write fails, reports the fault and still frees the slot.
void finish_stop(Core& core, Queue& queue) {
    queue.store_pointers();
    queue.set_reg(REG_GC_CP_HQD_ACTIVE, 0);
    queue.set_reg(REG_GC_CP_HQD_DEQUEUE_REQUEST, 0);
    assert(!core.dispatcher.has_leased_groups(queue.id));
    core.dispatcher.drop(queue.id);
    core.dispatcher.resume(queue.id);
    if (!write_mqd(core, queue)) {
        ++core.counters.faults;
        core.services.report_fault(core.memory.fault_vmid(), core.memory.fault());
    }
    queue.clear_progress();
    core.wake();  // the run list or an UNMAP_QUEUES may wait for this queue to be unmapped
}

// --- saving -------------------------------------------------------------------------------------

std::vector<std::byte> make_stream(const Core& core, const Queue& queue) {
    std::vector<std::byte> stream;
    stream.reserve(sizeof(StreamHead) + kStreamReserve);
    Writer out(stream);
    const QueueState& state = queue.state;
    StreamHead head;
    // PM4 queues do not use `next`
    if (queue.is_aql()) head.in_flight = state.next - state.rptr;
    head.aql_signal = state.aql_signal;
    head.packet_ticks = state.packet_ticks;
    head.frames = state.frames;
    head.done = state.done;
    head.frame_count = state.frame_count;
    head.in_aql_ib = state.in_aql_ib;
    out.value(head);
    core.dispatcher.save(out, queue.id);
    constexpr std::size_t kDword = 4;
    stream.resize((stream.size() + kDword - 1) / kDword * kDword);
    return stream;
}

bool is_in_flight(const Core& core, const Queue& queue) {
    return core.dispatcher.in_flight(queue.id) != 0 || queue.state.frame_count != 0;
}

/// Decides how the queue is unmapped; call when no group of the queue is leased. With
/// StopMode::Reset, or if nothing is in flight, unmaps the queue at once. Otherwise begins to save
/// the context if the save area can hold the stream; if not, lets the queue's kernels and IBs run
/// to their end. Always returns true: each case is progress.
bool choose_unmap_path(Core& core, Queue& queue) {
    QueueState& state = queue.state;
    if (state.stop == StopMode::Reset || !is_in_flight(core, queue)) {
        record_stream_size(queue, 0);
        finish_stop(core, queue);
        return true;
    }
    queue.stream = make_stream(core, queue);
    queue.stream_position = 0;
    if (queue.stream.size() <= save_area(queue).room) {
        state.phase = QueuePhase::Saving;
        return true;
    }
    queue.free_stream();
    state.is_draining = 1;
    core.dispatcher.resume(queue.id);
    core.wake();
    return true;
}

/// Continues the IB of a draining queue. At the end of the IB of an AQL vendor packet, also
/// completes the packet; otherwise the next map would run the IB again from its start. True if it
/// made progress.
bool drain_ib(Core& core, Queue& queue, StepBudget& budget) {
    if (queue.state.in_aql_ib == 0) return run_pm4(core, queue, budget) == StepResult::Progress;
    StepResult result = StepResult::Idle;
    const bool has_ended = run_aql_ib(core, queue, budget, result);
    return has_ended || result == StepResult::Progress;
}

/// True if the queue is inside a long copy, which is done in parts. As on hardware, a preempted
/// queue first finishes the copy: a copy between overlapping ranges that began again would read its
/// own output.
bool is_inside_packet(const QueueState& state) {
    return state.progress != 0 && state.wait.kind == WaitKind::None && state.halt == Halt::None;
}

/// Executes the next part of a long copy.
bool finish_packet_part(Core& core, Queue& queue, StepBudget& budget) {
    run_pm4_packet(core, queue, budget);
    if (queue.state.in_aql_ib != 0) (void)end_aql_ib(core, queue);
    return true;
}

/// True if a draining queue still has kernels in flight, leased groups of dropped kernels, or an IB
/// to finish. The IB of a halted queue never ends, so it does not count.
bool has_to_drain(const Core& core, const Queue& queue) {
    const bool runs_ib = queue.state.frame_count != 0 && queue.state.halt == Halt::None;
    return core.dispatcher.in_flight(queue.id) != 0 ||
           core.dispatcher.has_leased_groups(queue.id) || runs_ib;
}

/// Continues a queue in phase Stopping. While the queue drains, its kernels and IBs run to their
/// end, but no new packet of the ring is fetched. No packet may run while another packet is being
/// executed (Core::executing).
bool step_stopping(Core& core, Queue& queue, StepBudget& budget) {
    QueueState& state = queue.state;
    const bool may_run_packets = core.executing == kNoQueue;
    if (is_inside_packet(state)) return may_run_packets && finish_packet_part(core, queue, budget);
    if (state.is_draining == 0) {
        return !core.dispatcher.has_leased_groups(queue.id) && choose_unmap_path(core, queue);
    }
    if (!has_to_drain(core, queue)) {
        finish_stop(core, queue);
        return true;
    }
    return may_run_packets && state.frame_count != 0 && state.halt == Halt::None &&
           drain_ib(core, queue, budget);
}

/// Writes the stream's size to the control stack, which begins 4 KiB after the MQD. False if memory
/// faults.
bool write_control_record(Core& core, const Queue& queue) {
    const std::uint64_t mqd = raw(queue.mqd());
    if (mqd == 0) return true;
    const std::uint64_t offset =
        MQD_CONTROL_STACK_OFFSET + queue.reg(REG_GC_CP_HQD_CNTL_STACK_OFFSET);
    return core.memory.store<std::uint64_t>(Vmid{0}, GpuVa{(mqd + offset) & ~7ull},
                                            queue.stream.size());
}

bool step_saving(Core& core, Queue& queue, StepBudget& budget) {
    const SaveArea area = save_area(queue);
    const std::uint64_t part =
        std::min<std::uint64_t>(queue.stream.size() - queue.stream_position, budget.bytes);
    const GpuVa va{area.base + area.control_stack + queue.stream_position};
    const auto data = std::span(queue.stream).subspan(queue.stream_position, part);
    if (!core.memory.write(queue.vmid(), va, data)) {
        core.fault(queue);  // the kernels in flight are lost, but the queue is unmapped
        record_stream_size(queue, 0);
        finish_stop(core, queue);
        return true;
    }
    queue.stream_position += part;
    budget.charge(part);
    if (queue.stream_position < queue.stream.size()) return true;
    record_stream_size(queue, queue.stream.size());
    if (!write_control_record(core, queue)) ++core.counters.faults;
    finish_stop(core, queue);
    return true;
}

// --- restoring ----------------------------------------------------------------------------------

bool is_sound(const StreamHead& head) {
    const bool has_frames = head.frame_count <= PM4_MAX_IB_NESTING;
    return head.magic == kStreamMagic && head.version == kStreamVersion && has_frames &&
           head.in_flight <= kAqlWindow;
}

/// True for a queue of the guest's kernel driver: load_stream() then keeps the VMIDs in the stream.
/// These VMIDs may be those of processes, because an IB of the queue, and its kernels, may run in
/// the VMID of a process. They can be trusted, because processes cannot write the save area of such
/// a queue.
bool keeps_vmids(const Queue& queue) {
    return queue.is_privileged() && raw(queue.vmid()) == 0;
}

/// Restores the context from queue.stream. Limits the position in each IB to the size of the IB. A
/// process can write the area of its user queue, so load_stream() replaces the VMIDs in the stream:
/// otherwise the process could run kernels or IBs in the VMID of another process.
Result<> load_stream(Core& core, Queue& queue) {
    Reader in(queue.stream);
    StreamHead head;
    TRY_VOID(in.value(head));
    if (!is_sound(head)) return fail(EPROTO, "context save area holds no context");
    QueueState& state = queue.state;
    for (IbFrame& frame : head.frames) {
        frame.vmid = keeps_vmids(queue) ? frame.vmid % CP_VMIDS : raw(queue.vmid());
        frame.next = std::min(frame.next, frame.size);
    }
    state.frames = head.frames;
    state.frame_count = head.frame_count;
    while (state.frame_count != 0 && stream_left(queue) == 0) --state.frame_count;
    state.in_aql_ib = state.frame_count != 0 && queue.is_aql() ? 1 : 0;
    state.aql_signal = head.aql_signal;
    state.packet_ticks = head.packet_ticks;
    if (queue.is_aql()) {
        state.next = state.rptr + head.in_flight;
        state.done = head.done;
    }
    return core.dispatcher.load(in, queue.id,
                                keeps_vmids(queue) ? std::nullopt : std::optional(queue.vmid()));
}

/// Bounds the host memory of restores. Queues read their streams one after another, and a queue
/// begins only while the CUs are not overfull. So an empty VF always admits a queue. Processes that
/// were evicted at different times may together exceed the CUs, so they wait instead of failing.
bool may_restore(const Core& core, const Queue& queue) {
    if (!queue.stream.empty()) return true;  // the queue has begun
    return !core.dispatcher.is_overfull() &&
           std::none_of(core.queues.begin(), core.queues.end(), [](const Queue& other) {
               return other.state.phase == QueuePhase::Restoring && !other.stream.empty();
           });
}

/// Reads the next part of the stream into queue.stream. Reserves memory once, so that the stream is
/// not copied as it grows. False if memory faults.
bool read_stream_part(Core& core, Queue& queue, std::uint64_t total, StepBudget& budget) {
    const SaveArea area = save_area(queue);
    std::vector<std::byte>& stream = queue.stream;
    if (stream.empty()) stream.reserve(total);
    const std::uint64_t done = stream.size();
    // the guest may have changed the registers, so `total` may be below `done`
    const std::uint64_t part = std::min(total - std::min(done, total), budget.bytes);
    stream.resize(done + part);
    budget.charge(part);
    return core.memory.read(queue.vmid(), GpuVa{area.base + area.control_stack + done},
                            std::span(stream).subspan(done));
}

bool step_restoring(Core& core, Queue& queue, StepBudget& budget) {
    if (!may_restore(core, queue)) {
        core.has_waiting_restore = true;
        return false;
    }
    const std::uint64_t limit = kStreamBytesPerCu * core.dispatcher.compute_units();
    const std::uint64_t total = std::min(saved_bytes(queue), limit);
    if (!read_stream_part(core, queue, total, budget)) {
        queue.state.phase = QueuePhase::Running;
        queue.free_stream();
        core.fault(queue);
        return true;
    }
    if (queue.stream.size() < total) return true;
    queue.state.phase = QueuePhase::Running;
    if (!load_stream(core, queue)) core.refuse(queue, IH_SOURCE_CP_BAD_OPCODE, 0);
    queue.free_stream();
    record_stream_size(queue, 0);
    return true;
}

}  // namespace

void activate(Core& core, Queue& queue) {
    const std::uint8_t type = queue.state.queue_type;
    const QueueId mapped_by = queue.state.mapped_by;
    const std::uint16_t pasid = queue.state.pasid;
    queue.clear_progress();
    queue.state.queue_type = type;
    queue.state.mapped_by = mapped_by;
    queue.state.pasid = pasid;
    queue.load_pointers();
    queue.set_reg(REG_GC_CP_HQD_ACTIVE, 1);
    queue.set_reg(REG_GC_CP_HQD_DEQUEUE_REQUEST, 0);
    queue.state.phase = saved_bytes(queue) != 0 ? QueuePhase::Restoring : QueuePhase::Running;
    // If the queue's inactive signal is still set, the runtime has not answered the last request.
    // The request may be to take scratch back, and the next kernel must not use that scratch.
    if (queue.is_aql() && is_inactive(core, queue)) queue.state.halt = Halt::AqlReclaim;
    core.wake();
}

/// A Reset overrides a Preempt in progress; a Preempt does not override a Reset.
void begin_stop(Core& core, Queue& queue, StopMode mode) {
    QueueState& state = queue.state;
    if (!queue.is_mapped()) return;
    if (state.phase == QueuePhase::Stopping || state.phase == QueuePhase::Saving) {
        if (mode != StopMode::Reset) return;
    }
    // The context of a queue in phase Restoring is still in the save area, so nothing has to be
    // saved.
    const bool keeps_area = state.phase == QueuePhase::Restoring && mode == StopMode::Preempt;
    if (keeps_area) {
        finish_stop(core, queue);
        return;
    }
    state.phase = QueuePhase::Stopping;
    state.stop = mode;
    state.is_draining = 0;
    if (mode == StopMode::Reset || !is_inside_packet(state)) state.progress = 0;
    state.wait = {};
    queue.free_stream();
    core.dispatcher.suspend(queue.id);
    if (mode == StopMode::Reset) core.dispatcher.drop(queue.id);
}

bool step_transition(Core& core, Queue& queue, StepBudget& budget) {
    if (core.executing == queue.id) return false;  // the packet that stops its own queue ends first
    switch (queue.state.phase) {
        case QueuePhase::Stopping:
            return step_stopping(core, queue, budget);
        case QueuePhase::Saving:
            return step_saving(core, queue, budget);
        case QueuePhase::Restoring:
            return step_restoring(core, queue, budget);
        case QueuePhase::Idle:
        case QueuePhase::Running:
            break;
    }
    return false;
}

bool can_step_transition(Core& core, Queue& queue) {
    const QueueState& state = queue.state;
    switch (state.phase) {
        case QueuePhase::Saving:
            return true;
        case QueuePhase::Restoring:
            return may_restore(core, queue);
        case QueuePhase::Stopping:
            break;
        case QueuePhase::Idle:
        case QueuePhase::Running:
            return false;
    }
    if (is_inside_packet(state)) return true;
    if (state.is_draining == 0) return !core.dispatcher.has_leased_groups(queue.id);
    return !has_to_drain(core, queue) ||
           (state.frame_count != 0 && state.halt == Halt::None && is_wait_over(core, queue));
}

}  // namespace vgpu::softgpu::cp
