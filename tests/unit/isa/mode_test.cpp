// SPDX-License-Identifier: MIT
//
// What MODE, the modifiers and M0 change about vector operations: denormals, rounding, CLAMP, OMOD,
// overflow of halves, skipped vector code; and forks, and LDS as an operand.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>

#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/isa/encoding.h"
#include "tests/unit/isa/soft_float.h"
#include "tests/unit/isa/wave_bench.h"

namespace vgpu::test {
namespace {

using softgpu::isa::Encoding;
using softgpu::isa::info;
using softgpu::isa::kLanes;
using softgpu::isa::Op;
using softgpu::isa::OpInfo;
using softgpu::isa::ScalarReg;
using softgpu::isa::StopReason;
using softgpu::isa::Trait;
using softgpu::isa::Type;
using softgpu::isa::Workgroup;

constexpr u32 kDst = 8;
constexpr std::array<u32, 3> kSource{12, 16, 20};
constexpr u32 kSingleDenormals = 0x30, kDoubleDenormals = 0xc0, kAllowInput = 1, kAllowOutput = 2;
constexpr u32 kDx10Clamp = 1u << 8, kIeee = 1u << 9, kHalfOverflow = 1u << 23;
constexpr u32 kDenormHalf = 0x0003, kDenormSingle = 0x00000003;

Words vop3(Op op) {
    const OpInfo& row = info(op);
    const u32 base = row.encoding == Encoding::Vop2    ? enc::kVop3OfVop2
                     : row.encoding == Encoding::Vop1  ? enc::kVop3OfVop1
                     : row.encoding == Encoding::Vop3p ? enc::kFirstVop3p
                                                       : 0;
    u32 sources = 0;
    constexpr std::array<enc::Field, 3> kFields{enc::kVop3Src0, enc::kVop3Src1, enc::kVop3Src2};
    for (std::size_t k = 0; k < 3; ++k) {
        if (row.src[k] == Type::none) continue;
        const bool is_mask = row.src[k] == Type::mask;
        sources |= put(kFields[k], is_mask ? enc::kVcc : enc::kFirstVgpr + kSource[k]);
    }
    const u32 dst = row.dst == Type::mask ? enc::kVcc : kDst;
    const u32 sdst = row.trait == Trait::CarryOut ? put(enc::kVop3Sdst, enc::kVcc) : 0;
    return {enc::kVop3 | put(enc::kVop3Op, row.code + base) | put(enc::kVop3Vdst, dst) | sdst,
            sources};
}

/// Lane 0 of an operation under a MODE.
u32 result(Op op, u32 mode, u32 a, u32 b = 0, u32 c = 0) {
    Bench bench(vop3(op));
    bench.wave().mode = mode;
    bench.v(kSource[0]) = a;
    bench.v(kSource[1]) = b;
    bench.v(kSource[2]) = c;
    bench.run();
    return bench.v(kDst);
}

constexpr u32 kAllow =
    kSingleDenormals | kDoubleDenormals | kIeee | kDx10Clamp;  // both kinds allowed

TEST(Mode, HalfDenormalsAreKeptOrFlushedAsModeSays) {
    constexpr u32 shift = 6, one = 0x3c00, smallest = 0x0400, half_one = 0x3800;
    const auto mode = [](u32 denorm) { return (kAllow & ~kDoubleDenormals) | (denorm << shift); };
    // input: 1 * denormal; output: smallest normal / 2
    EXPECT_EQ(result(Op::v_mul_f16, mode(3), one, kDenormHalf), kDenormHalf);
    EXPECT_EQ(result(Op::v_mul_f16, mode(3), smallest, half_one), 0x0200u);
    EXPECT_EQ(result(Op::v_mul_f16, mode(kAllowOutput), one, kDenormHalf), 0u) << "input";
    EXPECT_EQ(result(Op::v_mul_f16, mode(kAllowOutput), smallest, half_one), 0x0200u);
    EXPECT_EQ(result(Op::v_mul_f16, mode(kAllowInput), smallest, half_one), 0u) << "output";
    EXPECT_EQ(result(Op::v_mul_f16, mode(kAllowInput), 0x4400, kDenormHalf | 0x100), 0x040cu)
        << "a denormal in, a number out";
    EXPECT_EQ(result(Op::v_add_f16, mode(0), 0x8003, 0x8000), 0x8000u) << "zeros keep the sign";
    EXPECT_EQ(result(Op::v_max_f16, mode(0), kDenormHalf, 0x8000), 0u);
    EXPECT_EQ(result(Op::v_pk_add_f16, mode(0), 0x0003'0003, 0), 0u);
    // single precision has a mode of its own
    EXPECT_EQ(result(Op::v_add_f32, mode(0), kDenormSingle, 0), kDenormSingle);
}

TEST(Mode, SingleDenormalsAreKeptOrFlushedAsModeSays) {
    constexpr u32 mode = kAllow & ~kSingleDenormals;
    EXPECT_EQ(result(Op::v_add_f32, kAllow, kDenormSingle, 0), kDenormSingle);
    for (const Op op : {Op::v_add_f32, Op::v_max_f32, Op::v_min_f32})
        EXPECT_EQ(result(op, mode, kDenormSingle, 0), 0u) << info(op).name;
    EXPECT_EQ(result(Op::v_frexp_mant_f32, mode, kDenormSingle), 0u);
    EXPECT_EQ(result(Op::v_med3_f32, mode, kDenormSingle, 0x80000003, 0x3f800000), 0u);
    EXPECT_EQ(result(Op::v_add_f16, mode, 0x0003, 0), 0x0003u) << "halves have a mode of their own";
}

TEST(Mode, DoubleDenormalsAreKeptOrFlushedAsModeSays) {
    for (const bool flush : {false, true}) {
        Bench bench(vop3(Op::v_max_f64));
        bench.wave().mode = flush ? kAllow & ~kDoubleDenormals : kAllow;
        bench.set_wide(kSource[0], 0x8000'0000'0000'0001);
        bench.set_wide(kSource[1], 0xbff0'0000'0000'0000);
        bench.run();
        EXPECT_EQ(bench.wide(kDst), flush ? 0x8000'0000'0000'0000 : 0x8000'0000'0000'0001);
    }
}

TEST(Mode, OperationsThatOnlyMoveBitsKeepDenormals) {
    constexpr u32 mode = kIeee | kDx10Clamp;
    EXPECT_EQ(result(Op::v_cndmask_b32, mode, kDenormSingle, 5), kDenormSingle);
    EXPECT_EQ(result(Op::v_cvt_f32_f16, mode, 0x0001), 0x33800000u);
    EXPECT_EQ(result(Op::v_cvt_f16_f32, mode, 0x33800000), 0x0001u);
    EXPECT_EQ(result(Op::v_pack_b32_f16, mode, 0x0001, 0x0002), 0x0002'0001u);
    constexpr u32 positive_denormal = 1u << 7;
    Bench bench(vop3(Op::v_cmp_class_f32));
    bench.wave().mode = mode;
    bench.v(kSource[0]) = kDenormSingle;
    bench.v(kSource[1]) = positive_denormal;
    bench.run();
    EXPECT_EQ(bench.wave().vcc() & 1, 1u);
}

TEST(Mode, UnfusedMultiplyAddsNeverSeeDenormals) {
    EXPECT_EQ(result(Op::v_mad_f32, kAllow, kDenormSingle, 0x3f800000, 0), 0u);
    EXPECT_EQ(result(Op::v_mad_f32, kAllow, 0x00800000, 0x3f000000, 0), 0u) << "result";
    EXPECT_EQ(result(Op::v_mad_f16, kAllow, kDenormHalf, 0x3c00, 0), 0u);
    EXPECT_EQ(result(Op::v_fma_f32, kAllow, kDenormSingle, 0x3f800000, 0), kDenormSingle);
    EXPECT_EQ(result(Op::v_fma_f16, kAllow, kDenormHalf, 0x3c00, 0), kDenormHalf);
}

TEST(Mode, MixedMultiplyAddsKeepHalfDenormalsAsModeSays) {
    constexpr u32 shift = 6, one = 0x3f800000, denormal_as_single = 0x34400000;
    const auto mixed = [](Op op, u32 denorm) -> u32 {
        Words words = vop3(op);
        words[1] |= put(enc::kVop3pOpSelHi, 1);  // source 0 is a half
        Bench bench(words);
        bench.wave().mode = (kAllow & ~kDoubleDenormals) | (denorm << shift);
        bench.v(kSource[0]) = kDenormHalf;
        bench.v(kSource[1]) = one;
        bench.v(kSource[2]) = 0;
        bench.run();
        return bench.v(kDst);
    };
    EXPECT_EQ(mixed(Op::v_mad_mix_f32, 3), denormal_as_single);
    EXPECT_EQ(mixed(Op::v_mad_mix_f32, kAllowInput), denormal_as_single);
    EXPECT_EQ(mixed(Op::v_mad_mix_f32, kAllowOutput), 0u) << "input";
    EXPECT_EQ(mixed(Op::v_mad_mixlo_f16, 3) & 0xffff, kDenormHalf);
    EXPECT_EQ(mixed(Op::v_mad_mixlo_f16, kAllowInput) & 0xffff, 0u) << "output";
    EXPECT_EQ(mixed(Op::v_mad_mixhi_f16, kAllowOutput) >> 16, 0u) << "input";
}

TEST(Mode, NormalisedIntegersAreRoundedOnce) {
    constexpr u32 above_half = 0x3f1c4639;  // times 32767: a little more than 20002.5
    EXPECT_EQ(result(Op::v_cvt_pknorm_i16_f32, kAllow, above_half, 0), 20003u);
}

TEST(Mode, ApproximationsOfSinglePrecisionTreatDenormalsAsZero) {
    constexpr u32 infinity = 0x7f800000;
    EXPECT_EQ(result(Op::v_rcp_f32, kAllow, kDenormSingle), infinity);
    EXPECT_EQ(result(Op::v_rcp_f32, kAllow, 0x7f000000), 0u) << "1 / 2^127";
    EXPECT_EQ(result(Op::v_rsq_f32, kAllow, kDenormSingle), infinity);
    EXPECT_EQ(result(Op::v_log_f32, kAllow, kDenormSingle), infinity | 0x80000000);
    EXPECT_EQ(result(Op::v_exp_f32, kAllow, std::bit_cast<u32>(-126.5f)), 0u);
    EXPECT_EQ(result(Op::v_sqrt_f32, kAllow, 0x80000000), 0x80000000u);
}

TEST(Mode, SineAndCosineHaveADomainOf256Turns) {
    const auto bits = [](float x) { return std::bit_cast<u32>(x); };
    EXPECT_EQ(result(Op::v_sin_f32, kAllow, bits(255.25f)), bits(1.0f));
    EXPECT_EQ(result(Op::v_sin_f32, kAllow, bits(256.25f)), 0u);
    EXPECT_EQ(result(Op::v_cos_f32, kAllow, bits(-256.5f)), bits(1.0f));
    EXPECT_EQ(result(Op::v_cos_f32, kAllow, bits(-255.5f)), bits(-1.0f));
    EXPECT_TRUE(std::isnan(std::bit_cast<float>(result(Op::v_sin_f32, kAllow, 0x7f800000))));
}

TEST(Mode, SineOfATinyAngleIsTheAngleInRadians) {
    const auto bits = [](float x) { return std::bit_cast<u32>(x); };
    EXPECT_EQ(result(Op::v_sin_f32, kAllow, bits(1e-20f)), bits(1e-20f * 6.2831853f));
    EXPECT_EQ(result(Op::v_sin_f32, kAllow, bits(-1e-20f)), bits(-1e-20f * 6.2831853f));
}

TEST(Mode, RoundingIsThatOfTheTypesOwnField) {
    constexpr u32 half_shift = 2, one_half = 0x3c00, tiny_half = 0x0400, one = 0x3f800000;
    const std::array<Rounding, 4> roundings{Rounding::Nearest, Rounding::Up, Rounding::Down,
                                            Rounding::Zero};
    for (u32 code = 0; code < 4; ++code) {
        const Rounding how = roundings[code];
        for (const u32 sign : {0u, 0x8000u}) {
            const u32 got = result(Op::v_add_f16, kAllow | (code << half_shift), one_half | sign,
                                   tiny_half | sign);
            EXPECT_EQ(got, pack(half(one_half | sign) + half(tiny_half | sign), kHalf, how))
                << code;
        }
        const u32 got = result(Op::v_add_f32, kAllow | code, one, 0x30000000);
        EXPECT_EQ(got, pack(single(one) + single(0x30000000), kSingle, how)) << code;
        EXPECT_EQ(result(Op::v_add_f32, kAllow | (code << half_shift), one, 0x30000000), one);
        const u32 bytes =
            result(Op::v_cvt_pk_u8_f32, kAllow | code, std::bit_cast<u32>(2.5f), 1, 0);
        EXPECT_EQ(bytes, (how == Rounding::Up ? 3u : 2u) << 8);
    }
}

TEST(Mode, ClampBoundsFloatsAndNanAsDx10Says) {
    const auto clamped = [](u32 mode, u32 a) {
        Words words = vop3(Op::v_max_f32);
        words[0] |= put(enc::kVop3Clamp, 1);
        Bench bench(words);
        bench.wave().mode = mode;
        bench.v(kSource[0]) = bench.v(kSource[1]) = a;
        bench.run();
        return bench.v(kDst);
    };
    EXPECT_EQ(clamped(kAllow, std::bit_cast<u32>(7.0f)), std::bit_cast<u32>(1.0f));
    EXPECT_EQ(clamped(kAllow, std::bit_cast<u32>(-7.0f)), 0u);
    EXPECT_EQ(clamped(kAllow, std::bit_cast<u32>(0.25f)), std::bit_cast<u32>(0.25f));
    EXPECT_EQ(clamped(kAllow, 0x7fc00000), 0u);
    EXPECT_EQ(clamped(kAllow & ~kDx10Clamp, 0x7fc00000), 0x7fc00000u);
}

u32 clamped(Op op, u32 a, u32 b, u32 c = 0) {
    Words words = vop3(op);
    words[0] |= put(enc::kVop3Clamp, 1);
    Bench bench(words);
    bench.v(kSource[0]) = a;
    bench.v(kSource[1]) = b;
    bench.v(kSource[2]) = c;
    bench.wave().set_pair(ScalarReg::Vcc, 1);
    bench.run();
    return bench.v(kDst);
}

TEST(Mode, ClampSaturatesIntegers) {
    EXPECT_EQ(clamped(Op::v_add_u32, 0xffffffff, 2), 0xffffffffu);
    EXPECT_EQ(clamped(Op::v_add_co_u32, 0xffffffff, 2), 0xffffffffu);
    EXPECT_EQ(clamped(Op::v_sub_co_u32, 1, 2), 0u);
    EXPECT_EQ(clamped(Op::v_subb_co_u32, 2, 2), 0u) << "with the borrow";
    EXPECT_EQ(clamped(Op::v_add_i32, 0x7fffffff, 2), 0x7fffffffu);
    EXPECT_EQ(clamped(Op::v_sub_i16, 0x8000, 1), 0x8000u);
    EXPECT_EQ(clamped(Op::v_mad_u16, 0xffff, 0xffff, 5) & 0xffff, 0xffffu);
    EXPECT_EQ(clamped(Op::v_mad_i16, 0x7fff, 0x8000, 0) & 0xffff, 0x8000u);
    EXPECT_EQ(clamped(Op::v_mul_u32_u24, 0xffffff, 0xffffff), 0xffffffffu);
    EXPECT_EQ(clamped(Op::v_sad_u32, 0, 0xffffffff, 2), 0xffffffffu);
}

TEST(Mode, OmodCountsOnlyWithoutDenormalsAndIeee) {
    const auto with_omod = [](u32 mode, float a, Op op = Op::v_add_f32) {
        Words words = vop3(op);
        words[1] |= put(enc::kVop3Omod, 1);
        Bench bench(words);
        bench.wave().mode = mode;
        bench.v(kSource[0]) = std::bit_cast<u32>(a);
        bench.v(kSource[1]) = 0x80000000;
        bench.run();
        return bench.v(kDst);
    };
    EXPECT_EQ(with_omod(0, 3.0f), std::bit_cast<u32>(6.0f));
    EXPECT_EQ(with_omod(0, -0.0f), 0u) << "-0 becomes +0";
    EXPECT_EQ(with_omod(kIeee, 3.0f), std::bit_cast<u32>(3.0f));
    EXPECT_EQ(with_omod(kSingleDenormals, 3.0f), std::bit_cast<u32>(3.0f));
    EXPECT_EQ(with_omod(kDoubleDenormals, 3.0f), std::bit_cast<u32>(6.0f));
    EXPECT_EQ(with_omod(kSingleDenormals, 3.0f, Op::v_rndne_f32), std::bit_cast<u32>(3.0f));
    EXPECT_EQ(with_omod(kDoubleDenormals, 3.0f, Op::v_rndne_f32), std::bit_cast<u32>(6.0f));
}

TEST(Mode, IeeeQuietsSignallingNansOfMinAndMax) {
    constexpr u32 signalling = 0x7fa00000, one = 0x3f800000;
    EXPECT_EQ(result(Op::v_min_f32, kAllow, signalling, one), 0x7fe00000u);
    EXPECT_EQ(result(Op::v_min_f32, kAllow & ~kIeee, signalling, one), one);
    EXPECT_EQ(result(Op::v_min_f32, kAllow, 0x7fc00000, one), one);
    EXPECT_EQ(result(Op::v_max_f16, kAllow, 0x7d00, 0x3c00), 0x7f00u);
}

TEST(Mode, HalvesThatOverflowBecomeTheLargestIfModeSaysSo) {
    constexpr u32 largest = 0x7bff, infinity = 0x7c00, mode = kAllow | kHalfOverflow;
    EXPECT_EQ(result(Op::v_add_f16, kAllow, largest, largest), infinity);
    EXPECT_EQ(result(Op::v_add_f16, mode, largest, largest), largest);
    EXPECT_EQ(result(Op::v_add_f16, mode, largest | 0x8000, largest | 0x8000), largest | 0x8000);
    EXPECT_EQ(result(Op::v_add_f16, mode, infinity, largest), infinity) << "infinity went in";
    EXPECT_EQ(result(Op::v_rcp_f16, mode, 0), infinity) << "division by zero";
    EXPECT_EQ(result(Op::v_cvt_f16_f32, mode, std::bit_cast<u32>(1e9f)), largest);
    EXPECT_EQ(result(Op::v_cvt_f16_f32, mode, 0x7f800000), infinity);
}

// ---- control

TEST(Control, SkippedVectorCodeDoesNothing) {
    Words program{enc::kSopc | put(enc::kSopcOp, info(Op::s_setvskip).code) |
                  put(enc::kSsrc0, 129) | put(enc::kSsrc1, 128)};  // s_setvskip 1, 0
    const Words add = vop3(Op::v_add_u32);
    program.insert(program.end(), add.begin(), add.end());
    program.push_back(0xbe840081);  // s_mov_b32 s4, 1: scalar code goes on
    Bench bench(program);
    bench.v(kDst) = 77;
    bench.v(kSource[0]) = 1;
    bench.run();
    EXPECT_EQ(bench.v(kDst), 77u);
    EXPECT_EQ(bench.s(4), 1u);
}

/// s_cbranch_g_fork to one of two assignments, both joined behind: every lane gets its own.
TEST(Control, ForkRunsBothPathsAndJoinsThem) {
    const auto mov = [](u32 value) {  // v_mov_b32 v8, value
        return enc::kVop1 | put(enc::kVop1Op, info(Op::v_mov_b32).code) | put(enc::kVdst, kDst) |
               (enc::kZero + value);
    };
    constexpr u32 branch_over_one = 0xbf820001;
    // s[4:5] the condition, s[6:7] the target; s20 the depth of forks before, 0
    Words program{enc::kSop2 | put(enc::kSop2Op, info(Op::s_cbranch_g_fork).code) |
                      put(enc::kSsrc0, 84) | put(enc::kSsrc1, 86),
                  mov(1),
                  branch_over_one,
                  mov(2),
                  enc::kSop1 | put(enc::kSop1Op, info(Op::s_cbranch_join).code) | enc::kZero,
                  0xbed80081};  // s_mov_b32 s88, 1
    Bench bench(program);
    constexpr u64 condition = 0x0000'ffff'0000'ffff;
    bench.wave().set_pair(static_cast<ScalarReg>(84), condition);
    bench.wave().set_pair(static_cast<ScalarReg>(86), bench.gpu.spec.entry + 12);
    bench.wave().set_pair(ScalarReg::Exec, ~u64{1});
    bench.v(kDst, 0) = 9;
    bench.run();
    EXPECT_EQ(bench.v(kDst, 0), 9u) << "lane 0 is off";
    for (unsigned l = 1; l < kLanes; ++l)
        EXPECT_EQ(bench.v(kDst, l), ((condition >> l) & 1) != 0 ? 2u : 1u) << l;
    EXPECT_EQ(bench.wave().exec(), ~condition & ~u64{1}) << "the path that went last";
    EXPECT_EQ(bench.s(88), 1u);
    EXPECT_EQ(bench.wave().mode >> 29, 0u) << "the stack of forks is empty again";
}

// ---- LDS

TEST(Lds, DirectOperandGivesOneValueToAllLanes) {
    Bench bench({enc::kVop1 | put(enc::kVop1Op, info(Op::v_mov_b32).code) | put(enc::kVdst, kDst) |
                 enc::kLdsDirect});
    constexpr u32 signed_byte = 4;
    bench.group.lds[33] = std::byte{0x85};
    bench.s(124) = 33 | (signed_byte << 16);
    bench.run();
    EXPECT_EQ(bench.v(kDst, 0), 0xffffff85u);
    EXPECT_EQ(bench.v(kDst, 63), 0xffffff85u);
}

TEST(Lds, OperationsOnTwoPlacesTakeTheSecondAtADistance) {
    const auto program = [](u32 offset) {
        return Words{enc::kDs | put(enc::kDsOp, info(Op::ds_add_src2_u32).code) | offset,
                     put(enc::kDsAddress, kSource[0])};
    };
    const auto sum = [&](u32 offset, u32 address) {
        Bench bench(program(offset));
        bench.wave().set_pair(ScalarReg::Exec, 1);
        bench.v(kSource[0]) = address;
        const std::array<u32, 2> values{1000, 234};
        std::memcpy(bench.group.lds.data() + 64, &values[0], 4);
        std::memcpy(bench.group.lds.data() + 72, &values[1], 4);
        bench.run();
        u32 out = 0;
        std::memcpy(&out, bench.group.lds.data() + 64, 4);
        return out;
    };
    EXPECT_EQ(sum(2, 64), 1234u) << "two dwords ahead";
    EXPECT_EQ(sum(0x8000, 64 | (2u << 17)), 1234u) << "the distance in the address";
    EXPECT_EQ(sum(0x7fff, 64), 1000u) << "one dword back: 0";
}

/// Lane 0 of an atomic on the first place of LDS, which holds `before`: what it holds then.
u32 lds_after(Op op, u32 mode, u32 before, u32 data, u32 second = 0) {
    Bench bench({enc::kDs | put(enc::kDsOp, info(op).code),
                 put(enc::kDsAddress, kSource[0]) | put(enc::kDsData0, kSource[1]) |
                     put(enc::kDsData1, info(op).data_operands > 1 ? kSource[2] : 0)});
    bench.wave().mode = mode;
    bench.wave().set_pair(ScalarReg::Exec, 1);
    bench.v(kSource[1]) = data;
    bench.v(kSource[2]) = second;
    std::memcpy(bench.group.lds.data(), &before, sizeof before);
    bench.run();
    u32 out = 0;
    std::memcpy(&out, bench.group.lds.data(), sizeof out);
    return out;
}

TEST(Lds, FloatAtomicsKeepOrFlushDenormalsAsModeSays) {
    constexpr u32 shift = 4, smallest = 0x00800000, half_of_it = 0x80400000, one = 0x3f800000;
    const auto mode = [](u32 denorm) { return (kAllow & ~kSingleDenormals) | (denorm << shift); };
    EXPECT_EQ(lds_after(Op::ds_add_f32, kAllow, kDenormSingle, 0), kDenormSingle);
    EXPECT_EQ(lds_after(Op::ds_add_f32, mode(kAllowOutput), kDenormSingle, 0), 0u) << "input";
    EXPECT_EQ(lds_after(Op::ds_add_f32, mode(kAllowOutput), smallest, half_of_it), smallest);
    EXPECT_EQ(lds_after(Op::ds_add_f32, mode(kAllowInput), smallest, half_of_it), 0u) << "output";
    EXPECT_EQ(lds_after(Op::ds_max_f32, mode(0), kDenormSingle, 0x80000000), 0u);
    EXPECT_EQ(lds_after(Op::ds_cmpst_f32, mode(0), kDenormSingle, 0, one), one);
    EXPECT_EQ(lds_after(Op::ds_cmpst_f32, mode(0), kDenormSingle, one, one), kDenormSingle)
        << "nothing is stored";
}

TEST(Lds, FloatAtomicsRoundToNearestWhateverModeSays) {
    constexpr u32 one = 0x3f800000, tiny = 0x30000000;
    for (u32 rounding = 0; rounding < 4; ++rounding)
        EXPECT_EQ(lds_after(Op::ds_add_f32, kAllow | rounding, one, tiny), one) << rounding;
}

}  // namespace
}  // namespace vgpu::test
