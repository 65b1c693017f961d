// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/cp/command_processor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>

#include "pf-driver/hw/aql.h"
#include "pf-driver/hw/fields.h"
#include "pf-driver/softgpu/base/log.h"
#include "pf-driver/softgpu/cp/aql.h"
#include "pf-driver/softgpu/cp/core.h"
#include "pf-driver/softgpu/cp/pm4.h"
#include "pf-driver/softgpu/cp/registers.h"
#include "pf-driver/softgpu/cp/scheduler.h"

namespace vgpu::softgpu::cp {

namespace {

/// Fill byte for poison(). The value is out of range as a queue phase, VMID or kind of wait.
constexpr std::uint8_t kPoison = 0xa5;
/// Largest Queue::stream, in bytes, that load() accepts; far above the limit in transition.cpp.
constexpr std::uint64_t kMaxStream = 1ull << 30;

StepResult step_queue(Core& core, Queue& queue, StepBudget& budget) {
    if (queue.state.phase != QueuePhase::Running)
        return step_transition(core, queue, budget) ? StepResult::Progress : StepResult::Blocked;
    return queue.is_aql() ? run_aql(core, queue, budget) : run_pm4(core, queue, budget);
}

bool waits_for_runtime(const Queue& queue) {
    return queue.state.halt == Halt::AqlScratch || queue.state.halt == Halt::AqlReclaim;
}

/// True if step() could make progress on this queue. Repeats the conditions of step_queue() without
/// its effects: change both functions together.
bool is_runnable(Core& core, Queue& queue) {
    const QueueState& state = queue.state;
    if (!queue.is_mapped()) return false;
    if (state.phase != QueuePhase::Running) return can_step_transition(core, queue);
    if (waits_for_runtime(queue)) return is_answered(core, queue);
    if (state.halt != Halt::None) return false;
    if (state.wait.kind != WaitKind::None) return is_wait_over(core, queue);
    if (state.frame_count != 0) return true;
    return queue.is_aql() ? state.next != state.wptr : stream_left(queue) != 0;
}

/// Waits that can end without a report to the CP, so that only polling detects the end. Valid is
/// not among them, because a producer rings the doorbell after it has written the header.
constexpr std::array kPolled = {
    WaitKind::Memory,      WaitKind::Register, WaitKind::Signals,
    WaitKind::SignalValue, WaitKind::Atomic,   WaitKind::Unmap,
};

bool is_polled(const Queue& queue) {
    if (!queue.is_mapped()) return false;
    return waits_for_runtime(queue) ||
           std::find(kPolled.begin(), kPolled.end(), queue.state.wait.kind) != kPolled.end();
}

/// True if the run list is active or only polling can detect the end of a queue's wait. step()
/// stores the result in has_waits, so that the next step() looks for work.
bool must_poll(const Core& core) {
    return is_run_list_active(core) ||
           std::any_of(core.queues.begin(), core.queues.end(), is_polled);
}

// --- results of groups --------------------------------------------------------------------------

using Return = Dispatcher::Return;

/// The argument `how` of Dispatcher::reclaim() for each value of isa::StopReason. Return::Again
/// puts the group at the end of Dispatch::ready: if a stopped group went to the front, a VF with
/// short quanta would run only this group.
constexpr std::array<Return, 7> kReturns = {
    Return::Again,   // StepBudget
    Return::Again,   // Stopped
    Return::Ended,   // AllWavesEnded
    Return::Again,   // Fault: if no trap handler handles it, the group is dropped with its kernel
    Return::Again,   // IllegalInstruction: as for Fault
    Return::Again,   // Trap
    Return::Halted,  // Halted
};

/// Drops the kernel, then halts its queue with the error. The order ensures that no group of the
/// kernel starts to run after the guest has received the report.
void fail_kernel(Core& core, Dispatch& kernel, std::uint32_t code) {
    Queue& queue = core.queue(kernel.state.queue);
    core.dispatcher.drop(kernel);
    if (queue.is_aql())
        report_queue_error(core, queue, code, Halt::AqlError);
    else
        core.refuse(queue, IH_SOURCE_CP_PRIV_INSTR, code);
}

/// Lets the wave continue after an s_trap that no trap handler takes. The debug trap
/// (llvm.debugtrap) is thus a NOP; for other traps, report_wave_error() then drops the kernel.
void resume_wave(isa::Workgroup& group, std::uint32_t wave) {
    if (wave < group.waves.size()) group.waves[wave].state.phase = isa::WavePhase::Running;
}

/// Logs only if the count of illegal instructions is a power of two, because a guest can cause any
/// number of them.
void log_illegal_instruction(const Core& core, const isa::RunResult& result) {
    if (!std::has_single_bit(core.counters.illegal_instructions)) return;
    log::warn("VF{}: illegal instruction {:#010x} {:#010x} at {:#x}, wave {}: kernel dropped",
              raw(core.spec.vf), result.words[0], result.words[1], result.pc, result.wave);
}

void report_wave_error(Core& core, Dispatch& kernel, const isa::RunResult& result) {
    switch (result.reason) {
        case isa::StopReason::Fault:
            if (result.is_handled) {
                core.count_fault(kernel.state.vmid, result.fault);
                break;
            }
            core.fault(core.queue(kernel.state.queue), kernel.state.vmid, result.fault);
            break;
        case isa::StopReason::IllegalInstruction:
            ++core.counters.illegal_instructions;
            if (result.is_handled) break;
            log_illegal_instruction(core, result);
            fail_kernel(core, kernel, AQL_QUEUE_ERROR_ILLEGAL_INSTRUCTION);
            break;
        case isa::StopReason::Trap:
            fail_kernel(core, kernel, AQL_QUEUE_ERROR_TRAP);
            break;
        default:
            break;
    }
    core.wake();
}

bool is_wave_error(const isa::RunResult& result) {
    return result.reason == isa::StopReason::Fault ||
           result.reason == isa::StopReason::IllegalInstruction ||
           (result.reason == isa::StopReason::Trap && result.trap_id != AQL_TRAP_DEBUG);
}

}  // namespace

CommandProcessor::CommandProcessor(const Spec& spec, regs::RegisterFile& registers,
                                   Services& services, const Clock& clock)
    : core_(std::make_unique<Core>(spec, registers, services, clock)) {
    claim_registers(*core_);
}

CommandProcessor::~CommandProcessor() = default;

// --- packets ------------------------------------------------------------------------------------

bool CommandProcessor::owns_doorbell(DoorbellIndex index) const {
    return std::any_of(core_->queues.begin(), core_->queues.end(),
                       [&](const Queue& queue) { return queue.listens_to(index); });
}

/// A 32-bit doorbell write carries the low half of the write pointer and keeps the high half.
void CommandProcessor::doorbell(DoorbellIndex index, std::uint64_t value, DoorbellWidth width) {
    const auto found = std::find_if(core_->queues.begin(), core_->queues.end(),
                                    [&](const Queue& queue) { return queue.listens_to(index); });
    if (found == core_->queues.end()) return;
    QueueState& state = found->state;
    const bool is_qword = width == DoorbellWidth::Qword;
    const std::uint64_t number = is_qword ? value : join(low32(value), high32(state.wptr));
    if (found->is_aql()) {
        // The value is the index of the last packet. Producers ring in any order, so the pointer
        // never goes back.
        const std::uint64_t wptr = number + 1;
        if (static_cast<std::int64_t>(wptr - state.wptr) > 0) state.wptr = wptr;
    } else {
        state.wptr = number;
    }
    core_->wake();
}

/// Clears needs_check before it looks at the queues, so that a wake() in the meantime sets the flag
/// again and is not lost. The next step begins after the last queue that made progress, so a busy
/// queue cannot starve other queues. Also returns Progress if the budget is spent, because this
/// step may not have reached all queues.
StepResult CommandProcessor::step() {
    Core& core = *core_;
    if (!core.needs_check && !core.has_waits) return StepResult::Idle;
    core.needs_check = false;
    core.has_waiting_restore = false;
    StepBudget budget;
    bool moved = step_run_list(core, budget);
    bool is_blocked = false;
    const std::uint32_t first = core.first_queue;
    for (std::uint32_t i = 0; i < kQueues && !budget.is_spent(); ++i) {
        const std::uint32_t index = (first + i) % kQueues;
        Queue& queue = core.queues[index];
        if (!queue.is_mapped()) continue;
        const StepResult result = step_queue(core, queue, budget);
        is_blocked |= result == StepResult::Blocked;
        if (result != StepResult::Progress) continue;
        moved = true;
        core.first_queue = (index + 1) % kQueues;
    }
    core.has_waits = must_poll(core);
    if (moved || budget.is_spent()) {
        core.needs_check = true;
        return StepResult::Progress;
    }
    return is_blocked ? StepResult::Blocked : StepResult::Idle;
}

bool CommandProcessor::has_work() {
    Core& core = *core_;
    if (core.dispatcher.has_runnable() || core.dispatcher.has_leased_groups()) return true;
    return has_run_list_work(core) ||
           std::any_of(core.queues.begin(), core.queues.end(),
                       [&](Queue& queue) { return is_runnable(core, queue); });
}

bool CommandProcessor::needs_polling() const {
    return must_poll(*core_);
}

// --- time limits --------------------------------------------------------------------------------

void CommandProcessor::begin_wait() {
    if (!core_->waiting_since) core_->waiting_since = core_->now_ns();
}

void CommandProcessor::end_wait() {
    if (core_->waiting_since) core_->postpone(core_->now_ns() - *core_->waiting_since);
    core_->waiting_since.reset();
}

void CommandProcessor::postpone_time_limits(std::uint64_t ns) {
    core_->postpone(ns);
}

// --- work-groups --------------------------------------------------------------------------------

/// Creates the port and the cache of a VMID when the worker first runs a group of the VMID, because
/// a worker runs groups of few VMIDs.
std::optional<GroupLease> CommandProcessor::take_group(std::uint32_t worker,
                                                       std::atomic<bool>& stop) {
    Core& core = *core_;
    assert(worker < core.contexts.size());
    ResidentGroup* resident = core.dispatcher.acquire(stop, launch_exceptions(core));
    if (resident == nullptr) return std::nullopt;
    const Vmid vmid = resident->owner->state.vmid;
    WorkerContext& context = core.contexts[worker];
    std::unique_ptr<mem::Port>& port = context.ports[raw(vmid)];
    if (!port) port = core.services.make_port(vmid);
    std::unique_ptr<isa::DecodeCache>& cache = context.caches[raw(vmid)];
    if (!cache)
        cache = std::make_unique<isa::DecodeCache>(core.code_epoch[raw(vmid)],
                                                   core.code ? &*core.code : nullptr);
    port->clear_fault();
    return GroupLease{resident,
                      &resident->group,
                      port.get(),
                      cache.get(),
                      core.apertures(vmid),
                      core.trap_handler(core.queue(resident->owner->state.queue), vmid),
                      core.wave_sync(vmid),
                      &core.watches,
                      vmid};
}

bool CommandProcessor::has_groups() const {
    return core_->dispatcher.has_runnable();
}

/// Raises the messages before it completes the kernel, so that a guest sees a kernel's interrupts
/// before its signal. Drops the messages of a dropped kernel. reclaim() may free a dropped kernel,
/// so the later code uses the copies `is_dropped` and `queue`.
void CommandProcessor::release(const GroupLease& lease, const isa::RunResult& result,
                               const Messages& messages) {
    Core& core = *core_;
    core.counters.wave_instructions += result.retired;
    Dispatch& kernel = *lease.resident->owner;
    const bool is_dropped = kernel.is_dropped;
    const QueueId queue = kernel.state.queue;
    if (!is_dropped)
        for (const Message& message : messages) core.raise_message(kernel.state.vmid, message);
    if (result.reason == isa::StopReason::Trap) resume_wave(*lease.group, result.wave);
    const Return how = kReturns[static_cast<std::size_t>(result.reason)];
    core.counters.workgroups += how == Return::Ended ? 1 : 0;
    Dispatch* complete = core.dispatcher.reclaim(lease.resident, how);
    if (complete != nullptr)
        complete_kernel(core, *complete);
    else if (!is_dropped && is_wave_error(result))
        report_wave_error(core, kernel, result);
    const bool has_made_room = core.has_waiting_restore && (is_dropped || how == Return::Ended);
    if (has_made_room || core.queue(queue).state.phase == QueuePhase::Stopping) core.wake();
}

void CommandProcessor::invalidate_code(std::uint16_t vmids) {
    core_->invalidate_code(vmids);
}

bool CommandProcessor::has_leased_groups() const {
    return core_->dispatcher.has_leased_groups();
}

// --- management ---------------------------------------------------------------------------------

void CommandProcessor::set_compute_units(std::uint64_t mask) {
    core_->dispatcher.set_compute_units(mask);
}

const Counters& CommandProcessor::counters() const {
    return core_->counters;
}

// --- block --------------------------------------------------------------------------------------

void CommandProcessor::reset() {
    Core& core = *core_;
    core.counters = {};
    core.dispatcher.reset();
    for (Queue& queue : core.queues) {
        queue.state = {};
        queue.free_stream();
    }
    core.scheduler = {};
    core.first_queue = 0;
    core.needs_check = true;
    core.has_waits = false;
    core.has_waiting_restore = false;
    core.watches.clear();
    core.invalidate_code(static_cast<std::uint16_t>(~0u));
}

void CommandProcessor::drain() {
    assert(!has_leased_groups());
}

void CommandProcessor::save(Writer& out) const {
    const Core& core = *core_;
    out.value(core.counters);
    for (const Queue& queue : core.queues) {
        out.value(queue.state);
        out.vector(queue.stream);
        out.value(queue.stream_position);
    }
    out.value(core.scheduler);
    out.value(core.first_queue);
    core.dispatcher.save(out);
}

namespace {

bool is_sound(const Queue& queue) {
    const QueueState& state = queue.state;
    return state.phase <= QueuePhase::Restoring && state.halt <= Halt::AqlReclaim &&
           state.wait.kind <= WaitKind::MoreData && state.wait.vmid < CP_VMIDS &&
           state.frame_count <= state.frames.size() && state.stop <= StopMode::Reset &&
           queue.stream_position <= queue.stream.size() &&
           std::all_of(state.frames.begin(), state.frames.end(), [](const IbFrame& frame) {
               return frame.next <= frame.size && frame.vmid < CP_VMIDS;
           });
}

bool is_sound(const SchedulerState& scheduler) {
    return scheduler.run_list.vmid < CP_VMIDS &&
           (scheduler.has_resources == 0 || raw(scheduler.owner) < kQueues) &&
           (scheduler.run_list.is_active == 0 || scheduler.has_resources != 0) &&
           std::ranges::all_of(scheduler.wave_sync_number,
                               [](std::uint8_t number) { return number <= CP_VMIDS; }) &&
           std::all_of(scheduler.sdma.begin(), scheduler.sdma.end(),
                       [](const SdmaSlot& slot) { return slot.engine < SDMA_ENGINES; });
}

Result<> load_core(Core& core, Reader& in) {
    TRY_VOID(in.value(core.counters));
    for (Queue& queue : core.queues) {
        TRY_VOID(in.value(queue.state));
        TRY_VOID(in.vector(queue.stream, kMaxStream));
        TRY_VOID(in.value(queue.stream_position));
        if (!is_sound(queue)) return fail(EPROTO, "state stream holds an impossible queue");
    }
    TRY_VOID(in.value(core.scheduler));
    if (!is_sound(core.scheduler))
        return fail(EPROTO, "state stream holds an impossible scheduler");
    TRY_VOID(in.value(core.first_queue));
    return core.dispatcher.load(in);
}

}  // namespace

/// Calls suspend() again for queues that were being stopped, because the stream does not hold the
/// dispatcher's suspend flags.
Result<> CommandProcessor::load(Reader& in) {
    Core& core = *core_;
    reset();
    if (Result<> loaded = load_core(core, in); !loaded) {
        reset();
        core.counters = {};
        return loaded;
    }
    core.first_queue %= kQueues;
    decode_watch_registers(core);
    for (const Queue& queue : core.queues) {
        const bool is_suspended =
            queue.state.phase == QueuePhase::Saving ||
            (queue.state.phase == QueuePhase::Stopping && queue.state.is_draining == 0);
        if (is_suspended) core.dispatcher.suspend(queue.id);
    }
    core.wake();
    return {};
}

void CommandProcessor::poison() {
    Core& core = *core_;
    core.dispatcher.reset();
    for (Queue& queue : core.queues) {
        std::ranges::fill(bytes_of(queue.state), std::byte{kPoison});
        queue.free_stream();
    }
    std::ranges::fill(bytes_of(core.scheduler), std::byte{kPoison});
    // The watches are cleared, so that a load() that did not restore them would fail visibly.
    core.watches.clear();
}

}  // namespace vgpu::softgpu::cp
