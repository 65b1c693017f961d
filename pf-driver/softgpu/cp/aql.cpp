// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/cp/aql.h"

#include <algorithm>
#include <array>

#include "pf-driver/hw/aql.h"
#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/ih.h"
#include "pf-driver/hw/tc_op.h"

namespace vgpu::softgpu::cp {

namespace {

constexpr std::uint64_t kMinusOne = ~0ull;
constexpr std::uint64_t kVaEnd = 1ull << GPUVM_VA_BITS;

/// The result of executing the packet at `next`; only run_one() acts on this result.
enum class Verdict : std::uint8_t {
    Finished,  ///< done: complete it now
    Launched,  ///< a kernel runs; complete_kernel() completes it
    Entered,   ///< the IB of the vendor packet is being executed
    Waiting,   ///< queue.state.wait has the condition
    Stopped,   ///< the queue has been halted
};

using PacketBytes = std::array<std::byte, AQL_PACKET_BYTES>;
using AqlHandler = Verdict (*)(Core&, Queue&, const PacketBytes&);

/// Address of packet `index` in the ring. A ring smaller than one packet counts as one packet, to
/// avoid a division by 0.
GpuVa packet_address(const Queue& queue, std::uint64_t index) {
    const std::uint64_t packets =
        std::max<std::uint64_t>(queue.ring_dwords() / (AQL_PACKET_BYTES / 4), 1);
    return GpuVa{raw(queue.ring()) + index % packets * AQL_PACKET_BYTES};
}

/// Address of the queue's amd_queue_t. No register holds this address, but the read pointer is
/// reported to aql_queue::read_dispatch_id, whose address is in a register.
GpuVa queue_address(const Queue& queue) {
    return GpuVa{raw(queue.report_address()) - offsetof(aql_queue, read_dispatch_id)};
}

GpuVa offset(GpuVa base, std::uint64_t bytes) {
    return GpuVa{raw(base) + bytes};
}

/// Writes the event mailbox of a signal whose value has changed and raises an end-of-pipe
/// interrupt. Does nothing for a signal without an event mailbox. False if memory faults.
bool notify(Core& core, const Queue& queue, GpuVa signal) {
    Memory& memory = core.memory;
    const Vmid vmid = queue.vmid();
    const auto mailbox =
        memory.load<std::uint64_t>(vmid, offset(signal, offsetof(aql_signal, event_mailbox_ptr)));
    if (!mailbox) return false;
    if (*mailbox == 0) return true;
    const auto event =
        memory.load<std::uint32_t>(vmid, offset(signal, offsetof(aql_signal, event_id)));
    if (!event || !memory.store<std::uint64_t>(vmid, GpuVa{*mailbox}, *event)) return false;
    core.raise_eop(queue, *event);
    return true;
}

/// Writes the start and end time to a signal. Call it before the value of the signal changes,
/// because a reader of the new value reads the times at once. False if memory faults.
bool stamp(Core& core, const Queue& queue, GpuVa signal, std::uint64_t start) {
    const Vmid vmid = queue.vmid();
    return core.memory.store<std::uint64_t>(vmid, offset(signal, offsetof(aql_signal, start_ts)),
                                            start) &&
           core.memory.store<std::uint64_t>(vmid, offset(signal, offsetof(aql_signal, end_ts)),
                                            core.ticks());
}

/// Completes the signal of a packet: writes the times if `start_ticks` is given, decrements the
/// value and notifies the signal's event. Does nothing for handle 0, which means no signal. False
/// if an error has halted the queue.
bool complete_signal(Core& core, Queue& queue, std::uint64_t handle,
                     const std::uint64_t* start_ticks) {
    if (handle == 0) return true;
    const GpuVa signal{handle};
    if (start_ticks && !stamp(core, queue, signal, *start_ticks)) {
        core.fault(queue);
        return false;
    }
    mem::AtomicRequest request;
    request.operation = TC_OP_ADD_64;
    request.address = offset(signal, offsetof(aql_signal, value));
    request.source = kMinusOne;
    const mem::AtomicResult result = core.memory.atomic(queue.vmid(), request);
    if (result.status == mem::AtomicStatus::Bad) {
        report_queue_error(core, queue, AQL_QUEUE_ERROR_PACKET, Halt::AqlError);
        return false;
    }
    if (result.status == mem::AtomicStatus::Fault || !notify(core, queue, signal)) {
        core.fault(queue);
        return false;
    }
    return true;
}

/// Retires completed packets, oldest first. Makes their headers INVALID before read_dispatch_id
/// advances: a producer that reads the new read_dispatch_id may write new packets there at once,
/// and a later INVALID would overwrite a new header.
void retire(Core& core, Queue& queue) {
    QueueState& state = queue.state;
    const std::uint64_t before = state.rptr;
    while ((state.done & 1u) != 0) {
        if (!core.memory.store<std::uint16_t>(queue.vmid(), packet_address(queue, state.rptr),
                                              AQL_TYPE_INVALID)) {
            core.fault(queue);
            return;
        }
        state.done >>= 1;
        ++state.rptr;
    }
    if (state.rptr == before) return;
    state.reported = state.rptr;
    if (raw(queue.report_address()) == 0) return;
    if (!core.memory.store<std::uint64_t>(queue.vmid(), queue.report_address(), state.rptr))
        core.fault(queue);
}

/// Completes the signal of packet `index` and retires all packets that can retire. Packets complete
/// in any order, but retire oldest first: bit i of `done` is set if packet rptr + i is complete,
/// and the packets up to the first clear bit retire.
void finish_packet(Core& core, Queue& queue, std::uint64_t index, std::uint64_t signal,
                   const std::uint64_t* start_ticks) {
    ++core.counters.packets;
    core.needs_check = true;
    // An index outside the window can come from a save area that the guest has forged.
    if (index - queue.state.rptr >= kAqlWindow) return;
    if (!complete_signal(core, queue, signal, start_ticks)) return;
    queue.state.done |= 1u << (index - queue.state.rptr);
    retire(core, queue);
}

/// Halts the queue with an error code. Missing scratch is the only error that the runtime can fix:
/// after the runtime's answer, the queue tries the packet again.
Verdict stop(Core& core, Queue& queue, std::uint32_t code) {
    const Halt why = code == AQL_QUEUE_ERROR_SCRATCH ? Halt::AqlScratch : Halt::AqlError;
    report_queue_error(core, queue, code, why);
    return Verdict::Stopped;
}

Verdict stop_with_fault(Core& core, Queue& queue) {
    core.fault(queue);
    return Verdict::Stopped;
}

Verdict wait_for(Queue& queue, WaitKind kind) {
    queue.state.wait = {};
    queue.state.wait.kind = kind;
    return Verdict::Waiting;
}

// --- kernel dispatch ----------------------------------------------------------------------------

/// The queue error code for each value of isa::DispatchError.
constexpr std::array<std::uint32_t, 6> kDispatchErrors = {
    0,                               // None
    AQL_QUEUE_ERROR_DIMENSIONS,      // Dimensions
    AQL_QUEUE_ERROR_WORKGROUP_SIZE,  // GroupTooBig
    AQL_QUEUE_ERROR_GROUP_MEMORY,    // LdsTooBig
    AQL_QUEUE_ERROR_CODE_OBJECT,     // UserSgprs
    AQL_QUEUE_ERROR_APERTURE,        // EntryAddress
};

/// A queue error code and KFD's number for the same packet error. Errors of waves have no row,
/// because KFD gets these errors from a trap handler, not from the CP.
struct PacketErrorRow {
    std::uint32_t code;
    ih_packet_error error;
};
constexpr std::array kPacketErrors = {
    PacketErrorRow{AQL_QUEUE_ERROR_DIMENSIONS, IH_PACKET_ERROR_DIMENSIONS},
    PacketErrorRow{AQL_QUEUE_ERROR_GROUP_MEMORY, IH_PACKET_ERROR_GROUP_MEMORY},
    PacketErrorRow{AQL_QUEUE_ERROR_CODE_OBJECT, IH_PACKET_ERROR_CODE_OBJECT},
    PacketErrorRow{AQL_QUEUE_ERROR_APERTURE, IH_PACKET_ERROR_CODE_OBJECT},
    PacketErrorRow{AQL_QUEUE_ERROR_PACKET, IH_PACKET_ERROR_UNSUPPORTED},
    PacketErrorRow{AQL_QUEUE_ERROR_WORKGROUP_SIZE, IH_PACKET_ERROR_WORKGROUP_SIZE},
    PacketErrorRow{AQL_QUEUE_ERROR_REGISTERS, IH_PACKET_ERROR_REGISTERS},
    PacketErrorRow{AQL_QUEUE_ERROR_VENDOR_PACKET, IH_PACKET_ERROR_VENDOR_PACKET},
};

void raise_packet_error(Core& core, const Queue& queue, std::uint32_t code) {
    const auto row = std::find_if(kPacketErrors.begin(), kPacketErrors.end(),
                                  [&](const PacketErrorRow& r) { return r.code == code; });
    if (row != kPacketErrors.end()) core.raise_packet_error(queue, row->error);
}

/// Copies the queue's scratch settings to `state` (WAVESIZE is in KiB). Returns
/// AQL_QUEUE_ERROR_SCRATCH if the kernel needs more scratch than the queue has, else 0.
std::uint32_t set_scratch(const aql_queue& amd_queue, DispatchState& state) {
    isa::DispatchSpec& spec = state.spec;
    std::copy(std::begin(amd_queue.scratch_resource_descriptor),
              std::end(amd_queue.scratch_resource_descriptor), spec.scratch_descriptor.begin());
    spec.scratch_base = amd_queue.scratch_backing_memory_location;
    spec.scratch_wave_bytes = HW_GET(COMPUTE_TMPRING_SIZE, WAVESIZE, amd_queue.compute_tmpring_size)
                              << 10;
    if (spec.private_bytes == 0) return 0;
    const std::uint32_t waves = HW_GET(COMPUTE_TMPRING_SIZE, WAVES, amd_queue.compute_tmpring_size);
    const std::uint64_t needed = std::uint64_t{spec.private_bytes} * AQL_WAVE_LANES;
    if (spec.private_bytes > amd_queue.scratch_wave64_lane_byte_size ||
        needed > spec.scratch_wave_bytes || waves < isa::waves_per_group(spec))
        return AQL_QUEUE_ERROR_SCRATCH;
    state.scratch_slots = waves;
    state.gives_scratch_back =
        (amd_queue.queue_properties & AQL_QUEUE_USE_SCRATCH_ONCE) != 0 ? 1 : 0;
    return 0;
}

void fill_spec(const Queue& queue, const aql_kernel_dispatch& packet,
               const aql_kernel_descriptor& kernel, isa::DispatchSpec& spec) {
    spec.entry =
        packet.kernel_object + static_cast<std::uint64_t>(kernel.kernel_code_entry_byte_offset);
    spec.pgm_rsrc1 = kernel.compute_pgm_rsrc1;
    // the driver (MQD), not the kernel's descriptor, decides whether there is a trap handler
    const std::uint32_t has_trap =
        HW_GET(COMPUTE_PGM_RSRC2, TRAP_PRESENT, queue.sh(REG_GC_COMPUTE_PGM_RSRC2));
    spec.pgm_rsrc2 = HW_SET(COMPUTE_PGM_RSRC2, TRAP_PRESENT, kernel.compute_pgm_rsrc2, has_trap);
    spec.code_properties = kernel.kernel_code_properties;
    spec.group_size = {packet.workgroup_size_x, packet.workgroup_size_y, packet.workgroup_size_z};
    spec.grid_size = {packet.grid_size_x, packet.grid_size_y, packet.grid_size_z};
    spec.lds_bytes = packet.group_segment_size;
    spec.private_bytes = packet.private_segment_size;
    spec.kernarg_address = packet.kernarg_address;
}

/// Checks the dimensions and the address of the kernel descriptor, before any other memory is read.
/// Returns an error code; 0: no error.
std::uint32_t check_packet(const aql_kernel_dispatch& packet) {
    if (HW_GET(AQL_SETUP, DIMENSIONS, packet.setup) == 0) return AQL_QUEUE_ERROR_DIMENSIONS;
    if (packet.kernel_object == 0 || packet.kernel_object % alignof(aql_kernel_descriptor) != 0)
        return AQL_QUEUE_ERROR_CODE_OBJECT;
    return packet.kernel_object >= kVaEnd ? AQL_QUEUE_ERROR_APERTURE : 0;
}

/// Copies packet, kernel descriptor and amd_queue_t and checks only the copies, because the guest
/// may change its memory at any time. Starts the kernel after all checks.
Verdict kernel_dispatch(Core& core, Queue& queue, const PacketBytes& bytes) {
    const auto packet = load<aql_kernel_dispatch>(bytes);
    if (const std::uint32_t code = check_packet(packet)) return stop(core, queue, code);
    aql_kernel_descriptor kernel{};
    aql_queue amd_queue{};
    if (!core.memory.read(queue.vmid(), GpuVa{packet.kernel_object}, bytes_of(kernel)) ||
        !core.memory.read(queue.vmid(), queue_address(queue), bytes_of(amd_queue)))
        return stop_with_fault(core, queue);
    DispatchState state;
    fill_spec(queue, packet, kernel, state.spec);
    state.spec.packet_address = raw(packet_address(queue, queue.state.next));
    state.spec.queue_address = raw(queue_address(queue));
    state.spec.dispatch_id = queue.state.next;
    const isa::DispatchError error = isa::check(state.spec);
    if (error != isa::DispatchError::None)
        return stop(core, queue, kDispatchErrors[static_cast<std::size_t>(error)]);
    if (!Footprint::of(state.spec).fits_a_cu()) return stop(core, queue, AQL_QUEUE_ERROR_REGISTERS);
    if (const std::uint32_t code = set_scratch(amd_queue, state)) return stop(core, queue, code);
    state.queue = queue.id;
    state.vmid = queue.vmid();
    state.end = isa::group_counts(state.spec);
    state.packet = queue.state.next;
    state.signal = packet.completion_signal;
    state.start_ticks = core.ticks();
    state.is_aql = 1;
    state.is_profiled = (amd_queue.queue_properties & AQL_QUEUE_ENABLE_PROFILING) != 0 ? 1 : 0;
    core.dispatcher.start(state);
    return Verdict::Launched;
}

// --- barriers -----------------------------------------------------------------------------------

std::optional<std::int64_t> signal_value(Core& core, const Queue& queue, std::uint64_t handle) {
    const auto value = core.memory.load<std::uint64_t>(
        queue.vmid(), offset(GpuVa{handle}, offsetof(aql_signal, value)));
    if (!value) return std::nullopt;
    return static_cast<std::int64_t>(*value);
}

enum class WaitResult : std::uint8_t { No, Yes, Fault };

/// The state of a barrier-AND or barrier-OR packet. A signal is met if its value is 0; a handle of
/// 0 means no signal (HSA Platform System Architecture, Barrier-AND packet). The first signal that
/// is met decides an OR; the first that is not met decides an AND. A packet without signals is met.
WaitResult is_met(Core& core, const Queue& queue, const aql_barrier& barrier) {
    const bool is_or = HW_GET(AQL_HEADER, TYPE, barrier.header) == AQL_TYPE_BARRIER_OR;
    bool has_signal = false;
    for (const std::uint64_t handle : barrier.dep_signal) {
        if (handle == 0) continue;
        has_signal = true;
        const auto value = signal_value(core, queue, handle);
        if (!value) return WaitResult::Fault;
        if ((*value == 0) == is_or) return is_or ? WaitResult::Yes : WaitResult::No;
    }
    return is_or && has_signal ? WaitResult::No : WaitResult::Yes;
}

/// True if `value` <condition> `reference`. A condition other than EQ, NE and LT counts as GTE.
bool holds(std::uint32_t condition, std::int64_t value, std::int64_t reference) {
    switch (condition) {
        case AQL_CONDITION_EQ:
            return value == reference;
        case AQL_CONDITION_NE:
            return value != reference;
        case AQL_CONDITION_LT:
            return value < reference;
        default:
            return value >= reference;
    }
}

WaitResult is_value_met(Core& core, const Queue& queue, const aql_barrier_value& barrier) {
    if (barrier.signal == 0) return WaitResult::Yes;
    const auto value = signal_value(core, queue, barrier.signal);
    if (!value) return WaitResult::Fault;
    return holds(barrier.condition, *value & barrier.mask, barrier.value) ? WaitResult::Yes
                                                                          : WaitResult::No;
}

Verdict finish_barrier(Core& core, Queue& queue, WaitResult met, WaitKind kind) {
    switch (met) {
        case WaitResult::Yes:
            return Verdict::Finished;
        case WaitResult::No:
            return wait_for(queue, kind);
        case WaitResult::Fault:
            break;
    }
    return stop_with_fault(core, queue);
}

Verdict barrier(Core& core, Queue& queue, const PacketBytes& bytes) {
    const WaitResult met = is_met(core, queue, load<aql_barrier>(bytes));
    return finish_barrier(core, queue, met, WaitKind::Signals);
}

// --- vendor packets -----------------------------------------------------------------------------

/// Enters the IB in the queue's VMID and ignores the VMID in the packet.
Verdict pm4_ib(Core& core, Queue& queue, const PacketBytes& bytes) {
    const auto packet = load<aql_pm4_ib>(bytes);
    const std::uint32_t expected = PM4_HEADER_OF(PM4_OP_INDIRECT_BUFFER, 3);
    const std::uint32_t ignored =
        HW_FIELD_MASK(PM4_HEADER, PREDICATE) | HW_FIELD_MASK(PM4_HEADER, SHADER_TYPE);
    if ((packet.ib_packet[0] & ~ignored) != expected)
        return stop(core, queue, AQL_QUEUE_ERROR_VENDOR_PACKET);
    const GpuVa va{join(packet.ib_packet[1], packet.ib_packet[2]) & ~3ull};
    const std::uint32_t dwords = HW_GET(INDIRECT_BUFFER_3, IB_SIZE, packet.ib_packet[3]);
    if (dwords == 0) return Verdict::Finished;
    if (!call_ib(queue, va, dwords, queue.vmid()))
        return stop(core, queue, AQL_QUEUE_ERROR_VENDOR_PACKET);
    queue.state.in_aql_ib = 1;
    queue.state.aql_signal = packet.completion_signal;
    return Verdict::Entered;
}

/// All vendor packets have the format byte at the same offset, so any of their structures can be
/// used to read the byte.
Verdict vendor(Core& core, Queue& queue, const PacketBytes& bytes) {
    const auto packet = load<aql_barrier_value>(bytes);
    switch (packet.format) {
        case AQL_VENDOR_PM4_IB:
            return pm4_ib(core, queue, bytes);
        case AQL_VENDOR_BARRIER_VALUE:
            return finish_barrier(core, queue, is_value_met(core, queue, packet),
                                  WaitKind::SignalValue);
        default:
            return stop(core, queue, AQL_QUEUE_ERROR_VENDOR_PACKET);
    }
}

// --- the queue ----------------------------------------------------------------------------------

struct TypeRow {
    std::uint32_t type;
    AqlHandler handler;
};
constexpr std::array kTypes = {
    TypeRow{AQL_TYPE_VENDOR, vendor},
    TypeRow{AQL_TYPE_KERNEL_DISPATCH, kernel_dispatch},
    TypeRow{AQL_TYPE_BARRIER_AND, barrier},
    TypeRow{AQL_TYPE_BARRIER_OR, barrier},
};

/// With the barrier bit, a packet of any type waits until no earlier packet is in flight.
Verdict execute(Core& core, Queue& queue, const PacketBytes& bytes, std::uint32_t header) {
    const std::uint32_t type = HW_GET(AQL_HEADER, TYPE, header);
    if (HW_GET(AQL_HEADER, BARRIER, header) != 0 && queue.state.next != queue.state.rptr)
        return wait_for(queue, WaitKind::Dispatches);
    const auto row = std::find_if(kTypes.begin(), kTypes.end(),
                                  [&](const TypeRow& r) { return r.type == type; });
    // AGENT_DISPATCH packets are for HSA agents that are not GPUs; the remaining types are
    // undefined.
    if (row == kTypes.end()) return stop(core, queue, AQL_QUEUE_ERROR_PACKET);
    return row->handler(core, queue, bytes);
}

std::uint64_t completion_signal_of(const PacketBytes& bytes) {
    return load<std::uint64_t>(bytes, offsetof(aql_kernel_dispatch, completion_signal));
}

/// Start time for the signal of a barrier or vendor packet; nullptr if the packet has no signal, or
/// if AQL_QUEUE_ENABLE_PROFILING is not set or cannot be read. These packets get timestamps as
/// kernels do, because runtimes use such packets to record the times of events.
const std::uint64_t* find_start_ticks(Core& core, const Queue& queue, std::uint64_t signal) {
    if (signal == 0) return nullptr;
    const auto properties = core.memory.load<std::uint32_t>(
        queue.vmid(), offset(queue_address(queue), offsetof(aql_queue, queue_properties)));
    const bool is_profiled = properties && (*properties & AQL_QUEUE_ENABLE_PROFILING) != 0;
    return is_profiled ? &queue.state.packet_ticks : nullptr;
}

/// Completes the packet at `next`; false if an error halts the queue.
bool finish_next(Core& core, Queue& queue, std::uint64_t signal) {
    const std::uint64_t index = queue.state.next++;
    finish_packet(core, queue, index, signal, find_start_ticks(core, queue, signal));
    queue.state.packet_ticks = 0;
    return queue.state.halt == Halt::None;
}

/// Executes the packet at `next`; true if the queue may continue at once.
bool run_one(Core& core, Queue& queue) {
    QueueState& state = queue.state;
    if (state.next == state.wptr) return false;
    if (state.next - state.rptr >= kAqlWindow) {
        wait_for(queue, WaitKind::Window);
        return false;
    }
    const GpuVa address = packet_address(queue, state.next);
    // Read the header first: a producer writes it last, so the rest is valid once the header is.
    const auto header = core.memory.load<std::uint32_t>(queue.vmid(), address);
    if (!header) {
        core.fault(queue);
        return false;
    }
    if (HW_GET(AQL_HEADER, TYPE, *header) == AQL_TYPE_INVALID) {
        wait_for(queue, WaitKind::Valid);
        return false;
    }
    PacketBytes bytes;
    if (!core.memory.read(queue.vmid(), address, bytes)) {
        core.fault(queue);
        return false;
    }
    if (state.packet_ticks == 0) state.packet_ticks = core.ticks();
    switch (execute(core, queue, bytes, *header)) {
        case Verdict::Finished:
            return finish_next(core, queue, completion_signal_of(bytes));
        case Verdict::Launched:
            ++state.next;
            state.packet_ticks = 0;
            return true;
        case Verdict::Entered:
            return true;
        case Verdict::Waiting:
        case Verdict::Stopped:
            break;
    }
    return false;
}

/// Value of the signal at queue_inactive_signal; nullopt if the queue has no such signal that can
/// be read.
std::optional<std::uint64_t> inactive_value(Core& core, const Queue& queue) {
    const Vmid vmid = queue.vmid();
    const auto signal = core.memory.load<std::uint64_t>(
        vmid, offset(queue_address(queue), offsetof(aql_queue, queue_inactive_signal)));
    if (!signal || *signal == 0) return std::nullopt;
    return core.memory.load<std::uint64_t>(vmid,
                                           offset(GpuVa{*signal}, offsetof(aql_signal, value)));
}

/// Ends the halt if the runtime has answered the queue's request, and ends a wait that is over.
/// False if the queue still waits or is halted. Inside an IB, only the halt counts, because
/// run_pm4() checks the wait.
bool try_to_continue(Core& core, Queue& queue) {
    QueueState& state = queue.state;
    if (state.halt == Halt::AqlScratch || state.halt == Halt::AqlReclaim) {
        if (!is_answered(core, queue)) return false;
        state.halt = Halt::None;
    }
    if (state.halt != Halt::None) return false;
    if (state.in_aql_ib != 0 || state.wait.kind == WaitKind::None) return true;
    if (!is_wait_over(core, queue)) return false;
    state.wait = {};
    return true;
}

}  // namespace

bool run_aql_ib(Core& core, Queue& queue, StepBudget& budget, StepResult& result) {
    result = run_pm4(core, queue, budget);
    return end_aql_ib(core, queue);
}

bool end_aql_ib(Core& core, Queue& queue) {
    QueueState& state = queue.state;
    if (state.frame_count != 0 || state.halt != Halt::None) return false;
    state.in_aql_ib = 0;
    return finish_next(core, queue, state.aql_signal);
}

StepResult run_aql(Core& core, Queue& queue, StepBudget& budget) {
    QueueState& state = queue.state;
    if (!try_to_continue(core, queue)) return StepResult::Blocked;
    bool moved = false;
    while (!budget.is_spent()) {
        if (state.in_aql_ib != 0) {
            StepResult inside = StepResult::Idle;
            const bool has_ended = run_aql_ib(core, queue, budget, inside);
            moved |= has_ended || inside == StepResult::Progress;
            if (!has_ended) break;
        }
        const std::uint64_t before = state.next;
        const bool continues = run_one(core, queue);
        moved |= continues || state.next != before;
        if (!continues) break;
        budget.charge(AQL_PACKET_BYTES);
    }
    if (moved) return StepResult::Progress;
    const bool is_idle = state.wait.kind == WaitKind::None && state.halt == Halt::None;
    return is_idle ? StepResult::Idle : StepResult::Blocked;
}

void complete_kernel(Core& core, Dispatch& dispatch) {
    const DispatchState state = dispatch.state;
    Queue& queue = core.queue(state.queue);
    core.dispatcher.remove(&dispatch);
    ++core.counters.dispatches;
    core.needs_check = true;
    if (state.is_aql == 0 || !queue.is_aql()) return;
    const std::uint64_t* start = state.is_profiled != 0 ? &state.start_ticks : nullptr;
    finish_packet(core, queue, state.packet, state.signal, start);
    if (state.gives_scratch_back != 0 && queue.state.halt == Halt::None)
        report_queue_error(core, queue, AQL_QUEUE_SCRATCH_RECLAIM, Halt::AqlReclaim);
}

void report_queue_error(Core& core, Queue& queue, std::uint32_t code, Halt why) {
    core.halt(queue, why);
    if (why == Halt::AqlError) {
        ++core.counters.bad_packets;
        queue.set_reg(REG_GC_CP_HQD_ERROR,
                      HW_SET(CP_HQD_ERROR, AQL_ERROR, queue.reg(REG_GC_CP_HQD_ERROR), 1));
        raise_packet_error(core, queue, code);
    }
    const Vmid vmid = queue.vmid();
    const auto signal = core.memory.load<std::uint64_t>(
        vmid, offset(queue_address(queue), offsetof(aql_queue, queue_inactive_signal)));
    if (!signal) return core.fault(queue);
    if (*signal == 0) return;
    const GpuVa inactive{*signal};
    if (!core.memory.store<std::uint64_t>(vmid, offset(inactive, offsetof(aql_signal, value)),
                                          code) ||
        !notify(core, queue, inactive))
        core.fault(queue);
}

bool is_barrier_over(Core& core, const Queue& queue) {
    PacketBytes bytes;
    if (!core.memory.read(queue.vmid(), packet_address(queue, queue.state.next), bytes))
        return true;
    if (queue.state.wait.kind == WaitKind::SignalValue)
        return is_value_met(core, queue, load<aql_barrier_value>(bytes)) != WaitResult::No;
    return is_met(core, queue, load<aql_barrier>(bytes)) != WaitResult::No;
}

bool is_header_valid(Core& core, const Queue& queue) {
    const auto header =
        core.memory.load<std::uint32_t>(queue.vmid(), packet_address(queue, queue.state.next));
    return !header || HW_GET(AQL_HEADER, TYPE, *header) != AQL_TYPE_INVALID;
}

bool is_answered(Core& core, const Queue& queue) {
    const auto value = inactive_value(core, queue);
    return value && *value == 0;
}

bool is_inactive(Core& core, const Queue& queue) {
    const auto value = inactive_value(core, queue);
    return value && *value != 0;
}

}  // namespace vgpu::softgpu::cp
