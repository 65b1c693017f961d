// SPDX-License-Identifier: MIT
//
// Execute unit: scalar arithmetic, branches, program control. Both variants (decode.h) share one
// build of this file: it has no loops over lanes, so AVX2 would not make it faster.
#define VGPU_ISA_VARIANT scalar_unit
#include "pf-driver/softgpu/isa/lane_math.h"

namespace vgpu::softgpu::isa::scalar_unit {

namespace {

// ---- operands

template <class T> VGPU_INLINE T read(const Env& env, const Operand& operand) {
    if constexpr (std::is_same_v<T, none>)
        return {};
    else if constexpr (sizeof(T) == 8)
        return static_cast<T>(env.scalar64(operand));
    else
        return static_cast<T>(env.scalar32(operand));
}

template <class T> VGPU_INLINE T read_result(const Env& env, u32 reg) {
    if constexpr (sizeof(T) == 8)
        return static_cast<T>(env.pair(reg));
    else
        return static_cast<T>(env.s[reg]);
}

template <class T> VGPU_INLINE void write_result(Env& env, u32 reg, T value) {
    if constexpr (sizeof(T) == 8)
        env.set_pair(reg, static_cast<u64>(value));
    else
        env.s[reg] = static_cast<u32>(value);
}

template <class M> Outcome scalar2(Env& env, const Instruction& i) {
    const auto a = read<typename M::A>(env, i.src[0]);
    const auto b = read<typename M::B>(env, i.src[1]);
    const u32 scc = env.wave.scc;
    const auto r = static_cast<typename M::D>(M::value(a, b, scc));
    write_result(env, i.dst, r);
    env.wave.scc = static_cast<u8>(M::condition(a, b, r, scc));
    return Outcome::Next;
}

template <class M> Outcome scalar1(Env& env, const Instruction& i) {
    const auto a = read<typename M::A>(env, i.src[0]);
    const auto d = read_result<typename M::D>(env, i.dst);
    const u32 scc = env.wave.scc;
    const auto r = static_cast<typename M::D>(M::value(a, d, scc));
    write_result(env, i.dst, r);
    env.wave.scc = static_cast<u8>(M::condition(a, r, scc));
    return Outcome::Next;
}

/// The destination receives the old EXEC (S_*_SAVEEXEC) or the new EXEC (S_*_WREXEC).
template <class M> Outcome exec_op(Env& env, const Instruction& i) {
    const u64 a = env.scalar64(i.src[0]);
    const u64 exec = env.exec();
    const u64 r = M::value(a, exec);
    env.set_pair(i.dst, M::kSavesOld ? exec : r);
    env.set_exec(r);
    env.wave.scc = r != 0 ? 1 : 0;
    return Outcome::Next;
}

template <class M> Outcome scalar_compare(Env& env, const Instruction& i) {
    const auto a = read<typename M::A>(env, i.src[0]);
    const auto b = read<typename M::B>(env, i.src[1]);
    env.wave.scc = M::holds(a, b) ? 1 : 0;
    return Outcome::Next;
}

template <class M> Outcome constant_op(Env& env, const Instruction& i) {
    const u32 d = env.s[i.dst];
    const u32 scc = env.wave.scc;
    const u32 r = static_cast<u32>(M::value(d, i.imm, scc));
    env.wave.scc = static_cast<u8>(M::condition(d, i.imm, r, scc));
    env.s[i.dst] = r;
    return Outcome::Next;
}

template <class M> Outcome constant_compare(Env& env, const Instruction& i) {
    const auto d = static_cast<typename M::T>(env.s[i.dst]);
    env.wave.scc = M::holds(d, i.imm, static_cast<u16>(i.imm)) ? 1 : 0;
    return Outcome::Next;
}

// ---- program control

/// Address of the instruction after `i`.
u64 next_pc(const Instruction& i) {
    return i.pc + i.size;
}

/// Masks the target: instruction addresses have 48 bits and are multiples of 4.
Outcome jump(Env& env, u64 to) {
    env.wave.pc = to & 0xfffffffffffcu;
    return Outcome::Jump;
}

template <class M> Outcome branch(Env& env, const Instruction& i) {
    const bool taken = M::holds(env.wave.scc, env.vcc(), env.exec());
    return jump(env, taken ? next_pc(i) + static_cast<u64>(i64{i.imm} * 4) : next_pc(i));
}

// A fork (s_cbranch_g_fork, s_cbranch_i_fork) splits the active lanes into two paths. The path with
// fewer lanes runs first; if both have the same number, the path at the fork's target does. The
// fork saves the lanes and the address of the second path in four scalar registers, which are an
// entry of the fork stack. MODE.CSP is the number of entries.

constexpr u32 kForkRegisters = 4, kForkBits = 7;

u32 fork_depth(const Env& env) {
    return env.wave.mode >> mode::kForkShift;
}

void set_fork_depth(Env& env, u32 depth) {
    constexpr u32 other_bits = (1u << mode::kForkShift) - 1;
    env.wave.mode = (env.wave.mode & other_bits) | ((depth & kForkBits) << mode::kForkShift);
}

/// Lanes whose bit in `condition` is set go to `target`, other lanes to the next instruction. If
/// only one path has lanes, jumps to that path and saves no entry; if EXEC is 0, jumps to `target`.
Outcome fork(Env& env, const Instruction& i, u64 condition, u64 target) {
    const u64 pass = condition & env.exec();
    const u64 fail = ~condition & env.exec();
    if (fail == 0) return jump(env, target);
    if (pass == 0) return jump(env, next_pc(i));
    const bool fail_first = std::popcount(fail) < std::popcount(pass);
    const u32 entry = fork_depth(env) * kForkRegisters;
    env.set_pair(entry, fail_first ? pass : fail);
    env.set_pair(entry + 2, fail_first ? target : next_pc(i));
    set_fork_depth(env, fork_depth(env) + 1);
    env.set_exec(fail_first ? fail : pass);
    return jump(env, fail_first ? next_pc(i) : target);
}

Outcome do_g_fork(Env& env, const Instruction& i) {
    return fork(env, i, env.scalar64(i.src[0]), env.scalar64(i.src[1]));
}

Outcome do_i_fork(Env& env, const Instruction& i) {
    return fork(env, i, env.pair(i.dst), next_pc(i) + static_cast<u64>(i64{i.imm} * 4));
}

/// When the first path arrives at the join, continues with the saved path. When the saved path
/// arrives, continues after the join. Source 0 holds the number of entries before the fork; if
/// fork_depth() differs, the saved path must still run.
Outcome do_join(Env& env, const Instruction& i) {
    if (fork_depth(env) == (env.scalar32(i.src[0]) & kForkBits)) return jump(env, next_pc(i));
    set_fork_depth(env, fork_depth(env) - 1);
    const u32 entry = fork_depth(env) * kForkRegisters;
    env.set_exec(env.pair(entry));
    return jump(env, env.pair(entry + 2));
}

/// Returns from the trap handler. If the handler has set STATUS.HALT, the wave halts now. Illegal
/// outside a trap handler.
Outcome do_rfe(Env& env, const Instruction& i) {
    if (env.wave.is_privileged == 0) return Outcome::Illegal;
    const Outcome jumped = jump(env, env.scalar64(i.src[0]) & ~u64{3});
    env.wave.is_privileged = 0;
    if (env.wave.is_halting == 0) return jumped;
    env.wave.is_halting = 0;
    env.wave.phase = WavePhase::Halted;
    env.changed_phase = true;
    return Outcome::JumpAndYield;
}

Outcome do_getpc(Env& env, const Instruction& i) {
    env.set_pair(i.dst, next_pc(i));
    return Outcome::Next;
}

Outcome do_setpc(Env& env, const Instruction& i) {
    return jump(env, env.scalar64(i.src[0]));
}

Outcome do_swappc(Env& env, const Instruction& i) {
    const u64 to = env.scalar64(i.src[0]);
    env.set_pair(i.dst, next_pc(i));
    return jump(env, to);
}

Outcome do_call(Env& env, const Instruction& i) {
    env.set_pair(i.dst, next_pc(i));
    return jump(env, next_pc(i) + static_cast<u64>(i64{i.imm} * 4));
}

/// Changes the wave's phase and ends the wave's slice (execute.h). The run loop then checks the
/// group's barrier.
Outcome change_phase(Env& env, WavePhase phase) {
    env.wave.phase = phase;
    env.changed_phase = true;
    return Outcome::Yield;
}

Outcome do_endpgm(Env& env, const Instruction&) {
    return change_phase(env, WavePhase::Ended);
}
Outcome do_setkill(Env& env, const Instruction& i) {
    return (i.imm & 1) != 0 ? change_phase(env, WavePhase::Ended) : Outcome::Next;
}
Outcome do_barrier(Env& env, const Instruction&) {
    return change_phase(env, WavePhase::AtBarrier);
}

/// In the trap handler, s_sethalt sets or clears STATUS.HALT, which takes effect when the handler
/// returns.
Outcome do_sethalt(Env& env, const Instruction& i) {
    if (env.wave.is_privileged != 0) env.wave.is_halting = static_cast<u8>(i.imm & 1);
    if ((i.imm & 1) == 0 || env.wave.is_privileged != 0) return Outcome::Yield;
    return change_phase(env, WavePhase::Halted);
}

Outcome do_sleep(Env& env, const Instruction&) {
    env.slept = true;
    return Outcome::Yield;
}

Outcome do_setprio(Env& env, const Instruction& i) {
    env.wave.priority = static_cast<u8>(i.imm & 3);
    return Outcome::Next;
}

constexpr i32 kMessageMask = 0xf, kMessageInterrupt = 1, kMessageGetDoorbell = 10;
constexpr u32 kDoorbellMask = 0x3ff;

Outcome do_sendmsg(Env& env, const Instruction& i) {
    const i32 message = i.imm & kMessageMask;
    if (message == kMessageInterrupt) env.context.messages.interrupt_from(env.wave, env.m0());
    // The doorbell id goes to EXEC_LO. Before the message, the trap handler sets bit 31 of EXEC_LO;
    // after the message, it polls until that bit is clear.
    if (message == kMessageGetDoorbell)
        env.s[static_cast<u32>(ScalarReg::Exec)] = env.context.trap.doorbell_id & kDoorbellMask;
    return i.op == Op::s_sendmsghalt ? change_phase(env, WavePhase::Halted) : Outcome::Next;
}

Outcome do_trap(Env& env, const Instruction& i) {
    env.result.trap_id = static_cast<u32>(i.imm) & 0xff;
    return Outcome::Trap;
}

/// Ends the block, so that the run loop looks up the next block and fetches fresh code.
Outcome do_icache_inv(Env& env, const Instruction& i) {
    env.context.cache.invalidate_later();
    return jump(env, next_pc(i));
}

// ---- register addressing

Outcome do_movrels(Env& env, const Instruction& i) {
    const bool wide = i.op == Op::s_movrels_b64;
    const u64 from = u64{i.src[0].value} + env.m0();
    const bool inside =
        i.src[0].kind == OperandKind::Scalar && from + (wide ? 1 : 0) < enc::kScalars;
    if (!inside) return Outcome::Illegal;
    const u32 reg = static_cast<u32>(from);
    if (wide)
        env.set_pair(i.dst, env.pair(reg));
    else
        env.s[i.dst] = env.s[reg];
    return Outcome::Next;
}

Outcome do_movreld(Env& env, const Instruction& i) {
    const bool wide = i.op == Op::s_movreld_b64;
    const u64 to = u64{i.dst} + env.m0();
    if (to + (wide ? 1 : 0) >= enc::kScalars) return Outcome::Illegal;
    const u32 reg = static_cast<u32>(to);
    if (wide)
        env.set_pair(reg, env.scalar64(i.src[0]));
    else
        env.s[reg] = env.scalar32(i.src[0]);
    return Outcome::Next;
}

constexpr u32 kIndexBits = 0xff, kIndexModeShift = 12, kIndexModeBits = 0xfu << kIndexModeShift;

void set_m0(Env& env, u32 clear, u32 set) {
    u32& m0 = env.s[static_cast<u32>(ScalarReg::M0)];
    m0 = (m0 & ~clear) | set;
}

Outcome do_set_gpr_idx_on(Env& env, const Instruction& i) {
    const u32 which = static_cast<u32>(i.imm & 0xf) << kIndexModeShift;
    set_m0(env, kIndexBits | kIndexModeBits, (env.scalar32(i.src[0]) & kIndexBits) | which);
    env.wave.mode |= mode::kGprIndex;
    return jump(env, next_pc(i));
}

Outcome do_set_gpr_idx_off(Env& env, const Instruction& i) {
    env.wave.mode &= ~mode::kGprIndex;
    return jump(env, next_pc(i));
}

Outcome do_set_gpr_idx_mode(Env& env, const Instruction& i) {
    set_m0(env, kIndexModeBits, static_cast<u32>(i.imm & 0xf) << kIndexModeShift);
    return Outcome::Next;
}

Outcome do_set_gpr_idx_idx(Env& env, const Instruction& i) {
    set_m0(env, kIndexBits, env.scalar32(i.src[0]) & kIndexBits);
    return Outcome::Next;
}

/// Sets or clears VSKIP. While VSKIP is set, vector instructions, including those of vector memory
/// and LDS, do nothing.
Outcome do_setvskip(Env& env, const Instruction& i) {
    const u32 bits = env.scalar32(i.src[0]);
    const bool skips = ((bits >> (env.scalar32(i.src[1]) & 31)) & 1) != 0;
    env.wave.mode = (env.wave.mode & ~mode::kSkipVector) | (skips ? mode::kSkipVector : 0);
    return jump(env, next_pc(i));
}

// ---- hardware registers

/// The register numbers of s_getreg and s_setreg.
enum class HwReg : u32 {
    Mode = 1,
    Status = 2,
    TrapSts = 3,
    HwId = 4,
    GprAlloc = 5,
    LdsAlloc = 6,
    IbSts = 7,
    ShMemBases = 15,
    TbaLo = 16,
    TbaHi = 17,
    TmaLo = 18,
    TmaHi = 19,
};

/// STATUS register fields; SCC is bit 0.
namespace status {
constexpr u32 kPriorityShift = 3, kPriority = 3u << kPriorityShift, kPrivileged = 1u << 5,
              kTrapEnable = 1u << 6, kExecZero = 1u << 9, kVccZero = 1u << 10, kInTg = 1u << 11,
              kHalt = 1u << 13, kValid = 1u << 16;
}
constexpr u32 kReplayShift = 15, kReplayBits = 0x3f;  // IB_STS.FIRST_REPLAY and RCNT
constexpr u32 kTrapEnableOfTba = 1u << 31;
constexpr unsigned kTrapAddressShift = 8;

/// The STATUS register. It is computed at each read, so that EXECZ and VCCZ are never stale.
u32 status_of(const Env& env) {
    const WaveState& wave = env.wave;
    u32 value = status::kValid | wave.scc | (u32{wave.priority} << status::kPriorityShift);
    if (wave.is_privileged != 0) value |= status::kPrivileged;
    if (wave.is_trap_enabled != 0) value |= status::kTrapEnable;
    if (env.exec() == 0) value |= status::kExecZero;
    if (env.vcc() == 0) value |= status::kVccZero;
    if (env.group.waves.size() > 1) value |= status::kInTg;
    if (wave.is_halting != 0) value |= status::kHalt;
    return value;
}

/// Writes the fields of STATUS that a trap handler may change.
void set_status(WaveState& wave, u32 value) {
    wave.scc = static_cast<u8>(value & 1);
    wave.priority = static_cast<u8>((value & status::kPriority) >> status::kPriorityShift);
    wave.is_trap_enabled = (value & status::kTrapEnable) != 0 ? 1 : 0;
    wave.is_halting = (value & status::kHalt) != 0 ? 1 : 0;
}

/// A word of TBA (address of the trap handler) or TMA (address of its memory), in units of 256
/// bytes. 0 outside a trap handler.
u32 trap_register(const Env& env, HwReg which) {
    if (env.wave.is_privileged == 0) return 0;
    const TrapHandler& trap = env.context.trap;
    const u64 base = trap.base >> kTrapAddressShift;
    const u64 memory = trap.memory >> kTrapAddressShift;
    switch (which) {
        case HwReg::TbaLo:
            return static_cast<u32>(base);
        case HwReg::TbaHi:
            return static_cast<u32>(base >> 32) | kTrapEnableOfTba;
        case HwReg::TmaLo:
            return static_cast<u32>(memory);
        default:
            return static_cast<u32>(memory >> 32);
    }
}

/// The value of a hardware register; 0 for a register that softgpu does not have. GPR_ALLOC holds
/// VGPR_SIZE (blocks of 4 VGPRs, minus 1) and SGPR_SIZE (blocks of 16 SGPRs, minus 1). LDS_ALLOC
/// holds the size of LDS in blocks of 512 bytes. SH_MEM_BASES holds bits 63:48 of the addresses of
/// the windows for flat instructions (Apertures in execute.h): scratch in the low half, LDS in the
/// high half.
u32 read_register(const Env& env, HwReg which) {
    switch (which) {
        case HwReg::Mode:
            return env.wave.mode;
        case HwReg::Status:
            return status_of(env);
        case HwReg::TrapSts:
            return env.wave.trapsts;
        case HwReg::HwId:
            return env.wave.hw_id;
        case HwReg::GprAlloc:
            return (((env.vgprs / 4 - 1) & 0x3f) << 8) | (u32{env.wave.sgpr_blocks} << 24);
        case HwReg::LdsAlloc:
            return ((env.lds_bytes / 512) & 0x1ff) << 12;
        case HwReg::IbSts:
            return u32{env.wave.replay} << kReplayShift;
        case HwReg::TbaLo:
        case HwReg::TbaHi:
        case HwReg::TmaLo:
        case HwReg::TmaHi:
            return trap_register(env, which);
        case HwReg::ShMemBases:
            return static_cast<u32>(env.context.apertures.private_base >> 48) |
                   (static_cast<u32>(env.context.apertures.shared_base >> 48) << 16);
        default:
            return 0;
    }
}

struct RegisterField {
    HwReg which;
    u32 first;  ///< the field's lowest bit
    u32 mask;   ///< a one for each bit of the field, from bit 0 on
};

/// Decodes SIMM16 of s_getreg and s_setreg: size - 1 in bits 15:11, first bit in 10:6, register in
/// 5:0 (Vega ISA manual, S_GETREG_B32).
RegisterField register_field(const Instruction& i) {
    const u32 code = static_cast<u32>(i.imm);
    const u32 count = ((code >> 11) & 31) + 1;
    const u32 mask = count == 32 ? ~0u : (1u << count) - 1;
    return {static_cast<HwReg>(code & 0x3f), (code >> 6) & 31, mask};
}

Outcome do_getreg(Env& env, const Instruction& i) {
    const RegisterField f = register_field(i);
    env.s[i.dst] = (read_register(env, f.which) >> f.first) & f.mask;
    return Outcome::Next;
}

/// Programs may write MODE and TRAPSTS; trap handlers may also write some fields of STATUS
/// (set_status()) and of IB_STS (FIRST_REPLAY, RCNT). All other writes do nothing.
Outcome write_register(Env& env, const Instruction& i, u32 value) {
    const RegisterField f = register_field(i);
    const u32 mask = f.mask << f.first;
    const u32 result = (read_register(env, f.which) & ~mask) | ((value << f.first) & mask);
    const bool is_privileged = env.wave.is_privileged != 0;
    if (f.which == HwReg::Mode) env.wave.mode = result;
    if (f.which == HwReg::TrapSts) env.wave.trapsts = result;
    if (f.which == HwReg::Status && is_privileged) set_status(env.wave, result);
    if (f.which == HwReg::IbSts && is_privileged)
        env.wave.replay = static_cast<u8>((result >> kReplayShift) & kReplayBits);
    return jump(env, next_pc(i));
}

Outcome do_setreg(Env& env, const Instruction& i) {
    return write_register(env, i, env.s[i.dst]);
}
Outcome do_setreg_imm(Env& env, const Instruction& i) {
    return write_register(env, i, i.src[0].value);
}

Outcome do_illegal(Env&, const Instruction&) {
    return Outcome::Illegal;
}

// ---- the rows of ops/*.def: a struct for each (see VGPU_HANDLER in env.h)

#define S2(n, code, d_type, a_type, b_type, expression, scc_expression)               \
    struct n {                                                                        \
        static constexpr Handler kHandler = &scalar2<n>;                              \
        using D = d_type;                                                             \
        using A = a_type;                                                             \
        using B = b_type;                                                             \
        VGPU_INLINE static auto value(VGPU_ANY A a, VGPU_ANY B b, VGPU_ANY u32 scc) { \
            return expression;                                                        \
        }                                                                             \
        VGPU_INLINE static u32 condition(VGPU_ANY A a, VGPU_ANY B b, VGPU_ANY D r,    \
                                         VGPU_ANY u32 scc) {                          \
            return static_cast<u32>(scc_expression);                                  \
        }                                                                             \
    };
#define S1(n, code, d_type, a_type, expression, scc_expression)                          \
    struct n {                                                                           \
        static constexpr Handler kHandler = &scalar1<n>;                                 \
        using D = d_type;                                                                \
        using A = a_type;                                                                \
        VGPU_INLINE static auto value(VGPU_ANY A a, VGPU_ANY D d, VGPU_ANY u32 scc) {    \
            return expression;                                                           \
        }                                                                                \
        VGPU_INLINE static u32 condition(VGPU_ANY A a, VGPU_ANY D r, VGPU_ANY u32 scc) { \
            return static_cast<u32>(scc_expression);                                     \
        }                                                                                \
    };
#define SX2(n, code, d, a, b, f) VGPU_HANDLER(n, f)
#define VGPU_EXEC(n, expression, saves)                                      \
    struct n {                                                               \
        static constexpr Handler kHandler = &exec_op<n>;                     \
        static constexpr bool kSavesOld = saves;                             \
        VGPU_INLINE static u64 value(u64 a, u64 exec) { return expression; } \
    };
#define SE(n, code, expression) VGPU_EXEC(n, expression, true)
#define SW(n, code, expression) VGPU_EXEC(n, expression, false)
#define SX(n, code, d, a, f) VGPU_HANDLER(n, f)
#define SC(n, code, a_type, b_type, expression)                        \
    struct n {                                                         \
        static constexpr Handler kHandler = &scalar_compare<n>;        \
        using A = a_type;                                              \
        using B = b_type;                                              \
        VGPU_INLINE static bool holds(A a, B b) { return expression; } \
    };
#define SCX(n, code, a, b, f) VGPU_HANDLER(n, f)
#define SK(n, code, type, expression, scc_expression)                                    \
    struct n {                                                                           \
        static constexpr Handler kHandler = &constant_op<n>;                             \
        VGPU_INLINE static auto value(VGPU_ANY u32 d, i32 k_value, VGPU_ANY u32 scc) {   \
            const u32 k = static_cast<u32>(k_value);                                     \
            return expression;                                                           \
        }                                                                                \
        VGPU_INLINE static u32 condition(VGPU_ANY u32 d, VGPU_ANY i32 k, VGPU_ANY u32 r, \
                                         VGPU_ANY u32 scc) {                             \
            return static_cast<u32>(scc_expression);                                     \
        }                                                                                \
    };
#define SKC(n, code, type, expression)                                                             \
    struct n {                                                                                     \
        static constexpr Handler kHandler = &constant_compare<n>;                                  \
        using T = type;                                                                            \
        VGPU_INLINE static bool holds(T d, VGPU_ANY i32 k, VGPU_ANY u32 ku) { return expression; } \
    };
#define SKX(n, code, f) VGPU_HANDLER(n, f)
#define SP(n, code, f) VGPU_HANDLER(n, f)
#define SB(n, code, expression)                                                                \
    struct n {                                                                                 \
        static constexpr Handler kHandler = &branch<n>;                                        \
        VGPU_INLINE static bool holds(VGPU_ANY u32 scc, VGPU_ANY u64 vcc, VGPU_ANY u64 exec) { \
            return expression;                                                                 \
        }                                                                                      \
    };
#define ROW(kind, ...) kind(__VA_ARGS__)
#include "pf-driver/softgpu/isa/ops/sop1.def"
#include "pf-driver/softgpu/isa/ops/sop2.def"
#include "pf-driver/softgpu/isa/ops/sopc.def"
#include "pf-driver/softgpu/isa/ops/sopk.def"
#include "pf-driver/softgpu/isa/ops/sopp.def"
#undef ROW

}  // namespace

}  // namespace vgpu::softgpu::isa::scalar_unit

namespace vgpu::softgpu::isa {

void fill_scalar(HandlerTable& table) {
    using namespace scalar_unit;
    table.fill(&do_illegal);
#define ROW VGPU_SET
#include "pf-driver/softgpu/isa/ops/sop1.def"
#include "pf-driver/softgpu/isa/ops/sop2.def"
#include "pf-driver/softgpu/isa/ops/sopc.def"
#include "pf-driver/softgpu/isa/ops/sopk.def"
#include "pf-driver/softgpu/isa/ops/sopp.def"
#undef ROW
}

}  // namespace vgpu::softgpu::isa
