// SPDX-License-Identifier: MIT
//
// Env is the data that a handler (Instruction::handler, the function that executes an instruction)
// works on: the running wave, its group, and the context of the run. run() builds an Env for each
// slice of a wave (execute.h). Env also reads and writes scalar operands, so that all execute units
// (unit_*.cpp) treat these operands alike.
//
// Internal to isa/ and its tests.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "pf-driver/softgpu/isa/encoding.h"
#include "pf-driver/softgpu/isa/execute.h"

namespace vgpu::softgpu::isa {

#define VGPU_INLINE [[gnu::always_inline]] inline
/// For a parameter that only some rows of ops/*.def use.
#define VGPU_ANY [[maybe_unused]]

using u8 = std::uint8_t;
using i8 = std::int8_t;
using u16 = std::uint16_t;
using i16 = std::int16_t;
using u32 = std::uint32_t;
using i32 = std::int32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;
using f32 = float;
using f64 = double;

/// Fields of the MODE register (Vega ISA manual, "Program State"). In the manual, kSkipVector is
/// VSKIP, and the field at kForkShift is CSP (fork stack pointer). kFloatDefault rounds to nearest
/// and allows denormals.
namespace mode {
inline constexpr u32 kRoundSingleShift = 0, kRoundDoubleShift = 2, kDenormSingleShift = 4,
                     kDenormDoubleShift = 6, kFloatBits = 0xff, kFloatDefault = 0xf0,
                     kDx10Clamp = 1u << 8, kIeee = 1u << 9, kGprIndex = 1u << 27,
                     kHalfOverflow = 1u << 23, kSkipVector = 1u << 28, kForkShift = 29,
                     kExceptionShift = 12, kException = 0x7fu << kExceptionShift,
                     kAddressWatch = 1u << 19;  // EXCP_EN bit of all four watches
/// If MODE differs from kFloatDefault in any of these bits, run_checked() executes instructions.
inline constexpr u32 kUnusual = kFloatBits | kException | kGprIndex | kHalfOverflow | kSkipVector;
/// The bits of MODE whose values a translated block assumes.
inline constexpr u32 kTranslated = kUnusual | kIeee;
}  // namespace mode

/// Fields of the TRAPSTS register. EXCP is in the low bits; its bits 0 to 5 have the order of the
/// exception flags in the host's MXCSR.
namespace trapsts {
inline constexpr u32 kDivideByZero = 1u << 2, kIntegerDivideByZero = 1u << 6;
inline constexpr u32 kMemoryViolation = 1u << 8, kIllegalInstruction = 1u << 11,
                     kXnackError = 1u << 28;
}  // namespace trapsts

/// The data that a handler works on. `s` and `v` are copies of pointers into the wave, so that the
/// hot loops load these pointers once. A handler may change `wave` and registers freely; the run
/// loop acts on the handler's Outcome.
struct Env {
    WaveState& wave;
    u32* s;      ///< scalar register file
    VgprRow* v;  ///< vector registers, then scratch rows
    u32 vgprs;   ///< number of VGPRs of the kernel
    std::byte* lds;
    u32 lds_bytes;
    /// The wave's work-group. Handlers only read the number of its waves, for a bit of STATUS.
    Workgroup& group;
    /// The objects outside the group that handlers use: memory, clock, messages, decode cache.
    const RunContext& context;
    /// Receives the details of a Fault or Trap from the handler.
    RunResult& result;
    /// True if the wave ended its slice only to wait, so that run() may return early.
    bool slept = false;
    /// True if WaveState::phase has changed, so that the run loop must check the group's barrier.
    bool changed_phase = false;
    /// True if the stop flag was set after an access by Port::read() or write(), which may have
    /// waited for the client. Vector memory instructions then yield, so that the wave does not wait
    /// for the client again and again until the block ends.
    bool must_stop = false;
    /// The VF's address watches, as Runner::run_next() read them last; nullptr if no valid watch
    /// compares the wave's VMID.
    const AddressWatches* watches = nullptr;

    VGPU_INLINE u64 exec() const { return pair(static_cast<u32>(ScalarReg::Exec)); }
    VGPU_INLINE void set_exec(u64 value) { set_pair(static_cast<u32>(ScalarReg::Exec), value); }
    VGPU_INLINE u64 vcc() const { return pair(static_cast<u32>(ScalarReg::Vcc)); }
    VGPU_INLINE u32 m0() const { return s[static_cast<u32>(ScalarReg::M0)]; }
    VGPU_INLINE u64 pair(u32 first) const { return u64{s[first]} | (u64{s[first + 1]} << 32); }
    VGPU_INLINE void set_pair(u32 first, u64 value) {
        s[first] = static_cast<u32>(value);
        s[first + 1] = static_cast<u32>(value >> 32);
    }
    VGPU_INLINE bool ieee() const { return (wave.mode & mode::kIeee) != 0; }

    /// The value of the special operand with the number `code` (OperandKind::Special).
    u64 special(u32 code) const;

    /// The 32-bit value of a scalar register, constant or special operand. The value of a constant
    /// is Operand::value, even for ConstantHigh.
    VGPU_INLINE u32 scalar32(const Operand& operand) const {
        if (operand.kind == OperandKind::Scalar) return s[operand.value];
        if (operand.kind == OperandKind::Special) return static_cast<u32>(special(operand.value));
        return operand.value;
    }
    /// The 32-bit value of any operand in one lane, without modifiers.
    VGPU_INLINE u32 lane32(const Operand& operand, u32 lane) const {
        return operand.kind == OperandKind::Vgpr ? v[operand.value].lane[lane] : scalar32(operand);
    }
    /// The 64-bit value of a pair of scalar registers, a constant or a special operand.
    VGPU_INLINE u64 scalar64(const Operand& operand) const {
        switch (operand.kind) {
            case OperandKind::Scalar:
                return pair(operand.value);
            case OperandKind::ConstantSigned:
                return static_cast<u64>(i64{static_cast<i32>(operand.value)});
            case OperandKind::ConstantHigh:
                return u64{operand.value} << 32;
            case OperandKind::InverseTwoPi:
                return enc::kInverseTwoPiDouble;
            case OperandKind::Special:
                return special(operand.value);
            default:
                return operand.value;
        }
    }
};

/// Indexed by Op, with Op::Illegal last.
using HandlerTable = std::array<Handler, kOpCount + 1>;

/// For each row of ops/*.def, an execute unit (unit_*.cpp) defines a struct. It holds the row's
/// handler and the types and expressions that the handler uses. VGPU_HANDLER makes a struct
/// that holds only the handler.
#define VGPU_HANDLER(n, ...)                              \
    struct n {                                            \
        static constexpr Handler kHandler = &__VA_ARGS__; \
    };
/// Definition of ROW for the second inclusion of a table, after the structs have been defined: puts
/// the row's handler into `table`.
#define VGPU_SET(kind, n, ...) table[static_cast<std::size_t>(Op::n)] = n::kHandler;

/// Each execute unit has a function that writes the unit's handlers into `table`. The functions in
/// `baseline` and `avx2` belong to one variant each; both variants use the first three functions.
/// fill_wave_sync() is in global_wave_sync.cpp, the other functions are in unit_*.cpp.
void fill_scalar(HandlerTable& table);
void fill_format(HandlerTable& table);
void fill_wave_sync(HandlerTable& table);
namespace baseline {
void fill_vector(HandlerTable& table);
void fill_compare(HandlerTable& table);
void fill_memory(HandlerTable& table);
void fill_lds(HandlerTable& table);
void fill_scalar_memory(HandlerTable& table);
}  // namespace baseline
namespace avx2 {
void fill_vector(HandlerTable& table);
void fill_compare(HandlerTable& table);
void fill_memory(HandlerTable& table);
void fill_lds(HandlerTable& table);
void fill_scalar_memory(HandlerTable& table);
}  // namespace avx2

/// Handlers that wrap an operation: run_sdwa() selects parts of registers, run_dpp() reads the
/// values of other lanes.
Outcome run_sdwa(Env& env, const Instruction& instruction);
Outcome run_dpp(Env& env, const Instruction& instruction);
/// Runs an instruction of a block that needs checks, because MODE is unusual (mode::kUnusual) or
/// the block names VGPRs that the kernel does not have.
Outcome run_checked(Env& env, const Instruction& instruction);

/// The handlers of a variant. The table is built once and has no null entry. Any thread may call
/// this function.
[[nodiscard]] const HandlerTable& handlers(Variant which);

}  // namespace vgpu::softgpu::isa
