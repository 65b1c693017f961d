// SPDX-License-Identifier: MIT
//
// Wrappers around an operation: parts of registers (SDWA, OP_SEL), values of other lanes (DPP), and
// the checks of run_checked() (float modes, register indexing, missing registers). A wrapper runs
// the operation on a copy of the instruction. The copy may have other operands, for example scratch
// rows as sources. The wrapper may also change the result. An instruction without a modifier uses a
// wrapper only in a block that needs checks (needs_no_checks() in execute.cpp).
#include <immintrin.h>

#include "pf-driver/softgpu/isa/env.h"

namespace vgpu::softgpu::isa {

namespace {

/// Indices of scratch rows, which follow the kernel's VGPRs (wave.h).
enum ScratchRow : u32 { kRow0, kRow1, kRow2 };

VgprRow& temporary_row(Env& env, u32 which) {
    return env.v[env.vgprs + which];
}

u32 sign_bit_of(Type type) {
    if (type == Type::f16) return 0x8000;
    return type == Type::f32 ? 0x80000000u : 0u;
}

/// A part of a 32-bit register.
struct BitField {
    u32 shift;
    u32 width;
};

BitField field_of(Select part) {
    const auto index = static_cast<u32>(part);
    if (part <= Select::Byte3) return {index * 8, 8};
    if (part == Select::Dword) return {0, 32};
    return {(index - static_cast<u32>(Select::Word0)) * 16, 16};
}

u32 select_part(u32 word, Select part, bool extend) {
    if (part == Select::Dword) return word;
    const BitField field = field_of(part);
    const u32 value = (word >> field.shift) & ((1u << field.width) - 1);
    return extend ? static_cast<u32>(enc::sign_extend(value, field.width)) : value;
}

/// Replaces an operand by a scratch row.
void use_row(const Env& env, Operand& operand, u32 row) {
    operand = {OperandKind::Vgpr, 1, false, false, env.vgprs + row};
}

/// A source that is a part of a register.
struct PartOf {
    Select select;
    bool sign_extend;
    u32 sign;  ///< the sign bit of a float, for ABS and NEG; 0 for an integer
};

/// Replaces the operand by scratch row `row`. Selects and extends the part first, then applies ABS
/// and NEG (Vega ISA manual, SDWA).
void select_operand(Env& env, Operand& operand, u32 row, const PartOf& part) {
    if (operand.kind == OperandKind::None) return;
    VgprRow& out = temporary_row(env, row);
    for (u32 l = 0; l < kLanes; ++l) {
        const u32 value = select_part(env.lane32(operand, l), part.select, part.sign_extend);
        const u32 plain = operand.absolute ? value & ~part.sign : value;
        out.lane[l] = operand.negate ? plain ^ part.sign : plain;
    }
    use_row(env, operand, row);
}

/// The register's new word: `value` in `part`; `unused` determines the other bits.
u32 insert_part(u32 old, u32 value, Select part, Unused unused) {
    if (part == Select::Dword) return value;
    const BitField field = field_of(part);
    const u32 mask = (1u << field.width) - 1;
    const u32 moved = (value & mask) << field.shift;
    if (unused == Unused::Preserve) return (old & ~(mask << field.shift)) | moved;
    if (unused == Unused::Zero) return moved;
    const u32 above = static_cast<u32>(enc::sign_extend(value & mask, field.width));
    return above << field.shift;
}

/// The lane from which `lane` reads if DPP_CTRL is `control`; 64 or more if there is no such lane.
u32 dpp_source(u32 control, u32 lane) {
    constexpr u32 none = kLanes, row = 16;
    const u32 row_base = lane & ~(row - 1);
    const u32 in_row = lane & (row - 1);
    const u32 by = control & (row - 1);
    if (control <= enc::kDppQuadPermLast) return (lane & ~3u) | ((control >> (2 * (lane & 3))) & 3);
    if (control == enc::kDppWaveShl) return lane + 1;
    if (control == enc::kDppWaveRol) return (lane + 1) % kLanes;
    if (control == enc::kDppWaveShr) return lane == 0 ? none : lane - 1;
    if (control == enc::kDppWaveRor) return (lane + kLanes - 1) % kLanes;
    if (control == enc::kDppRowMirror) return row_base | (row - 1 - in_row);
    if (control == enc::kDppRowHalfMirror) return (lane & ~7u) | (7 - (lane & 7));
    if (control == enc::kDppRowBcast15) return row_base == 0 ? none : row_base - 1;
    if (control == enc::kDppRowBcast31) return lane < 32 ? none : 31;
    if (control > enc::kDppRowRor) return row_base | ((in_row + row - by) % row);
    if (control > enc::kDppRowShr) return in_row < by ? none : lane - by;
    return in_row + by >= row ? none : lane + by;
}

/// True if the row and bank masks enable the lane.
bool is_enabled(const Instruction& i, u32 lane) {
    const bool row_is_on = ((i.row_mask >> (lane / 16)) & 1) != 0;
    return row_is_on && ((i.bank_mask >> (lane % 16 / 4)) & 1) != 0;
}

// ---- denormals and infinities that MODE does not allow

bool is_vector_alu(const OpInfo& row) {
    return row.encoding >= Encoding::Vop2 && row.encoding <= Encoding::Vop3p;
}

/// True if the operation keeps denormals under every MODE. Such operations move bits, test bits, or
/// convert between half and single (Vega ISA manual, V_CVT_F16_F32).
bool keeps_denormals(Op op) {
    switch (op) {
        case Op::v_cndmask_b32:
        case Op::v_cmp_class_f16:
        case Op::v_cmp_class_f32:
        case Op::v_cmp_class_f64:
        case Op::v_cmpx_class_f16:
        case Op::v_cmpx_class_f32:
        case Op::v_cmpx_class_f64:
        case Op::v_cvt_f16_f32:
        case Op::v_cvt_f32_f16:
        case Op::v_cvt_pkrtz_f16_f32:
        case Op::v_pack_b32_f16:
            return true;
        default:
            return false;
    }
}

/// True if the operation may return infinity under MODE.FP16_OVFL even if no source is infinite:
/// the reciprocal, reciprocal square root or logarithm of zero, and division fix-up.
bool may_return_infinity(Op op) {
    return op == Op::v_rcp_f16 || op == Op::v_rsq_f16 || op == Op::v_log_f16 ||
           op == Op::v_div_fixup_f16 || op == Op::v_div_fixup_legacy_f16;
}

bool is_float(Type type) {
    return type == Type::f16 || type == Type::f32 || type == Type::f64;
}

/// In: operands; Out: results. MODE has a denormal bit for each direction.
enum class Direction : u8 { In, Out };

/// True if MODE flushes denormals of the type to zero.
bool flushes(u32 wave_mode, Type type, Direction direction) {
    if (!is_float(type)) return false;
    const u32 shift = type == Type::f32 ? mode::kDenormSingleShift : mode::kDenormDoubleShift;
    return ((wave_mode >> (shift + (direction == Direction::Out ? 1 : 0))) & 1) == 0;
}

constexpr u32 kHalfSign = 0x8000, kHalfExponent = 0x7c00, kHalfLargest = 0x7bff;
constexpr u32 kSingleSign = 0x80000000, kSingleExponent = 0x7f800000;
constexpr u32 kDoubleHighExponent = 0x7ff00000;

u32 flushed_half(u32 half) {
    return (half & kHalfExponent) == 0 ? half & kHalfSign : half;
}
u32 flushed_halves(u32 word) {
    return flushed_half(word & 0xffff) | (flushed_half(word >> 16) << 16);
}
u32 flushed_single(u32 word) {
    return (word & kSingleExponent) == 0 ? word & kSingleSign : word;
}

/// Flushes denormals to zero in the lanes whose bit in `lanes` is set. `high` holds the high words
/// of an f64; other types do not use it. For f16, flushes both halves of each word.
void flush_row(Type type, u64 lanes, VgprRow& low, VgprRow* high) {
    for (u32 l = 0; l < kLanes; ++l) {
        if (((lanes >> l) & 1) == 0) continue;
        if (type == Type::f16) low.lane[l] = flushed_halves(low.lane[l]);
        if (type == Type::f32) low.lane[l] = flushed_single(low.lane[l]);
        if (type != Type::f64 || (high->lane[l] & kDoubleHighExponent) != 0) continue;
        low.lane[l] = 0;
        high->lane[l] &= kSingleSign;
    }
}

/// Copies a source to scratch row `row` (an f64 to that row and the next), so that its values may
/// be changed. Does nothing if the source is in a scratch row already.
void copy_to_scratch(Env& env, Operand& operand, Type type, u32 row) {
    const bool is_in_scratch = operand.kind == OperandKind::Vgpr && operand.value >= env.vgprs;
    if (is_in_scratch) return;
    VgprRow& low = temporary_row(env, row);
    VgprRow& high = temporary_row(env, row + 1);
    const bool wide = type == Type::f64;
    if (operand.kind == OperandKind::Vgpr) {
        low = env.v[operand.value];
        if (wide) high = env.v[operand.value + 1];
    } else {
        low.lane.fill(wide ? static_cast<u32>(env.scalar64(operand)) : env.scalar32(operand));
        if (wide) high.lane.fill(static_cast<u32>(env.scalar64(operand) >> 32));
    }
    operand.kind = OperandKind::Vgpr;
    operand.value = env.vgprs + row;
}

/// True for multiply-adds of mixed precision. Each source is an f32 or a half, although the row of
/// ops/*.def has f32.
bool is_mixed(const OpInfo& row) {
    return row.encoding == Encoding::Vop3p && row.src[0] == Type::f32;
}

/// The type as which the operation reads source `k`.
Type source_type(const Instruction& i, u32 k) {
    const OpInfo& row = info(i.op);
    const bool is_half = is_mixed(row) && ((i.op_sel_hi >> k) & 1) != 0;
    return is_half ? Type::f16 : row.src[k];
}

void flush_sources(Env& env, Instruction& i) {
    const OpInfo& row = info(i.op);
    for (u32 k = 0; k < row.src.size(); ++k) {
        const Type type = source_type(i, k);
        if (is_mixed(row) && type == Type::f32) continue;  // mad_flushed() flushes them
        if (!flushes(env.wave.mode, type, Direction::In)) continue;
        copy_to_scratch(env, i.src[k], type, 2 * k);
        flush_row(type, ~u64{0}, env.v[i.src[k].value], &env.v[i.src[k].value + 1]);
    }
}

bool is_infinite_half(u32 word, bool high) {
    return ((high ? word >> 16 : word) & 0x7fff) == kHalfExponent;
}
bool is_infinite_single(u32 word) {
    return (word & ~kSingleSign) == kSingleExponent;
}

/// Masks of lanes in which at least one source is infinite.
struct InfiniteSources {
    u64 low = 0;   ///< sources of the low half of the result
    u64 high = 0;  ///< sources of the high half of the result
};

InfiniteSources infinite_sources(const Env& env, const Instruction& i) {
    const OpInfo& row = info(i.op);
    const bool is_packed = row.encoding == Encoding::Vop3p && !is_mixed(row);
    InfiniteSources out;
    for (u32 k = 0; k < row.src.size(); ++k) {
        if (!is_float(row.src[k])) continue;
        const bool op_sel = ((i.op_sel >> k) & 1) != 0;
        const bool op_sel_hi = ((i.op_sel_hi >> k) & 1) != 0;
        const bool is_half = source_type(i, k) == Type::f16;
        for (u32 l = 0; l < kLanes; ++l) {
            const u32 word = env.lane32(i.src[k], l);
            const bool low = is_half ? is_infinite_half(word, op_sel) : is_infinite_single(word);
            const bool high = is_packed ? is_infinite_half(word, op_sel_hi) : low;
            out.low |= u64{low} << l;
            out.high |= u64{high} << l;
        }
    }
    return out;
}

/// MODE.FP16_OVFL: replaces an infinite result by the largest half, unless `may_be_infinite`.
u32 bounded_half(u32 half, bool may_be_infinite) {
    const bool infinite = (half & ~kHalfSign) == kHalfExponent;
    return infinite && !may_be_infinite ? (half & kHalfSign) | kHalfLargest : half;
}

void bound_halves(VgprRow& result, u64 exec, const InfiniteSources& sources) {
    for (u32 l = 0; l < kLanes; ++l) {
        if (((exec >> l) & 1) == 0) continue;
        const u32 low = bounded_half(result.lane[l] & 0xffff, ((sources.low >> l) & 1) != 0);
        const u32 high = bounded_half(result.lane[l] >> 16, ((sources.high >> l) & 1) != 0);
        result.lane[l] = low | (high << 16);
    }
}

/// The type whose MODE bits apply to the result. It is f16 for packed halves and for half results
/// of mixed precision, although the rows of these operations have u32.
Type result_type(Op op) {
    const OpInfo& row = info(op);
    const bool is_packed = row.encoding == Encoding::Vop3p && row.src[0] == Type::f16;
    const bool is_half = is_packed || op == Op::v_mad_mixlo_f16 || op == Op::v_mad_mixhi_f16;
    return is_half ? Type::f16 : row.dst;
}

/// The bits of the result's register that the operation does not change.
u32 kept_bits(const Instruction& i) {
    constexpr u32 high = 0xffff0000;
    if (i.op == Op::v_mad_mixhi_f16) return ~high;
    return i.keep_high || i.op == Op::v_mad_mixlo_f16 ? high : 0;
}

/// Runs the operation, and adjusts its sources and its result to MODE.
Outcome run_in_mode(Env& env, const Instruction& instruction) {
    const u32 wave_mode = env.wave.mode;
    constexpr u32 float_bits = mode::kFloatBits | mode::kHalfOverflow;
    if ((wave_mode & float_bits) == mode::kFloatDefault || !is_vector_alu(info(instruction.op)))
        return instruction.inner(env, instruction);
    Instruction i = instruction;
    const Type type = result_type(i.op);
    const bool keeps = keeps_denormals(i.op);
    if (!keeps) flush_sources(env, i);
    const bool bounds =
        (wave_mode & mode::kHalfOverflow) != 0 && type == Type::f16 && !may_return_infinity(i.op);
    const InfiniteSources infinite = bounds ? infinite_sources(env, i) : InfiniteSources{};
    const u64 exec = env.exec();
    const VgprRow before = i.dst_regs != 0 ? env.v[i.dst] : VgprRow{};
    const Outcome outcome = i.inner(env, i);
    if (i.dst_regs == 0) return outcome;
    VgprRow& result = env.v[i.dst];
    if (bounds) bound_halves(result, exec, infinite);
    if (!keeps && flushes(wave_mode, type, Direction::Out))
        flush_row(type, exec, result, i.dst_regs > 1 ? &env.v[i.dst + 1] : nullptr);
    const u32 kept = kept_bits(i);
    for (u32 l = 0; l < kLanes && kept != 0; ++l)
        result.lane[l] = (result.lane[l] & ~kept) | (before.lane[l] & kept);
    return outcome;
}

// ---- inactive lanes

bool is_integer(Type type) {
    switch (type) {
        case Type::u8:
        case Type::i8:
        case Type::u16:
        case Type::i16:
        case Type::u32:
        case Type::i32:
        case Type::u64:
        case Type::i64:
            return true;
        default:
            return false;
    }
}

/// Word `word` (0 is the low word) of a number on which operations raise no exception: 1.0 or the
/// integer 0. (The second source of v_ldexp is an integer: 1.0 * 2^0 raises no exception.)
u32 harmless_word(Type type, u32 word) {
    constexpr u32 one = 0x3f800000, one_high = 0x3ff00000, two_halves = 0x3c003c00;
    if (is_integer(type)) return 0;
    if (type == Type::f64) return word == 0 ? 0 : one_high;
    return type == Type::f16 ? two_halves : one;
}

/// While an object of this class exists, the inactive lanes of all source VGPRs hold harmless
/// numbers. The reason: an operation computes all lanes, and the host's exception flags do not show
/// which lane raised an exception.
class QuietLanes {
public:
    QuietLanes(Env& env, const Instruction& i) : env_(env), off_(~env.exec()) {
        const OpInfo& row = info(i.op);
        for (u32 k = 0; k < row.src.size(); ++k) {
            const Operand& source = i.src[k];
            if (source.kind != OperandKind::Vgpr) continue;
            for (u32 word = 0; word < source.regs; ++word)
                quieten(source.value + word, harmless_word(row.src[k], word));
        }
    }
    /// Restores in reverse order, because two sources may name the same VGPR.
    ~QuietLanes() {
        for (u32 k = count_; k-- > 0;) restore(saved_[k]);
    }
    QuietLanes(const QuietLanes&) = delete;
    QuietLanes& operator=(const QuietLanes&) = delete;

private:
    struct Saved {
        u32 vgpr = 0;
        VgprRow row{};
    };
    void quieten(u32 vgpr, u32 word) {
        Saved& saved = saved_[count_++];
        saved = {vgpr, env_.v[vgpr]};
        for (u32 l = 0; l < kLanes; ++l)
            if (((off_ >> l) & 1) != 0) env_.v[vgpr].lane[l] = word;
    }
    void restore(const Saved& saved) {
        for (u32 l = 0; l < kLanes; ++l)
            if (((off_ >> l) & 1) != 0) env_.v[saved.vgpr].lane[l] = saved.row.lane[l];
    }

    Env& env_;
    const u64 off_;
    std::array<Saved, 6> saved_{};
    u32 count_ = 0;
};

/// True if MODE enables an exception and the operation may raise exceptions.
bool may_raise(const Env& env, const Instruction& i) {
    return (env.wave.mode & mode::kException) != 0 && i.float_class != FloatClass::None;
}

/// Runs the operation itself. A modifier, if any, has already moved operands to scratch rows and,
/// for DPP, removed lanes from EXEC.
Outcome run_operation(Env& env, const Instruction& i) {
    if (!may_raise(env, i)) return run_in_mode(env, i);
    const QuietLanes quiet(env, i);
    return run_in_mode(env, i);
}

// ---- float modes, register indexing, missing registers

constexpr u32 kMxcsrDefault = 0x1f80, kMxcsrFlush = 1u << 15;
constexpr unsigned kMxcsrRounding = 13;
/// Rounding modes 0 to 3 are nearest, up, down, zero in MODE, but nearest, down, up, zero in MXCSR.
constexpr std::array<u32, 4> kHostRounding{0, 2, 1, 3};

/// The MXCSR with which an operation must run.
u32 host_float_mode(u32 wave_mode, Op op, FloatClass which) {
    if (which == FloatClass::None) return kMxcsrDefault;
    const bool single = which == FloatClass::Single;
    const u32 round = wave_mode >> (single ? mode::kRoundSingleShift : mode::kRoundDoubleShift);
    const bool flush =
        !keeps_denormals(op) && flushes(wave_mode, single ? Type::f32 : Type::f64, Direction::Out);
    return kMxcsrDefault | (kHostRounding[round & 3] << kMxcsrRounding) | (flush ? kMxcsrFlush : 0);
}

/// VGPR indexing mode (S_SET_GPR_IDX_ON): M0[7:0] is an index, M0[15:12] has a bit for each operand
/// that is indexed (sources 0 to 2, result). Adds the index to the VGPR numbers of these operands.
/// False if the result would be beyond v255.
bool apply_index(const Env& env, Instruction& i) {
    const u32 index = env.m0() & 0xff;
    const u32 which = env.m0() >> 12;
    constexpr u32 result_bit = 3;
    for (u32 k = 0; k < 3; ++k)
        if (((which >> k) & 1) != 0 && i.src[k].kind == OperandKind::Vgpr) i.src[k].value += index;
    if (((which >> result_bit) & 1) == 0 || i.dst_regs == 0) return true;
    if (i.dst + index + i.dst_regs > kMaxVgprs) return false;
    i.dst = static_cast<u8>(i.dst + index);
    return true;
}

/// Makes sources read v0 if they name VGPRs that the kernel does not have. False if the kernel does
/// not have the VGPRs of the result; the result must then be dropped.
bool replace_missing_registers(const Env& env, Instruction& i) {
    for (Operand& source : i.src)
        if (source.kind == OperandKind::Vgpr && source.value + source.regs > env.vgprs)
            source.value = 0;
    return i.dst_regs == 0 || i.dst + i.dst_regs <= env.vgprs;
}

// ---- arithmetic exceptions

constexpr u32 kMxcsrFlags = 0x3f;

/// The TRAPSTS.EXCP bits that correspond to the host's flags. The order of the bits is the same,
/// but v_rcp_iflag_f32 reports a division by zero as an integer division by zero.
u32 exceptions(const Instruction& i, u32 host_flags) {
    const u32 flags = host_flags & kMxcsrFlags;
    if (i.op != Op::v_rcp_iflag_f32 || (flags & trapsts::kDivideByZero) == 0) return flags;
    return (flags & ~trapsts::kDivideByZero) | trapsts::kIntegerDivideByZero;
}

/// Runs an operation and sets the TRAPSTS bits of the exceptions that the operation raises.
/// Returns the operation's outcome, or Outcome::Exception if MODE enables one of these exceptions.
Outcome run_with_exceptions(Env& env, const Instruction& i) {
    const Outcome outcome = i.handler(env, i);
    const u32 raised = exceptions(i, _mm_getcsr());
    env.wave.trapsts |= raised;
    const u32 enabled = (env.wave.mode & mode::kException) >> mode::kExceptionShift;
    return outcome == Outcome::Next && (raised & enabled) != 0 ? Outcome::Exception : outcome;
}

/// True for v_swap_b32, which also writes its source. run_checked() drops a v_swap_b32 if register
/// indexing or a missing register has changed the source.
bool writes_source(Op op) {
    return op == Op::v_swap_b32;
}

}  // namespace

Outcome run_sdwa(Env& env, const Instruction& instruction) {
    const OpInfo& row = info(instruction.op);
    Instruction i = instruction;
    for (u32 k = 0; k < 2; ++k)
        select_operand(env, i.src[k], kRow0 + k,
                       {i.select[k], i.sign_extend[k], sign_bit_of(row.src[k])});
    if (i.select2 != Select::Dword)
        select_operand(env, i.src[2], kRow2, {i.select2, false, sign_bit_of(row.src[2])});
    if (i.dst_regs != 1) return run_operation(env, i);
    const VgprRow before = env.v[i.dst];
    const u64 exec = env.exec();
    const Outcome outcome = run_operation(env, i);
    VgprRow& result = env.v[i.dst];
    for (u32 l = 0; l < kLanes; ++l)
        if (((exec >> l) & 1) != 0)
            result.lane[l] =
                insert_part(before.lane[l], result.lane[l], i.dst_select, i.dst_unused);
    return outcome;
}

/// If the source lane of a lane does not exist or is inactive, the lane is inactive during the
/// operation; with BOUND_CTRL, the lane stays active and source 0 is 0. Lanes that the row and bank
/// masks disable are inactive, too.
Outcome run_dpp(Env& env, const Instruction& instruction) {
    Instruction i = instruction;
    const u64 exec = env.exec();
    u64 lanes = 0;
    VgprRow moved{};
    for (u32 l = 0; l < kLanes; ++l) {
        const u32 from = dpp_source(i.dpp_control, l);
        const bool is_valid = from < kLanes && ((exec >> from) & 1) != 0;
        moved.lane[l] = is_valid ? env.v[i.src[0].value].lane[from] : 0;
        lanes |= u64{is_enabled(i, l) && (is_valid || i.bound_zero)} << l;
    }
    temporary_row(env, kRow0) = moved;
    i.src[0].value = env.vgprs + kRow0;
    const u64 masked = exec & lanes;
    env.set_exec(masked);
    const Outcome outcome = run_operation(env, i);
    if (info(i.op).trait != Trait::WritesExec) env.set_exec(exec);
    return outcome;
}

/// The slow path of Runner::run_block(), for blocks for which needs_no_checks() is false. Makes the
/// checks for one instruction, and runs it.
Outcome run_checked(Env& env, const Instruction& instruction) {
    const Encoding encoding = info(instruction.op).encoding;
    if (encoding < Encoding::Vop2 && encoding != Encoding::Smem)
        return instruction.handler(env, instruction);
    if ((env.wave.mode & mode::kSkipVector) != 0 && encoding != Encoding::Smem)
        return Outcome::Next;
    Instruction i = instruction;
    bool is_inside = true;
    if ((env.wave.mode & mode::kGprIndex) != 0 && is_vector_alu(info(i.op)))
        is_inside = apply_index(env, i);
    if (!is_inside || !replace_missing_registers(env, i)) return Outcome::Next;
    if (writes_source(i.op) && i.src[0].value != instruction.src[0].value) return Outcome::Next;
    const u32 before = _mm_getcsr();
    _mm_setcsr(host_float_mode(env.wave.mode, i.op, i.float_class));
    if (i.modifier == Modifier::None) i.handler = &run_operation;
    const Outcome outcome = may_raise(env, i) ? run_with_exceptions(env, i) : i.handler(env, i);
    _mm_setcsr(before);
    return outcome;
}

}  // namespace vgpu::softgpu::isa
