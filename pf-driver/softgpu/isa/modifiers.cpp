// SPDX-License-Identifier: MIT
//
// What goes around an operation: parts of registers (SDWA, OP_SEL), values of other lanes (DPP),
// and unusual circumstances (float modes, register indexing, registers that do not exist). Each
// prepares a copy of the instruction whose operands are plain rows, lets the operation run on it,
// and puts the result where it belongs. None of this is on the fast path.
#include <immintrin.h>

#include "pf-driver/softgpu/isa/env.h"

namespace vgpu::softgpu::isa {

namespace {

/// Places of the scratch rows behind the kernel's registers.
enum ScratchRow : u32 { kRow0, kRow1, kRow2, kRowResult };

VgprRow& scratch_row(Env& env, u32 which) {
    return env.v[env.vgprs + which];
}

u32 sign_of(Type type) {
    if (type == Type::f16) return 0x8000;
    return type == Type::f32 ? 0x80000000u : 0u;
}

u32 select_part(u32 word, Select part, bool extend) {
    const auto index = static_cast<u32>(part);
    if (part == Select::Dword) return word;
    const bool is_byte = part <= Select::Byte3;
    const u32 shift = is_byte ? index * 8 : (index - static_cast<u32>(Select::Word0)) * 16;
    const u32 width = is_byte ? 8 : 16;
    const u32 value = (word >> shift) & ((1u << width) - 1);
    return extend ? static_cast<u32>(enc::sign_extend(value, width)) : value;
}

/// Word of an operand in one lane, without modifiers.
u32 word_at(const Env& env, const Operand& operand, u32 lane) {
    return operand.kind == OperandKind::Vgpr ? env.v[operand.value].lane[lane]
                                             : env.scalar32(operand);
}

/// Replaces an operand by a scratch row.
void use_row(const Env& env, Operand& operand, u32 row) {
    operand = {OperandKind::Vgpr, 1, false, false, env.vgprs + row};
}

struct PartOf {
    Select select;
    bool sign_extend;
    u32 sign;
};

void select_operand(Env& env, Operand& operand, u32 row, const PartOf& part) {
    if (operand.kind == OperandKind::None) return;
    VgprRow& out = scratch_row(env, row);
    for (u32 l = 0; l < kLanes; ++l) {
        const u32 value = select_part(word_at(env, operand, l), part.select, part.sign_extend);
        const u32 plain = operand.absolute ? value & ~part.sign : value;
        out.lane[l] = operand.negate ? plain ^ part.sign : plain;
    }
    use_row(env, operand, row);
}

struct Place {
    u32 shift;
    u32 width;
};

Place place_of(Select part) {
    const auto index = static_cast<u32>(part);
    if (part <= Select::Byte3) return {index * 8, 8};
    if (part == Select::Dword) return {0, 32};
    return {(index - static_cast<u32>(Select::Word0)) * 16, 16};
}

u32 insert_part(u32 old, u32 value, Select part, Unused unused) {
    if (part == Select::Dword) return value;
    const Place place = place_of(part);
    const u32 field = (1u << place.width) - 1;
    const u32 moved = (value & field) << place.shift;
    if (unused == Unused::Preserve) return (old & ~(field << place.shift)) | moved;
    if (unused == Unused::Zero) return moved;
    const u32 above = static_cast<u32>(enc::sign_extend(value & field, place.width));
    return above << place.shift;
}

/// Lane that a lane reads under a DPP control; 64 or more if there is none.
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

/// Lanes that the row and bank masks let through.
bool is_enabled(const Instruction& i, u32 lane) {
    const bool row = ((i.row_mask >> (lane / 16)) & 1) != 0;
    return row && ((i.bank_mask >> (lane % 16 / 4)) & 1) != 0;
}

// ---- unusual circumstances

constexpr u32 kMxcsrDefault = 0x1f80, kMxcsrFlush = 1u << 15, kMxcsrDenormalsAreZero = 1u << 6;
constexpr unsigned kMxcsrRounding = 13;
/// MODE counts nearest, up, down, zero; the host nearest, down, up, zero.
constexpr std::array<u32, 4> kHostRounding{0, 2, 1, 3};

u32 host_float_mode(u32 wave_mode, FloatClass which) {
    if (which == FloatClass::None) return kMxcsrDefault;
    const bool single = which == FloatClass::Single;
    const u32 round = wave_mode >> (single ? mode::kRoundSingleShift : mode::kRoundDoubleShift);
    const u32 denorm = wave_mode >> (single ? mode::kDenormSingleShift : mode::kDenormDoubleShift);
    return kMxcsrDefault | (kHostRounding[round & 3] << kMxcsrRounding) |
           ((denorm & 1) != 0 ? 0 : kMxcsrDenormalsAreZero) | ((denorm & 2) != 0 ? 0 : kMxcsrFlush);
}

bool is_vector_alu(Encoding encoding) {
    return encoding >= Encoding::Vop2 && encoding <= Encoding::Vop3p;
}

/// Adds M0's index to the registers that its mode bits name; false if one leaves the file.
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

/// Registers that the kernel does not have: sources read v0 instead, results are dropped.
bool keep_inside(const Env& env, Instruction& i) {
    for (Operand& source : i.src)
        if (source.kind == OperandKind::Vgpr && source.value + source.regs > env.vgprs)
            source.value = 0;
    return i.dst_regs == 0 || i.dst + i.dst_regs <= env.vgprs;
}

// ---- arithmetic exceptions

constexpr u32 kMxcsrFlags = 0x3f;

/// A number of the operand's type on which no operation fails; `word` counts from the low one.
u32 harmless_word(Type type, u32 word) {
    constexpr u32 one = 0x3f800000, one_high = 0x3ff00000, two_halves = 0x3c003c00;
    if (type == Type::f64) return word == 0 ? 0 : one_high;
    return type == Type::f16 ? two_halves : one;
}

/// The operation works on all lanes, and host flags do not say which lane raised them: while it
/// runs, lanes that EXEC turns off hold harmless numbers.
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
    ~QuietLanes() {
        for (u32 k = count_; k-- > 0;) swap_in(saved_[k]);
    }
    QuietLanes(const QuietLanes&) = delete;
    QuietLanes& operator=(const QuietLanes&) = delete;

private:
    struct Saved {
        u32 place = 0;
        VgprRow row{};
    };
    void quieten(u32 place, u32 word) {
        Saved& saved = saved_[count_++];
        saved = {place, env_.v[place]};
        for (u32 l = 0; l < kLanes; ++l)
            if (((off_ >> l) & 1) != 0) env_.v[place].lane[l] = word;
    }
    void swap_in(const Saved& saved) {
        for (u32 l = 0; l < kLanes; ++l)
            if (((off_ >> l) & 1) != 0) env_.v[saved.place].lane[l] = saved.row.lane[l];
    }

    Env& env_;
    const u64 off_;
    std::array<Saved, 6> saved_{};
    u32 count_ = 0;
};

/// The flags of the host are in the order of TRAPSTS.EXCP: invalid, denormal, division by zero,
/// overflow, underflow, inexact.
u32 exceptions(const Instruction& i, u32 host_flags) {
    const u32 flags = host_flags & kMxcsrFlags;
    if (i.op != Op::v_rcp_iflag_f32 || (flags & trapsts::kDivideByZero) == 0) return flags;
    return (flags & ~trapsts::kDivideByZero) | trapsts::kIntegerDivideByZero;
}

/// Runs an operation that may raise exceptions, which the wave wants to know.
Outcome run_watched(Env& env, const Instruction& i) {
    Outcome outcome = Outcome::Next;
    {
        const QuietLanes quiet(env, i);
        outcome = i.handler(env, i);
    }
    const u32 raised = exceptions(i, _mm_getcsr());
    env.wave.trapsts |= raised;
    const u32 enabled = (env.wave.mode & mode::kException) >> mode::kExceptionShift;
    return outcome == Outcome::Next && (raised & enabled) != 0 ? Outcome::Exception : outcome;
}

/// v_swap names its source as a second result.
bool writes_source(Op op) {
    return op == Op::v_swap_b32;
}

}  // namespace

Outcome run_sdwa(Env& env, const Instruction& instruction) {
    const OpInfo& row = info(instruction.op);
    Instruction i = instruction;
    for (u32 k = 0; k < 2; ++k)
        select_operand(env, i.src[k], kRow0 + k,
                       {i.select[k], i.sign_extend[k], sign_of(row.src[k])});
    if (i.select2 != Select::Dword)
        select_operand(env, i.src[2], kRow2, {i.select2, false, sign_of(row.src[2])});
    if (i.dst_regs != 1) return i.inner(env, i);
    const VgprRow before = env.v[i.dst];
    const u64 exec = env.exec();
    const Outcome outcome = i.inner(env, i);
    VgprRow& result = env.v[i.dst];
    for (u32 l = 0; l < kLanes; ++l)
        if (((exec >> l) & 1) != 0)
            result.lane[l] =
                insert_part(before.lane[l], result.lane[l], i.dst_select, i.dst_unused);
    return outcome;
}

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
    scratch_row(env, kRow0) = moved;
    i.src[0].value = env.vgprs + kRow0;
    const u64 masked = exec & lanes;
    env.set_exec(masked);
    const Outcome outcome = i.inner(env, i);
    if (info(i.op).trait != Trait::WritesExec) env.set_exec(exec);
    return outcome;
}

Outcome run_with_care(Env& env, const Instruction& instruction) {
    const Encoding encoding = info(instruction.op).encoding;
    if (encoding < Encoding::Vop2 && encoding != Encoding::Smem)
        return instruction.handler(env, instruction);
    Instruction i = instruction;
    bool is_inside = true;
    if ((env.wave.mode & mode::kGprIndex) != 0 && is_vector_alu(encoding))
        is_inside = apply_index(env, i);
    if (!is_inside || !keep_inside(env, i)) return Outcome::Next;
    if (writes_source(i.op) && i.src[0].value != instruction.src[0].value) return Outcome::Next;
    const u32 before = _mm_getcsr();
    _mm_setcsr(host_float_mode(env.wave.mode, i.float_class));
    const bool is_watched =
        (env.wave.mode & mode::kException) != 0 && i.float_class != FloatClass::None;
    const Outcome outcome = is_watched ? run_watched(env, i) : i.handler(env, i);
    _mm_setcsr(before);
    return outcome;
}

}  // namespace vgpu::softgpu::isa
