// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/isa/decode.h"

#include <algorithm>

#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/isa/encoding.h"

namespace vgpu::softgpu::isa {

namespace {

using std::uint16_t;
using std::uint32_t;
using std::uint8_t;

uint32_t field(uint32_t word, enc::Field f) {
    return static_cast<uint32_t>(bits(word, f.first, f.count));
}

bool is_64(Type type) {
    return type == Type::u64 || type == Type::i64 || type == Type::f64 || type == Type::mask;
}

bool is_half(Type type) {
    return type == Type::u16 || type == Type::i16 || type == Type::f16;
}

uint8_t width(Type type) {
    if (type == Type::none) return 0;
    if (type == Type::u128) return 4;
    return is_64(type) ? 2 : 1;
}

/// True if the operation rounds to nearest, regardless of MODE.
bool rounds_to_nearest(Op op) {
    static constexpr std::array kOps{
        Op::v_rndne_f16,          Op::v_rndne_f32,          Op::v_rndne_f64,
        Op::v_cvt_norm_i16_f16,   Op::v_cvt_norm_u16_f16,   Op::v_cvt_pknorm_i16_f16,
        Op::v_cvt_pknorm_u16_f16, Op::v_cvt_pknorm_i16_f32, Op::v_cvt_pknorm_u16_f32};
    return std::ranges::find(kOps, op) != kOps.end();
}

/// None if the operation always rounds to nearest. Otherwise, the type of the result determines the
/// FloatClass; if the result is not a float, the type of source 0 does. vop3p() overrides the
/// value.
FloatClass float_class(Op op) {
    const OpInfo& row = info(op);
    if (rounds_to_nearest(op)) return FloatClass::None;
    const Type type =
        row.dst == Type::f32 || row.dst == Type::f64 || row.dst == Type::f16 ? row.dst : row.src[0];
    if (type == Type::f32) return FloatClass::Single;
    return type == Type::f64 || type == Type::f16 ? FloatClass::DoubleOrHalf : FloatClass::None;
}

/// True if the operation has neither an SDWA nor a DPP form because of its operands: 64 bits, a
/// scalar result, or a literal.
bool lacks_modifier_forms(const OpInfo& row) {
    const bool is_wide =
        is_64(row.src[0]) || is_64(row.src[1]) || (is_64(row.dst) && row.dst != Type::mask);
    return is_wide || row.dst == Type::sgpr || row.trait == Trait::Constant;
}

/// Decodes one instruction. A member function that finds an invalid field makes the result illegal.
class Decoder {
public:
    explicit Decoder(std::span<const uint32_t> words) : words_(words) {}

    Instruction run();

private:
    template <Encoding E, enc::Field Code> void scalar_alu();
    void sopk();
    void sopp();
    void smem();
    void vop2();
    void vop1();
    void vopc();
    void vop3();
    void vop3p();
    void ds();
    void flat();
    void mubuf();
    void mtbuf();
    void buffer(const OpInfo& row);

    template <void (Decoder::*Part)()> static void call(Decoder& decoder) { (decoder.*Part)(); }
    bool start(Encoding encoding, uint32_t code);
    bool read_second_word();
    void mark_illegal() { out_.op = Op::Illegal; }
    [[nodiscard]] bool is_illegal() const { return out_.op == Op::Illegal; }

    Operand source(uint32_t code, Type type);
    Operand inline_constant(uint32_t code, Type type);
    Operand literal(Type type);
    Operand vgpr(uint32_t first, uint32_t count);
    Operand scalar(uint32_t first, uint32_t count);
    void set_vector_result(uint32_t first, uint32_t count);
    void set_scalar_result(uint32_t first, uint32_t count);
    void decode_source0(uint32_t src0, Type type0);
    void sdwa(const OpInfo& row);
    void dpp(const OpInfo& row);
    void set_implied_sources(const OpInfo& row);
    void apply_op_sel(const OpInfo& row, uint32_t selected);
    void finish();

    std::span<const uint32_t> words_;
    Instruction out_{};
    uint32_t w0_ = 0;
    uint32_t w1_ = 0;
    bool has_literal_ = false;
};

/// Sets the operation. False if there is no such operation; the result is then illegal.
bool Decoder::start(Encoding encoding, uint32_t code) {
    out_.op = find_op(encoding, code);
    if (is_illegal()) return false;
    out_.float_class = float_class(out_.op);
    return true;
}

/// Adds the second word to the instruction. False if there is none; the result is then illegal.
bool Decoder::read_second_word() {
    if (words_.size() < 2) {
        mark_illegal();
        return false;
    }
    w1_ = words_[1];
    out_.words[1] = w1_;
    out_.size = 8;
    return true;
}

Operand Decoder::vgpr(uint32_t first, uint32_t count) {
    if (first + count > enc::kVgprs) mark_illegal();
    const uint32_t place = count == 0 ? 0 : first;  // an operand without registers names v0
    return {OperandKind::Vgpr, static_cast<uint8_t>(count), false, false, place};
}

/// The first register of a group of `count` scalar registers. Pairs begin at even numbers, longer
/// groups at multiples of four; the lower bits of `first` are ignored.
uint32_t aligned(uint32_t first, uint32_t count) {
    return first & ~(count > 2 ? 3u : (count == 2 ? 1u : 0u));
}

/// A group of scalar registers must end inside the scalar register file, whose last pair is EXEC.
Operand Decoder::scalar(uint32_t first, uint32_t count) {
    first = aligned(first, count);
    if (first + count > enc::kScalars) mark_illegal();
    return {OperandKind::Scalar, static_cast<uint8_t>(count), false, false, first};
}

void Decoder::set_vector_result(uint32_t first, uint32_t count) {
    if (first + count > enc::kVgprs) mark_illegal();
    out_.dst = static_cast<uint8_t>(first);
    out_.dst_regs = static_cast<uint8_t>(count);
}

void Decoder::set_scalar_result(uint32_t first, uint32_t count) {
    first = aligned(first, count);
    if (first + count > enc::kScalars) mark_illegal();
    out_.dst = static_cast<uint8_t>(first);
}

/// An instruction has at most one literal: all operands with the number kLiteral have its value.
Operand Decoder::literal(Type type) {
    // only a short encoding has room for a literal
    if (!has_literal_ && (out_.size != 4 || !read_second_word())) {
        mark_illegal();
        return {};
    }
    has_literal_ = true;
    Operand operand{OperandKind::Constant, 0, false, false, w1_};
    operand.is_literal = true;
    if (type == Type::f64) operand.kind = OperandKind::ConstantHigh;
    if (type == Type::i64) operand.kind = OperandKind::ConstantSigned;
    return operand;
}

Operand Decoder::inline_constant(uint32_t code, Type type) {
    if (code <= enc::kLastPositive)
        return {OperandKind::ConstantSigned, 0, false, false, code - enc::kZero};
    if (code <= enc::kLastNegative)
        return {OperandKind::ConstantSigned, 0, false, false, 0u - (code - enc::kLastPositive)};
    const enc::FloatConstant& constant = enc::kFloatConstants[code - enc::kFirstFloat];
    if (is_half(type)) return {OperandKind::Constant, 0, false, false, constant.half};
    if (!is_64(type)) return {OperandKind::Constant, 0, false, false, constant.single};
    if (code == enc::kInverseTwoPi) return {OperandKind::InverseTwoPi, 0, false, false, 0};
    return {OperandKind::ConstantHigh, 0, false, false, constant.double_high};
}

/// Source numbers are the same in all encodings (Vega ISA manual, "SSRC/SRC0 operands"). A number
/// that an encoding cannot have makes the instruction illegal.
Operand Decoder::source(uint32_t code, Type type) {
    if (type == Type::none) return {};
    if (code >= enc::kFirstVgpr) return vgpr(code - enc::kFirstVgpr, width(type));
    if (type == Type::u128) mark_illegal();  // 128 bits fit only in vector registers
    if (code < enc::kScalars) return scalar(code, width(type));
    if (code == enc::kLiteral) return literal(type);
    const bool is_number =
        code <= enc::kLastNegative || (code >= enc::kFirstFloat && code <= enc::kInverseTwoPi);
    if (is_number) return inline_constant(code, type);
    if (!enc::is_special(code)) mark_illegal();
    const bool is_vector = info(out_.op).encoding >= Encoding::Vop2;
    if (code == enc::kLdsDirect && !is_vector) mark_illegal();
    return {OperandKind::Special, 0, false, false, code};
}

/// SOP2, SOP1, SOPC. The operation's row determines which operands the instruction has.
template <Encoding E, enc::Field Code> void Decoder::scalar_alu() {
    if (!start(E, field(w0_, Code))) return;
    const OpInfo& row = info(out_.op);
    out_.src[0] = source(field(w0_, enc::kSsrc0), row.src[0]);
    out_.src[1] = source(field(w0_, enc::kSsrc1), row.src[1]);
    if (E != Encoding::Sopc) return set_scalar_result(field(w0_, enc::kSdst), width(row.dst));
    // only for s_set_gpr_idx_on: a bit for each operand that is indexed
    out_.imm = static_cast<std::int32_t>(field(w0_, enc::kSsrc1));
}

void Decoder::sopk() {
    if (!start(Encoding::Sopk, field(w0_, enc::kSopkOp))) return;
    out_.imm = static_cast<std::int16_t>(field(w0_, enc::kSimm16));
    const bool is_pair = out_.op == Op::s_call_b64 || out_.op == Op::s_cbranch_i_fork;
    set_scalar_result(field(w0_, enc::kSdst), is_pair ? 2 : 1);
    if (out_.op == Op::s_setreg_imm32_b32) out_.src[0] = literal(Type::u32);
}

void Decoder::sopp() {
    if (!start(Encoding::Sopp, field(w0_, enc::kSoppOp))) return;
    out_.imm = static_cast<std::int16_t>(field(w0_, enc::kSimm16));
}

void Decoder::smem() {
    if (!read_second_word() || !start(Encoding::Smem, field(w0_, enc::kSmemOp))) return;
    const OpInfo& row = info(out_.op);
    const bool is_buffer = row.trait == Trait::BufferBase;
    const bool has_address = row.trait != Trait::Constant;
    out_.returns = field(w0_, enc::kSmemGlc) != 0;
    const uint32_t data = field(w0_, enc::kSmemData);
    set_scalar_result(data, std::max<uint32_t>(row.result_regs, row.data_regs * row.data_operands));
    if (!has_address) return;
    out_.src[0] = scalar(field(w0_, enc::kSmemBase) * 2, is_buffer ? 4 : 2);
    const bool has_imm = field(w0_, enc::kSmemImm) != 0;
    const bool has_soffset = field(w0_, enc::kSmemSoffsetEnable) != 0;
    if (has_imm) out_.imm = enc::sign_extend(field(w1_, enc::kSmemOffset), enc::kSmemOffset.count);
    if (has_soffset || !has_imm)
        out_.src[1] =
            source(field(w1_, has_soffset ? enc::kSmemSoffset : enc::kSmemSgpr), Type::u32);
    if (out_.size != 8 || (out_.src[1].kind == OperandKind::Constant)) mark_illegal();
}

/// Decodes source 0 of a short encoding. The operand numbers kSdwa and kDpp mean that a second word
/// with SDWA or DPP fields follows; that word holds source 0.
void Decoder::decode_source0(uint32_t src0, Type type0) {
    const OpInfo& row = info(out_.op);
    if (src0 == enc::kSdwa)
        sdwa(row);
    else if (src0 == enc::kDpp)
        dpp(row);
    else
        out_.src[0] = source(src0, type0);
}

void Decoder::sdwa(const OpInfo& row) {
    if (lacks_modifier_forms(row) || row.trait == Trait::OldResult || !read_second_word()) {
        mark_illegal();
        return;
    }
    out_.modifier = Modifier::Sdwa;
    const auto second_is_scalar = field(w1_, enc::kSdwaScalar1) != 0;
    const auto first_is_scalar = field(w1_, enc::kSdwaScalar0) != 0;
    const uint32_t source0 = field(w1_, enc::kSdwaSrc0) + (first_is_scalar ? 0 : enc::kFirstVgpr);
    out_.src[0] = source(source0, row.src[0]);
    if (row.src[1] != Type::none && second_is_scalar)
        out_.src[1] = source(field(w0_, enc::kVsrc1), row.src[1]);
    const std::array<uint32_t, 2> sel{field(w1_, enc::kSdwaSel0), field(w1_, enc::kSdwaSel1)};
    const std::array<uint32_t, 2> mod{field(w1_, enc::kSdwaMod0), field(w1_, enc::kSdwaMod1)};
    for (std::size_t i = 0; i < 2; ++i) {
        if (sel[i] > static_cast<uint32_t>(Select::Dword)) mark_illegal();
        out_.select[i] = static_cast<Select>(sel[i]);
        out_.sign_extend[i] = bit(mod[i], 0);
        out_.src[i].negate = bit(mod[i], 1);
        out_.src[i].absolute = bit(mod[i], 2);
    }
    if (row.encoding == Encoding::Vopc) {
        const bool has_sdst = field(w1_, enc::kSdwaHasSdst) != 0;
        out_.sdst =
            static_cast<uint8_t>(aligned(has_sdst ? field(w1_, enc::kSdwaSdst) : enc::kVcc, 2));
        return;
    }
    const uint32_t to = field(w1_, enc::kSdwaDstSel);
    const uint32_t unused = field(w1_, enc::kSdwaDstUnused);
    if (to > static_cast<uint32_t>(Select::Dword) || unused > 2) mark_illegal();
    out_.dst_select = static_cast<Select>(to);
    out_.dst_unused = static_cast<Unused>(unused);
    out_.clamp = field(w1_, enc::kSdwaClamp) != 0;
    out_.omod = static_cast<uint8_t>(field(w1_, enc::kSdwaOmod));
}

void Decoder::dpp(const OpInfo& row) {
    if (lacks_modifier_forms(row) || !read_second_word()) {
        mark_illegal();
        return;
    }
    out_.modifier = Modifier::Dpp;
    out_.src[0] = source(field(w1_, enc::kSdwaSrc0) + enc::kFirstVgpr, row.src[0]);
    out_.dpp_control = static_cast<uint16_t>(field(w1_, enc::kDppControl));
    if (!enc::is_dpp_control(out_.dpp_control)) mark_illegal();
    out_.bound_zero = field(w1_, enc::kDppBound) != 0;
    const uint32_t mods = field(w1_, enc::kDppMods);
    for (std::size_t i = 0; i < 2; ++i) {
        out_.src[i].negate = bit(mods, static_cast<unsigned>(2 * i));
        out_.src[i].absolute = bit(mods, static_cast<unsigned>(2 * i + 1));
    }
    out_.bank_mask = static_cast<uint8_t>(field(w1_, enc::kDppBankMask));
    out_.row_mask = static_cast<uint8_t>(field(w1_, enc::kDppRowMask));
}

/// Sets the sources for which a short encoding has no field.
void Decoder::set_implied_sources(const OpInfo& row) {
    if (row.trait == Trait::OldResult) out_.src[2] = vgpr(out_.dst, width(row.dst));
    if (row.src[2] == Type::mask) out_.src[2] = scalar(enc::kVcc, 2);
    if (row.trait == Trait::Constant && row.encoding == Encoding::Vop2)
        out_.src[2] = literal(row.src[2]);
}

void Decoder::vop2() {
    if (!start(Encoding::Vop2, field(w0_, enc::kVop2Op))) return;
    const OpInfo& row = info(out_.op);
    set_vector_result(field(w0_, enc::kVdst), width(row.dst));
    out_.sdst = enc::kVcc;
    out_.src[1] = vgpr(field(w0_, enc::kVsrc1), width(row.src[1]));
    decode_source0(field(w0_, enc::kSrc0), row.src[0]);
    set_implied_sources(row);
}

void Decoder::vop1() {
    if (!start(Encoding::Vop1, field(w0_, enc::kVop1Op))) return;
    const OpInfo& row = info(out_.op);
    if (row.dst == Type::sgpr)
        set_scalar_result(field(w0_, enc::kVdst), 1);
    else
        set_vector_result(field(w0_, enc::kVdst), width(row.dst));
    decode_source0(field(w0_, enc::kSrc0), row.src[0]);
    if (out_.op == Op::v_swap_b32 &&
        (out_.src[0].kind != OperandKind::Vgpr || out_.modifier != Modifier::None))
        mark_illegal();
}

void Decoder::vopc() {
    if (!start(Encoding::Vopc, field(w0_, enc::kVopcOp))) return;
    const OpInfo& row = info(out_.op);
    out_.sdst = enc::kVcc;
    out_.src[1] = vgpr(field(w0_, enc::kVsrc1), width(row.src[1]));
    decode_source0(field(w0_, enc::kSrc0), row.src[0]);
    if (out_.sdst + 2u > enc::kScalars) mark_illegal();
}

/// OP_SEL (`selected`) chooses the register halves of 16-bit sources and of a 16-bit result. Stores
/// the choice in the SDWA members (select, select2, dst_select), which run_sdwa() (modifiers.cpp)
/// applies. If the other half of the result's register must not change, dst_unused = Preserve
/// replaces keep_high.
void Decoder::apply_op_sel(const OpInfo& row, uint32_t selected) {
    if (selected == 0) return;
    out_.modifier = Modifier::Sdwa;
    const auto part = [&](std::size_t i) { return bit(selected, static_cast<unsigned>(i)); };
    for (std::size_t i = 0; i < 2; ++i)
        if (is_half(row.src[i])) out_.select[i] = part(i) ? Select::Word1 : Select::Word0;
    if (is_half(row.src[2])) out_.select2 = part(2) ? Select::Word1 : Select::Word0;
    if (!is_half(row.dst)) return;
    out_.dst_select = part(3) ? Select::Word1 : Select::Word0;
    out_.dst_unused = part(3) || out_.keep_high ? Unused::Preserve : Unused::Zero;
    out_.keep_high = false;
}

void Decoder::vop3() {
    const uint32_t code = field(w0_, enc::kVop3Op);
    if (code >= enc::kFirstVop3p) return vop3p();
    if (!read_second_word() || !start(Encoding::Vop3, code)) return;
    const OpInfo& row = info(out_.op);
    const uint32_t vdst = field(w0_, enc::kVop3Vdst);
    out_.keep_high = row.trait == Trait::KeepsHigh;
    out_.clamp = field(w0_, enc::kVop3Clamp) != 0;
    out_.omod = static_cast<uint8_t>(field(w1_, enc::kVop3Omod));
    if (row.dst == Type::sgpr)
        set_scalar_result(vdst, 1);
    else if (row.dst == Type::mask)
        out_.sdst = static_cast<uint8_t>(aligned(vdst, 2));
    else
        set_vector_result(vdst, width(row.dst));
    out_.src[0] = source(field(w1_, enc::kVop3Src0), row.src[0]);
    out_.src[1] = source(field(w1_, enc::kVop3Src1), row.src[1]);
    out_.src[2] = row.trait == Trait::OldResult ? vgpr(vdst, width(row.dst))
                                                : source(field(w1_, enc::kVop3Src2), row.src[2]);
    const uint32_t negate = field(w1_, enc::kVop3Neg);
    // SDST has the bits that ABS and OP_SEL have in other operations.
    const bool has_sdst = row.trait == Trait::CarryOut;
    const uint32_t absolute = has_sdst ? 0 : field(w0_, enc::kVop3Abs);
    for (unsigned i = 0; i < 3; ++i) {
        out_.src[i].negate = bit(negate, i);
        out_.src[i].absolute = bit(absolute, i);
    }
    if (has_sdst) out_.sdst = static_cast<uint8_t>(aligned(field(w0_, enc::kVop3Sdst), 2));
    if (out_.sdst + 2u > enc::kScalars) mark_illegal();
    if (!has_sdst) apply_op_sel(row, field(w0_, enc::kVop3OpSel));
}

void Decoder::vop3p() {
    const uint32_t code = field(w0_, enc::kVop3pOp);
    if (!read_second_word() || !start(Encoding::Vop3p, code)) return;
    const OpInfo& row = info(out_.op);
    set_vector_result(field(w0_, enc::kVop3Vdst), 1);
    out_.src[0] = source(field(w1_, enc::kVop3Src0), row.src[0]);
    out_.src[1] = source(field(w1_, enc::kVop3Src1), row.src[1]);
    out_.src[2] = source(field(w1_, enc::kVop3Src2), row.src[2]);
    out_.op_sel = static_cast<uint8_t>(field(w0_, enc::kVop3pOpSel));
    out_.op_sel_hi = static_cast<uint8_t>(field(w1_, enc::kVop3pOpSelHi) |
                                          (field(w0_, enc::kVop3pOpSelHi2) << 2));
    // NEG_HI has the bits that ABS has in VOP3.
    out_.negate_hi = static_cast<uint8_t>(field(w0_, enc::kVop3Abs));
    out_.clamp = field(w0_, enc::kVop3Clamp) != 0;
    const uint32_t negate = field(w1_, enc::kVop3Neg);
    for (unsigned i = 0; i < 3; ++i) out_.src[i].negate = bit(negate, i);
    out_.float_class = row.src[0] == Type::f16   ? FloatClass::DoubleOrHalf
                       : row.src[0] == Type::f32 ? FloatClass::Single
                                                 : FloatClass::None;
}

void Decoder::ds() {
    if (!read_second_word() || !start(Encoding::Ds, field(w0_, enc::kDsOp))) return;
    const OpInfo& row = info(out_.op);
    const bool is_global = row.trait == Trait::GlobalSync;
    if ((field(w0_, enc::kDsGds) != 0) != is_global) mark_illegal();
    out_.imm = static_cast<std::int32_t>(field(w0_, enc::kDsOffsets));
    out_.src[0] = vgpr(field(w1_, enc::kDsAddress), is_global ? row.data_regs : 1);
    if (is_global) return;
    out_.src[1] = vgpr(field(w1_, enc::kDsData0), row.data_operands > 0 ? row.data_regs : 0);
    out_.src[2] = vgpr(field(w1_, enc::kDsData1), row.data_operands > 1 ? row.data_regs : 0);
    set_vector_result(field(w1_, enc::kDsVdst), row.result_regs);
    out_.keep_high = row.trait == Trait::KeepsHigh;
}

void Decoder::flat() {
    static constexpr std::array<Encoding, 4> kSegments{Encoding::Flat, Encoding::Scratch,
                                                       Encoding::Global, Encoding::Flat};
    const uint32_t segment = field(w0_, enc::kFlatSegment);
    if (segment == 3 || !read_second_word()) return;
    if (!start(kSegments[segment], field(w0_, enc::kFlatOp))) return;
    const OpInfo& row = info(out_.op);
    if (field(w0_, enc::kFlatLds) != 0) mark_illegal();
    const uint32_t offset = field(w0_, enc::kFlatOffset);
    const Encoding kind = kSegments[segment];
    out_.imm = kind == Encoding::Flat ? static_cast<std::int32_t>(offset & enc::kFlatUnsignedMask)
                                      : enc::sign_extend(offset, enc::kFlatOffset.count);
    const uint32_t saddr = field(w1_, enc::kFlatSaddr);
    const bool has_saddr = kind != Encoding::Flat && saddr != enc::kNoSaddr;
    const bool is_scratch = kind == Encoding::Scratch;
    if (has_saddr) out_.src[2] = scalar(saddr, is_scratch ? 1 : 2);
    const uint32_t address = field(w1_, enc::kFlatAddress);
    // With a scalar address, global takes a 32-bit vector offset and scratch takes none.
    if (!(is_scratch && has_saddr)) out_.src[0] = vgpr(address, has_saddr || is_scratch ? 1 : 2);
    out_.returns = field(w0_, enc::kFlatGlc) != 0;
    const bool is_atomic = row.trait == Trait::OldResult;
    out_.src[1] =
        vgpr(field(w1_, enc::kFlatData), static_cast<uint32_t>(row.data_regs) * row.data_operands);
    set_vector_result(field(w1_, enc::kFlatVdst), is_atomic && !out_.returns ? 0 : row.result_regs);
    out_.keep_high = row.trait == Trait::KeepsHigh;
}

void Decoder::mubuf() {
    if (!read_second_word() || !start(Encoding::Mubuf, field(w0_, enc::kMubufOp))) return;
    const OpInfo& row = info(out_.op);
    if (row.trait == Trait::Constant) return;  // cache control: no operands
    out_.to_lds = field(w0_, enc::kMubufLds) != 0;
    const bool is_load = row.result_regs != 0 && row.data_regs == 0;
    const bool has_lds_form = out_.op == Op::buffer_store_lds_dword ||
                              (is_load && row.result_regs == 1 && row.trait == Trait::Plain);
    if (out_.to_lds && !has_lds_form) mark_illegal();
    if (out_.op == Op::buffer_store_lds_dword && !out_.to_lds) mark_illegal();
    buffer(row);
}

void Decoder::mtbuf() {
    if (!read_second_word() || !start(Encoding::Mtbuf, field(w0_, enc::kMtbufOp))) return;
    out_.format = static_cast<uint8_t>(field(w0_, enc::kMtbufFormat));
    buffer(info(out_.op));
}

/// Decodes the operands that MUBUF and MTBUF have in common.
void Decoder::buffer(const OpInfo& row) {
    if (field(w1_, enc::kMubufTfe) != 0) mark_illegal();
    out_.imm = static_cast<std::int32_t>(field(w0_, enc::kMubufOffset));
    out_.offset_enable = field(w0_, enc::kMubufOffen) != 0;
    out_.index_enable = field(w0_, enc::kMubufIdxen) != 0;
    out_.returns = field(w0_, enc::kMubufGlc) != 0;
    const uint32_t addresses = (out_.offset_enable ? 1u : 0u) + (out_.index_enable ? 1u : 0u);
    out_.src[0] = vgpr(field(w1_, enc::kMubufVaddr), addresses);
    const uint32_t data = field(w1_, enc::kMubufVdata);
    out_.src[1] = vgpr(data, static_cast<uint32_t>(row.data_regs) * row.data_operands);
    out_.src[2] = scalar(field(w1_, enc::kMubufSrsrc) * 4, 4);
    const uint32_t soffset = field(w1_, enc::kMubufSoffset);
    if (soffset == enc::kLiteral) mark_illegal();
    out_.src[3] = source(soffset, Type::u32);
    const bool is_atomic = row.trait == Trait::OldResult;
    const bool has_result = !out_.to_lds && (!is_atomic || out_.returns);
    set_vector_result(data, has_result ? row.result_regs : 0);
    out_.keep_high = row.trait == Trait::KeepsHigh;
}

bool op_ends_block(Op op) {
    const OpInfo& row = info(op);
    switch (row.encoding) {
        case Encoding::Sopp:
            return enc::ends_block_sopp(op);
        case Encoding::Sop2:
            return op == Op::s_cbranch_g_fork || op == Op::s_rfe_restore_b64;
        case Encoding::Sop1:
            return op == Op::s_setpc_b64 || op == Op::s_swappc_b64 || op == Op::s_rfe_b64 ||
                   op == Op::s_set_gpr_idx_idx || op == Op::s_cbranch_join;
        case Encoding::Sopk:
            return op == Op::s_setreg_b32 || op == Op::s_setreg_imm32_b32 || op == Op::s_call_b64 ||
                   op == Op::s_cbranch_i_fork;
        case Encoding::Sopc:
            return op == Op::s_set_gpr_idx_on || op == Op::s_setvskip;
        default:
            return false;
    }
}

/// An illegal instruction keeps only its size and words, so that no handler sees operands that are
/// decoded in part.
void Decoder::finish() {
    if (is_illegal()) {
        Instruction nothing;
        nothing.size = out_.size;
        nothing.words = out_.words;
        out_ = nothing;
    }
    out_.ends_block = is_illegal() || op_ends_block(out_.op);
}

/// Decodes the words. An illegal instruction has a size, too, so that a disassembly can continue
/// after it.
Instruction Decoder::run() {
    if (!words_.empty()) {
        w0_ = words_[0];
        out_.words[0] = w0_;
        using Part = void (*)(Decoder&);
        struct Prefix {
            uint32_t mask;
            uint32_t value;
            Part part;
        };
        // The first prefix that matches determines the encoding. If two prefixes overlap, the
        // longer one is first.
        static constexpr std::array<Prefix, 15> kPrefixes{{
            {enc::kVop1Mask, enc::kVop1, &call<&Decoder::vop1>},
            {enc::kVopcMask, enc::kVopc, &call<&Decoder::vopc>},
            {enc::kVop2Mask, enc::kVop2, &call<&Decoder::vop2>},
            {enc::kSop1Mask, enc::kSop1, &call<&Decoder::scalar_alu<Encoding::Sop1, enc::kSop1Op>>},
            {enc::kSopcMask, enc::kSopc, &call<&Decoder::scalar_alu<Encoding::Sopc, enc::kSopcOp>>},
            {enc::kSoppMask, enc::kSopp, &call<&Decoder::sopp>},
            {enc::kSopkMask, enc::kSopk, &call<&Decoder::sopk>},
            {enc::kSop2Mask, enc::kSop2, &call<&Decoder::scalar_alu<Encoding::Sop2, enc::kSop2Op>>},
            {enc::kSmemMask, enc::kSmem, &call<&Decoder::smem>},
            {enc::kVop3Mask, enc::kVop3, &call<&Decoder::vop3>},
            {enc::kDsMask, enc::kDs, &call<&Decoder::ds>},
            {enc::kFlatMask, enc::kFlat, &call<&Decoder::flat>},
            {enc::kMubufMask, enc::kMubuf, &call<&Decoder::mubuf>},
            {enc::kMtbufMask, enc::kMtbuf, &call<&Decoder::mtbuf>},
            {0, 0, &call<&Decoder::mark_illegal>},
        }};
        for (const Prefix& prefix : kPrefixes) {
            if ((w0_ & prefix.mask) != prefix.value) continue;
            prefix.part(*this);
            break;
        }
    }
    finish();
    return out_;
}

}  // namespace

Instruction decode(std::span<const std::uint32_t> words) {
    Decoder decoder(words);
    return decoder.run();
}

}  // namespace vgpu::softgpu::isa
