// SPDX-License-Identifier: MIT
//
// Host code of vector operations with operands of 32 bits. Each row is the host's form of the row
// of the same name in ops/*.def; tests/unit/isa/translate_test.cpp compares the two.
//
// A comment such as "shifts X" on a function in this file means that the function writes host code
// that shifts X.
#include <bit>

#include "pf-driver/softgpu/isa/translate/emitter.h"

namespace vgpu::softgpu::isa {

namespace {

using Code = Xbyak::CodeGenerator;

/// Calls `write` for every quarter, with the code generator and the host registers of the result
/// and of the three sources. For a source that the operation lacks, passes zmm0, which `write`
/// ignores. The result may be the register of a source, so only the last instruction of `write` may
/// change the result.
template <class Write> bool each_quarter(Emitter& e, const Instruction& i, Write write) {
    if (!e.start(i)) return false;
    for (unsigned q = 0; q < kQuarters; ++q) {
        const OpInfo& row = info(i.op);
        const Zmm a = row.src[0] == Type::none ? Zmm(0) : e.source(0, q);
        const Zmm b = row.src[1] == Type::none ? Zmm(0) : e.source(1, q);
        const bool has_c = row.src[2] != Type::none && row.src[2] != Type::mask;
        const Zmm c = has_c ? e.source(2, q) : Zmm(0);
        write(e.c, e.result(q), a, b, c);
    }
    return true;
}

constexpr std::uint32_t kShiftMask = 31;

/// Shifts `value` by the low five bits of `by`. Uses temp(0).
template <class Shift>
void shift_by(Emitter& e, const Zmm& to, const Zmm& value, const Zmm& by, Shift shift) {
    e.c.vpandd(Emitter::temp(0), by, e.constant(kShiftMask));
    shift(to, value, Emitter::temp(0));
}

/// Computes the upper halves of the 64-bit products of all lanes. `multiply` writes VPMULUDQ or
/// VPMULDQ, which multiply only the even lanes.
template <class Multiply>
void high_product(Emitter& e, const Zmm& to, const Zmm& a, const Zmm& b, Multiply multiply) {
    constexpr std::uint8_t word = 32;
    constexpr unsigned odd_lanes = 0xaaaa;
    const Zmm even = Emitter::temp(0), odd = Emitter::temp(1), other = Emitter::temp(2);
    multiply(even, a, b);
    e.c.vpsrlq(even, even, word);
    e.c.vpsrlq(odd, a, word);
    e.c.vpsrlq(other, b, word);
    multiply(odd, odd, other);
    e.c.mov(e.c.eax, odd_lanes);
    e.c.kmovw(e.c.k5, e.c.eax);
    e.c.vmovdqa32(even | e.c.k5, odd);
    e.c.vmovdqa32(to, even);
}

/// Low 24 bits of `from`, sign-extended or zero-extended.
void low_24(Emitter& e, const Zmm& to, const Zmm& from, bool is_signed) {
    constexpr std::uint8_t unused = 8;
    e.c.vpslld(to, from, unused);
    if (is_signed)
        e.c.vpsrad(to, to, unused);
    else
        e.c.vpsrld(to, to, unused);
}

void multiply_24(Emitter& e, const Zmm& to, const Zmm& a, const Zmm& b, bool is_signed) {
    low_24(e, Emitter::temp(0), a, is_signed);
    low_24(e, Emitter::temp(1), b, is_signed);
    e.c.vpmulld(to, Emitter::temp(0), Emitter::temp(1));
}

/// Applies a truth table to three sources: a bit of the result is bit 4x + 2y + z of the table,
/// where x, y and z are the bits of the sources.
template <std::uint8_t Truth>
void ternary(Code& c, const Zmm& to, const Zmm& x, const Zmm& y, const Zmm& z) {
    c.vmovdqa32(Emitter::temp(0), x);
    c.vpternlogd(Emitter::temp(0), y, z, Truth);
    c.vmovdqa32(to, Emitter::temp(0));
}

/// Truth tables: x & y | z, x | y | z, x ? y : z.
constexpr std::uint8_t kAndOr = 0xea, kOr3 = 0xfe, kSelect = 0xca;

#define ROW(name, ...)                                                                           \
    table[static_cast<std::size_t>(Op::name)] = [](Emitter& e, const Instruction& i) {           \
        return each_quarter(                                                                     \
            e, i,                                                                                \
            [&]([[maybe_unused]] Code& h, const Zmm& d, [[maybe_unused]] const Zmm& a,           \
                [[maybe_unused]] const Zmm& b, [[maybe_unused]] const Zmm& c) { __VA_ARGS__; }); \
    }

void fill_bits(EmitTable& table) {
    ROW(v_mov_b32, h.vmovdqa32(d, a));
    ROW(v_not_b32, h.vpternlogd(Emitter::temp(0), a, a, 0x55); h.vmovdqa32(d, Emitter::temp(0)));
    ROW(v_and_b32, h.vpandd(d, a, b));
    ROW(v_or_b32, h.vpord(d, a, b));
    ROW(v_xor_b32, h.vpxord(d, a, b));
    ROW(v_and_or_b32, ternary<kAndOr>(h, d, a, b, c));
    ROW(v_or3_b32, ternary<kOr3>(h, d, a, b, c));
    ROW(v_bfi_b32, ternary<kSelect>(h, d, a, b, c));
    ROW(v_lshlrev_b32, shift_by(e, d, b, a, [&](const auto&... x) { h.vpsllvd(x...); }));
    ROW(v_lshrrev_b32, shift_by(e, d, b, a, [&](const auto&... x) { h.vpsrlvd(x...); }));
    ROW(v_ashrrev_i32, shift_by(e, d, b, a, [&](const auto&... x) { h.vpsravd(x...); }));
    ROW(v_lshl_or_b32, const Zmm t = Emitter::temp(1);
        shift_by(e, t, a, b, [&](const auto&... x) { h.vpsllvd(x...); }); h.vpord(d, t, c));
    ROW(v_alignbit_b32, const Zmm t = Emitter::temp(0); h.vmovdqa32(t, b); h.vpshrdvd(t, a, c);
        h.vmovdqa32(d, t));
    ROW(v_bfm_b32, const Zmm t = Emitter::temp(1); e.broadcast(t, 1);
        shift_by(e, t, t, a, [&](const auto&... x) { h.vpsllvd(x...); });
        h.vpsubd(t, t, e.constant(1));
        shift_by(e, d, t, b, [&](const auto&... x) { h.vpsllvd(x...); }));
    ROW(v_bfe_u32, const Zmm t = Emitter::temp(1); const Zmm ones = Emitter::temp(2);
        shift_by(e, t, a, b, [&](const auto&... x) { h.vpsrlvd(x...); }); e.broadcast(ones, ~0u);
        shift_by(e, ones, ones, c, [&](const auto&... x) { h.vpsllvd(x...); });
        h.vpandnd(d, ones, t));
    ROW(v_bfe_i32, const Zmm t = Emitter::temp(1); const Zmm left = Emitter::temp(2);
        shift_by(e, t, a, b, [&](const auto&... x) { h.vpsravd(x...); }); e.broadcast(left, 32);
        h.vpandd(Emitter::temp(0), c, e.constant(kShiftMask));
        h.vpsubd(left, left, Emitter::temp(0)); h.vpsllvd(t, t, left); h.vpsravd(d, t, left));
    ROW(v_bcnt_u32_b32, h.vpopcntd(Emitter::temp(0), a); h.vpaddd(d, Emitter::temp(0), b));
    ROW(v_ffbh_u32, const Zmm t = Emitter::temp(0); h.vplzcntd(t, a); h.vptestnmd(h.k5, a, a);
        h.vpternlogd(t | h.k5, t, t, 0xff); h.vmovdqa32(d, t));
}

void fill_integers(EmitTable& table) {
    ROW(v_add_u32, h.vpaddd(d, a, b));
    ROW(v_sub_u32, h.vpsubd(d, a, b));
    ROW(v_subrev_u32, h.vpsubd(d, b, a));
    ROW(v_add_i32, h.vpaddd(d, a, b));
    ROW(v_sub_i32, h.vpsubd(d, a, b));
    ROW(v_min_i32, h.vpminsd(d, a, b));
    ROW(v_max_i32, h.vpmaxsd(d, a, b));
    ROW(v_min_u32, h.vpminud(d, a, b));
    ROW(v_max_u32, h.vpmaxud(d, a, b));
    ROW(v_min3_i32, h.vpminsd(Emitter::temp(0), a, b); h.vpminsd(d, Emitter::temp(0), c));
    ROW(v_max3_i32, h.vpmaxsd(Emitter::temp(0), a, b); h.vpmaxsd(d, Emitter::temp(0), c));
    ROW(v_min3_u32, h.vpminud(Emitter::temp(0), a, b); h.vpminud(d, Emitter::temp(0), c));
    ROW(v_max3_u32, h.vpmaxud(Emitter::temp(0), a, b); h.vpmaxud(d, Emitter::temp(0), c));
    ROW(v_mul_lo_u32, h.vpmulld(d, a, b));
    ROW(v_mul_hi_u32, high_product(e, d, a, b, [&](const auto&... x) { h.vpmuludq(x...); }));
    ROW(v_mul_hi_i32, high_product(e, d, a, b, [&](const auto&... x) { h.vpmuldq(x...); }));
    ROW(v_mul_i32_i24, multiply_24(e, d, a, b, true));
    ROW(v_mul_u32_u24, multiply_24(e, d, a, b, false));
    ROW(v_mad_i32_i24, multiply_24(e, Emitter::temp(0), a, b, true);
        h.vpaddd(d, Emitter::temp(0), c));
    ROW(v_mad_u32_u24, multiply_24(e, Emitter::temp(0), a, b, false);
        h.vpaddd(d, Emitter::temp(0), c));
    ROW(v_add3_u32, h.vpaddd(Emitter::temp(0), a, b); h.vpaddd(d, Emitter::temp(0), c));
    ROW(v_xad_u32, h.vpxord(Emitter::temp(0), a, b); h.vpaddd(d, Emitter::temp(0), c));
    ROW(v_lshl_add_u32, const Zmm t = Emitter::temp(1);
        shift_by(e, t, a, b, [&](const auto&... x) { h.vpsllvd(x...); }); h.vpaddd(d, t, c));
    ROW(v_add_lshl_u32, const Zmm t = Emitter::temp(1); h.vpaddd(t, a, b);
        shift_by(e, d, t, c, [&](const auto&... x) { h.vpsllvd(x...); }));
}

/// Rounding modes of VRNDSCALEPS, 2^31 as a float, and predicates of VCMPPS (Intel SDM).
constexpr std::uint8_t kFloor = 1, kCeil = 2, kTruncate = 3, kNearest = 0;
constexpr std::uint32_t kTwoTo31 = 0x4f000000, kHighestInt = 0x7fffffff;
constexpr std::uint8_t kUnordered = 3, kGreater = 0x1e, kGreaterOrEqual = 0x1d;

/// Converts a float to an integer, saturated; a NaN becomes 0. VCVTTPS2DQ alone gives 0x80000000
/// for every value out of range.
void to_int(Emitter& e, const Zmm& to, const Zmm& from) {
    const Zmm t = Emitter::temp(0);
    e.c.vcvttps2dq(t, from);
    e.c.vcmpps(e.c.k5, from, e.constant(kTwoTo31), kGreaterOrEqual);
    e.c.vpbroadcastd(t | e.c.k5, e.word(kHighestInt));
    e.c.vcmpps(e.c.k5, from, from, kUnordered);
    e.c.vpxord(t | e.c.k5, t, t);
    e.c.vmovdqa32(to, t);
}

/// Like to_int(), for unsigned integers: zeroes lanes that are not above 0, such as NaNs.
void to_unsigned(Emitter& e, const Zmm& to, const Zmm& from) {
    const Zmm t = Emitter::temp(0), zero = Emitter::temp(1);
    e.broadcast(zero, 0);
    e.c.vcmpps(e.c.k5, from, zero, kGreater);
    e.c.vcvttps2udq(t | e.c.k5 | e.c.T_z, from);
    e.c.vmovdqa32(to, t);
}

void byte_to_float(Emitter& e, const Zmm& to, const Zmm& from, unsigned which) {
    const Zmm t = Emitter::temp(0);
    e.c.vpsrld(t, from, static_cast<std::uint8_t>(which * 8));
    e.c.vpandd(t, t, e.constant(0xff));
    e.c.vcvtdq2ps(to, t);
}

/// If several operands are NaNs, the host's instructions return the first NaN as a quiet NaN (Intel
/// SDM, "Rules for Handling NaNs"; FMA: factors before the summand). sum_of(), product_of() and
/// fma_of() of the interpreter do the same.
void fill_floats(EmitTable& table) {
    ROW(v_add_f32, h.vaddps(d, a, b));
    ROW(v_mul_f32, h.vmulps(d, a, b));
    ROW(v_fma_f32, const Zmm t = Emitter::temp(0); h.vmovaps(t, c); h.vfmadd231ps(t, a, b);
        h.vmovaps(d, t));
    ROW(v_sub_f32, h.vsubps(d, a, b));
    ROW(v_subrev_f32, h.vsubps(d, b, a));
    ROW(v_floor_f32, h.vrndscaleps(d, a, kFloor));
    ROW(v_ceil_f32, h.vrndscaleps(d, a, kCeil));
    ROW(v_trunc_f32, h.vrndscaleps(d, a, kTruncate));
    ROW(v_rndne_f32, h.vrndscaleps(d, a, kNearest));
    ROW(v_sqrt_f32, h.vsqrtps(d, a));
    ROW(v_cvt_f32_i32, h.vcvtdq2ps(d, a));
    ROW(v_cvt_f32_u32, h.vcvtudq2ps(d, a));
    ROW(v_cvt_i32_f32, to_int(e, d, a));
    ROW(v_cvt_u32_f32, to_unsigned(e, d, a));
    ROW(v_cvt_f32_ubyte0, byte_to_float(e, d, a, 0));
    ROW(v_cvt_f32_ubyte1, byte_to_float(e, d, a, 1));
    ROW(v_cvt_f32_ubyte2, byte_to_float(e, d, a, 2));
    ROW(v_cvt_f32_ubyte3, byte_to_float(e, d, a, 3));
}

// ---- masks as operands

/// Source 2 is a mask: the result is source 1 in lanes whose bit is set, and source 0 in the
/// others.
bool conditional_move(Emitter& e, const Instruction& i) {
    const Operand& mask = i.src[2];
    if (mask.kind != OperandKind::Scalar || !e.start(i)) return false;
    for (unsigned q = 0; q < kQuarters; ++q) {
        const Zmm a = e.source(0, q), b = e.source(1, q), t = Emitter::temp(0);
        e.load_mask(e.c.k5, mask.value, q);
        e.c.vpblendmd(t | e.c.k5, a, b);
        e.c.vmovdqa32(e.result(q), t);
    }
    return true;
}

enum class Carry { Add, Subtract, SubtractReversed };
constexpr std::uint8_t kBelow = 1, kEqual = 0;

/// Computes a sum or difference and its carry out (a borrow if a difference), with a carry in if
/// `HasCarryIn`. A carry in changes the carry out of a + b only in lanes where the sum equals a,
/// and the carry out of a - b only in lanes where a equals b (ops/vop2.def). `ones` is -1 in lanes
/// with a carry in, else 0.
template <Carry How, bool HasCarryIn> bool with_carry(Emitter& e, const Instruction& i) {
    if (HasCarryIn && i.src[2].kind != OperandKind::Scalar) return false;
    if (!e.start(i)) return false;
    Code& h = e.c;
    for (unsigned q = 0; q < kQuarters; ++q) {
        const Zmm first = e.source(0, q), second = e.source(1, q), t = Emitter::temp(0);
        const Zmm a = How == Carry::SubtractReversed ? second : first;
        const Zmm b = How == Carry::SubtractReversed ? first : second;
        const Zmm ones = Emitter::temp(1);
        if (HasCarryIn) {
            e.load_mask(h.k6, i.src[2].value, q);
            h.vpternlogd(ones | h.k6 | h.T_z, ones, ones, 0xff);
        }
        if (How == Carry::Add) {
            h.vpaddd(t, a, b);
            if (HasCarryIn) h.vpsubd(t, t, ones);
            h.vpcmpud(e.under_exec(h.k5, q), t, a, kBelow);
            if (HasCarryIn) h.vpcmpud(h.k6 | h.k6, t, a, kEqual);
        } else {
            h.vpsubd(t, a, b);
            if (HasCarryIn) h.vpaddd(t, t, ones);
            h.vpcmpud(e.under_exec(h.k5, q), a, b, kBelow);
            if (HasCarryIn) h.vpcmpud(h.k6 | h.k6, a, b, kEqual);
        }
        if (HasCarryIn) e.or_masks(q);
        e.collect_mask(h.k5, q);
        h.vmovdqa32(e.result(q), t);
    }
    e.write_mask(i.sdst);
    return true;
}

void fill_masks(EmitTable& table) {
    const auto set = [&](Op op, EmitFunction row) { table[static_cast<std::size_t>(op)] = row; };
    set(Op::v_cndmask_b32, conditional_move);
    set(Op::v_add_co_u32, with_carry<Carry::Add, false>);
    set(Op::v_sub_co_u32, with_carry<Carry::Subtract, false>);
    set(Op::v_subrev_co_u32, with_carry<Carry::SubtractReversed, false>);
    set(Op::v_addc_co_u32, with_carry<Carry::Add, true>);
    set(Op::v_subb_co_u32, with_carry<Carry::Subtract, true>);
    set(Op::v_subbrev_co_u32, with_carry<Carry::SubtractReversed, true>);
}

// ---- single lanes

bool read_first_lane(Emitter& e, const Instruction& i) {
    if (i.modifier != Modifier::None) return false;
    if (i.src[0].kind == OperandKind::Special || i.src[0].kind == OperandKind::None) return false;
    e.load_first_lane(e.c.eax, i.src[0]);
    e.store(i.dst, e.c.eax);
    return true;
}

bool read_lane(Emitter& e, const Instruction& i) {
    const bool is_constant =
        i.src[1].kind == OperandKind::Constant || i.src[1].kind == OperandKind::ConstantSigned;
    if (i.modifier != Modifier::None || i.src[0].kind != OperandKind::Vgpr || !is_constant)
        return false;
    e.load_lane(e.c.eax, i.src[0].value, i.src[1].value % kLanes);
    e.store(i.dst, e.c.eax);
    return true;
}

}  // namespace

void fill_vector_rows(EmitTable& table) {
    fill_bits(table);
    fill_integers(table);
    fill_floats(table);
    fill_masks(table);
    table[static_cast<std::size_t>(Op::v_readfirstlane_b32)] = read_first_lane;
    table[static_cast<std::size_t>(Op::v_readlane_b32)] = read_lane;
}

}  // namespace vgpu::softgpu::isa
