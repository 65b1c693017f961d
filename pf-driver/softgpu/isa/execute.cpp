// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/isa/execute.h"

#include <immintrin.h>

#include <algorithm>
#include <array>

#include "pf-driver/softgpu/isa/env.h"
#include "pf-driver/softgpu/isa/translate/frame.h"
#include "pf-driver/softgpu/isa/translate/translator.h"

namespace vgpu::softgpu::isa {

namespace {

/// A slice ends after the block in which the wave reaches this number of instructions: enough to
/// hide the cost of a change of waves, few enough that a spinning wave costs its group little.
constexpr u64 kSlice = 256;
/// run() returns when each running wave has ended this number of slices in a row with a sleep
/// (s_sleep) or a wait (ds_gws_*). Such a group probably waits for another group or for the host,
/// so the thread can do other work meanwhile.
constexpr u32 kSleepyRounds = 8;

/// The default of MXCSR: rounds to nearest, masks all exceptions.
constexpr u32 kHostDefault = 0x1f80;
/// Each window of flat addresses has 4 GiB (Apertures).
constexpr u32 kWindowShift = 32;

/// Sets the host's default float mode during run(); restores the caller's float mode afterwards.
class DefaultFloatMode {
public:
    DefaultFloatMode() : before_(_mm_getcsr()) { _mm_setcsr(kHostDefault); }
    ~DefaultFloatMode() { _mm_setcsr(before_); }
    DefaultFloatMode(const DefaultFloatMode&) = delete;
    DefaultFloatMode& operator=(const DefaultFloatMode&) = delete;

private:
    u32 before_;
};

/// The reason why a slice ended. RunEnded: run() ends, and its result is complete.
enum class SliceEnd : u8 { TimeUp, Slept, PhaseChanged, Stopped, RunEnded };

/// True if handlers need no checks: in the bits of mode::kUnusual, MODE has the default value, and
/// the kernel has all VGPRs that the block names.
bool needs_no_checks(const WaveState& wave, const Block& block) {
    return (wave.mode & mode::kUnusual) == mode::kFloatDefault &&
           block.vgprs_needed <= wave.vgpr_count;
}

/// True if the instruction does not count as executed and the pc stays at it. Such an instruction
/// has changed no register, but a store or an atomic may have written memory or LDS for some lanes.
bool has_failed(Outcome outcome) {
    return outcome == Outcome::Fault || outcome == Outcome::Illegal;
}

/// One call of run().
class Runner {
public:
    Runner(Workgroup& group, const RunContext& context) : group_(group), context_(context) {}

    RunResult run();

private:
    SliceEnd run_slice(Wave& wave, u64 limit);
    Outcome run_next(Env& env, Block& block, u64 slice_left, u64 limit);
    Outcome run_block(Env& env, const Block& block, u64 limit);
    Outcome run_translated(Env& env, const Block& block, u64 slice_left, u64 limit);
    Outcome advance_pc(Env& env, Outcome outcome) const;
    void add_retired(WaveState& wave, u64 instructions) {
        wave.retired += instructions;
        result_.retired += instructions;
    }
    SliceEnd end_run(const Env& env, Outcome outcome);
    SliceEnd end_at_fetch_fault(WaveState& wave);
    bool enter_trap(WaveState& wave, u64 pc, u32 trap_id) const;
    void release_barrier();
    [[nodiscard]] bool pick_wave();
    [[nodiscard]] u32 running_waves() const;
    [[nodiscard]] bool stop_requested() const {
        return context_.stop.load(std::memory_order_relaxed);
    }
    [[nodiscard]] const AddressWatches* watches() const {
        const AddressWatches* const all = context_.watches;
        return all != nullptr && all->is_watched(context_.vmid) ? all : nullptr;
    }
    RunResult finish(StopReason reason) {
        result_.reason = reason;
        return result_;
    }

    Workgroup& group_;
    const RunContext& context_;
    RunResult result_;
    /// The last instruction of the last run_block(), or the one whose handler ended the last
    /// run_translated().
    const Instruction* last_ = nullptr;
};

/// Interprets at most `limit` instructions of a block, then sets the pc.
Outcome Runner::run_block(Env& env, const Block& block, u64 limit) {
    const std::size_t count = std::min<u64>(block.code.size(), limit);
    const Instruction* i = block.code.data();
    const Instruction* const end = i + count;
    const bool is_unchecked = needs_no_checks(env.wave, block);
    Outcome outcome = Outcome::Next;
    for (; i != end; ++i) {
        outcome = is_unchecked ? i->handler(env, *i) : run_checked(env, *i);
        if (outcome != Outcome::Next) break;
    }
    last_ = outcome == Outcome::Next ? i - 1 : i;
    add_retired(env.wave,
                static_cast<u64>(last_ - block.code.data()) + (has_failed(outcome) ? 0 : 1));
    return advance_pc(env, outcome);
}

/// Sets the pc after the instruction `last_` has had the given outcome. The pc stays at an
/// instruction that has failed. After a jump, the pc is set already. Otherwise the pc moves to the
/// next instruction. Returns the outcome without the jump: Next for Jump, Yield for JumpAndYield.
Outcome Runner::advance_pc(Env& env, Outcome outcome) const {
    if (outcome == Outcome::Jump) return Outcome::Next;
    if (outcome == Outcome::JumpAndYield) return Outcome::Yield;
    env.wave.pc = has_failed(outcome) ? last_->pc : last_->pc + last_->size;
    return outcome;
}

/// Runs translated code, beginning with `block`, until a handler has an outcome other than Next,
/// the next block has no translated code, or the checks at the head of a block fail, for example
/// because the slice ends (BlockWriter::write_head() in translator.cpp). Blocks run as a whole, so
/// the code stops early enough that its final block does not exceed `limit`.
Outcome Runner::run_translated(Env& env, const Block& block, u64 slice_left, u64 limit) {
    DecodeCache& cache = context_.cache;
    const u64 available = std::min(slice_left, limit - (DecodeCache::kBlockInstructions - 1));
    Frame frame{.env = &env,
                .wave = &env.wave,
                .vgprs = env.v,
                .instructions_left = static_cast<i64>(available),
                .stop = &context_.stop,
                .epoch = &cache.epoch(),
                .valid_epoch = &cache.valid_epoch(),
                .vgpr_count = env.vgprs,
                .pages = context_.port.entries(),
                .page_epoch = &context_.port.epoch(),
                .shared_window = context_.apertures.shared_base >> kWindowShift,
                .private_window = context_.apertures.private_base >> kWindowShift,
                .lds = env.lds,
                .lds_bytes = env.lds_bytes};
    const Outcome outcome = cache.translator()->run(frame, block.head);
    cache.record_exit(frame.link, env.wave.pc);
    u64 done = static_cast<u64>(static_cast<i64>(available) - frame.instructions_left);
    if (frame.last != nullptr) {
        last_ = frame.last;
        done += static_cast<u64>(frame.last - frame.first) + (has_failed(outcome) ? 0 : 1);
    }
    add_retired(env.wave, done);
    return frame.last != nullptr ? advance_pc(env, outcome) : Outcome::Next;
}

/// Makes the wave enter its trap handler. TTMP0 and TTMP1 receive `pc` and the trap id (0: a fault,
/// an illegal instruction or an exception). The fields PC_REWIND and HT of TTMP1 stay 0, because
/// every trap is precise and no trap comes from the host (Vega ISA manual, "Trap and Exception
/// registers"). False if there is no handler, if STATUS.TRAP_EN is clear, or if the wave is in the
/// handler already.
bool Runner::enter_trap(WaveState& wave, u64 pc, u32 trap_id) const {
    constexpr unsigned kTrapIdShift = 48;
    const bool may_enter = wave.is_trap_enabled != 0 && wave.is_privileged == 0;
    if (!may_enter || context_.trap.base == 0) return false;
    wave.set_pair(ScalarReg::Ttmp0, pc | (u64{trap_id} << kTrapIdShift));
    wave.is_privileged = 1;
    wave.pc = context_.trap.base;
    return true;
}

/// The TRAPSTS bits of a fault or an illegal instruction; 0 for any other outcome.
/// (run_with_exceptions() sets the bits of Outcome::Exception.)
u32 exception_bits(Outcome outcome) {
    if (outcome == Outcome::Illegal) return trapsts::kIllegalInstruction;
    return outcome == Outcome::Fault ? trapsts::kMemoryViolation | trapsts::kXnackError : 0;
}

/// Fills the result and ends run(). A fault or an illegal instruction ends run() even if the wave
/// enters its trap handler, so that the command processor can report the error.
SliceEnd Runner::end_run(const Env& env, Outcome outcome) {
    static constexpr std::array<std::pair<Outcome, StopReason>, 3> kReasons{{
        {Outcome::Fault, StopReason::Fault},
        {Outcome::Illegal, StopReason::IllegalInstruction},
        {Outcome::Trap, StopReason::Trap},
    }};
    const auto is_outcome = [&](const auto& row) { return row.first == outcome; };
    result_.reason = std::ranges::find_if(kReasons, is_outcome)->second;
    result_.wave = env.wave.wave_in_group;
    result_.pc = env.wave.pc;
    result_.words = last_->words;
    if (outcome == Outcome::Trap) {
        env.wave.phase = WavePhase::Halted;
        return SliceEnd::RunEnded;
    }
    env.wave.trapsts |= exception_bits(outcome);
    result_.is_handled = enter_trap(env.wave, last_->pc, 0);
    return SliceEnd::RunEnded;
}

/// Ends run() because the code at the pc cannot be read. If the port has no fault, the page is
/// mapped, but Port::read_indirect() has failed; the result then reports OutOfRange.
SliceEnd Runner::end_at_fetch_fault(WaveState& wave) {
    result_.reason = StopReason::Fault;
    result_.wave = wave.wave_in_group;
    result_.pc = wave.pc;
    result_.fault = context_.port.fault();
    if (!context_.port.has_fault())
        result_.fault = {mem::FaultKind::OutOfRange, mem::Access::Execute, GpuVa{wave.pc}};
    context_.port.clear_fault();
    wave.trapsts |= exception_bits(Outcome::Fault);
    result_.is_handled = enter_trap(wave, wave.pc, 0);
    return SliceEnd::RunEnded;
}

/// Runs a block, as translated code if possible. If the translated code returns without having run
/// an instruction, for example because it was made for another MODE, the interpreter runs the
/// block. Each call of run_next() reads the address watches. So a changed watch takes effect at the
/// latest at the interpreter's next block, or when the translated code that runs now has returned.
Outcome Runner::run_next(Env& env, Block& block, u64 slice_left, u64 limit) {
    DecodeCache& cache = context_.cache;
    env.watches = watches();
    if (cache.translator() == nullptr || env.watches != nullptr ||
        limit < DecodeCache::kBlockInstructions || !needs_no_checks(env.wave, block))
        return run_block(env, block, limit);
    if (block.head == nullptr) cache.heat(block, env.wave.mode, context_.stop);
    cache.link_to(block);
    if (block.head != nullptr) {
        const u64 before = result_.retired;
        const Outcome outcome = run_translated(env, block, slice_left, limit);
        if (result_.retired != before || outcome != Outcome::Next) return outcome;
    }
    return run_block(env, block, limit);
}

/// Runs a wave for at most `limit` instructions. The slice ends at the latest with the block in
/// which the wave reaches kSlice instructions. Reads the stop flag before each block that the
/// interpreter runs; translated code reads the flag in the head of each block.
SliceEnd Runner::run_slice(Wave& wave, u64 limit) {
    Env env{wave.state,
            wave.state.scalar.data(),
            wave.vgprs.data(),
            wave.state.vgpr_count,
            group_.lds.data(),
            static_cast<u32>(group_.lds.size()),
            group_,
            context_,
            result_};
    const u64 retired_before = result_.retired;
    const u64 retired_limit = retired_before + std::min(limit, kSlice);
    while (result_.retired < retired_limit) {
        if (stop_requested()) return SliceEnd::Stopped;
        Block* const block = context_.cache.find(wave.state.pc, context_.port);
        if (block == nullptr) return end_at_fetch_fault(wave.state);
        const Outcome outcome = run_next(env, *block, retired_limit - result_.retired,
                                         retired_before + limit - result_.retired);
        if (outcome == Outcome::Next) continue;
        if (outcome == Outcome::Exception) {
            // The wave continues with or without a trap handler; run() reports no exception.
            (void)enter_trap(wave.state, wave.state.pc, 0);
            continue;
        }
        const bool is_trap = outcome == Outcome::Trap;
        if (is_trap && enter_trap(wave.state, last_->pc, result_.trap_id)) continue;
        if (outcome != Outcome::Yield) return end_run(env, outcome);
        if (env.changed_phase) return SliceEnd::PhaseChanged;
        return env.slept ? SliceEnd::Slept : SliceEnd::TimeUp;
    }
    return SliceEnd::TimeUp;
}

/// Releases the waves at the barrier if no wave still has to arrive. A halted wave has to arrive;
/// an ended wave does not (Vega ISA manual, S_BARRIER).
void Runner::release_barrier() {
    const auto must_arrive = [](const Wave& wave) {
        return wave.state.phase == WavePhase::Running || wave.state.phase == WavePhase::Halted;
    };
    if (std::ranges::any_of(group_.waves, must_arrive)) return;
    for (Wave& wave : group_.waves)
        if (wave.state.phase == WavePhase::AtBarrier) wave.state.phase = WavePhase::Running;
}

u32 Runner::running_waves() const {
    const auto is_running = [](const Wave& w) { return w.state.phase == WavePhase::Running; };
    return static_cast<u32>(std::ranges::count_if(group_.waves, is_running));
}

/// Searches for a running wave, beginning with next_wave, and stores its index in next_wave. False
/// if no wave is running.
bool Runner::pick_wave() {
    const auto count = static_cast<u32>(group_.waves.size());
    for (u32 k = 0; k < count; ++k) {
        const u32 candidate = (group_.next_wave + k) % count;
        if (group_.waves[candidate].state.phase != WavePhase::Running) continue;
        group_.next_wave = candidate;
        return true;
    }
    return false;
}

/// Runs slices, one wave after another. Checks RunContext::max_instructions and the stop flag
/// before each slice.
RunResult Runner::run() {
    const DefaultFloatMode float_mode;
    u32 sleepy_slices = 0;
    for (;;) {
        if (!pick_wave())
            return finish(group_.ended() ? StopReason::AllWavesEnded : StopReason::Halted);
        if (result_.retired >= context_.max_instructions) return finish(StopReason::Budget);
        if (stop_requested()) return finish(StopReason::Stopped);
        const u64 left = context_.max_instructions - result_.retired;
        const SliceEnd why = run_slice(group_.waves[group_.next_wave], left);
        if (why == SliceEnd::Stopped) return finish(StopReason::Stopped);
        if (why == SliceEnd::RunEnded) return result_;
        if (why == SliceEnd::PhaseChanged) release_barrier();
        group_.next_wave = (group_.next_wave + 1) % static_cast<u32>(group_.waves.size());
        sleepy_slices = why == SliceEnd::Slept ? sleepy_slices + 1 : 0;
        result_.only_sleepers = sleepy_slices != 0 && sleepy_slices >= running_waves();
        if (sleepy_slices != 0 && sleepy_slices >= running_waves() * kSleepyRounds)
            return finish(StopReason::Budget);
    }
}

HandlerTable make_table(Variant which) {
    HandlerTable table{};
    fill_scalar(table);
    fill_format(table);
    fill_wave_sync(table);
    if (which == Variant::Avx2) {
        avx2::fill_vector(table);
        avx2::fill_compare(table);
        avx2::fill_memory(table);
        avx2::fill_lds(table);
        avx2::fill_scalar_memory(table);
    } else {
        baseline::fill_vector(table);
        baseline::fill_compare(table);
        baseline::fill_memory(table);
        baseline::fill_lds(table);
        baseline::fill_scalar_memory(table);
    }
    return table;
}

}  // namespace

RunResult run(Workgroup& group, const RunContext& context) {
    if (group.waves.empty()) {
        RunResult nothing;
        nothing.reason = StopReason::AllWavesEnded;
        return nothing;
    }
    return Runner(group, context).run();
}

bool has_variant(Variant which) {
    if (which == Variant::Baseline) return true;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

Variant variant() {
    static const Variant chosen = has_variant(Variant::Avx2) ? Variant::Avx2 : Variant::Baseline;
    return chosen;
}

const HandlerTable& handlers(Variant which) {
    static const HandlerTable baseline_table = make_table(Variant::Baseline);
    static const HandlerTable avx2_table = make_table(Variant::Avx2);
    return which == Variant::Avx2 ? avx2_table : baseline_table;
}

}  // namespace vgpu::softgpu::isa
