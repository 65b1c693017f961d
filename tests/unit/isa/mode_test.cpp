// SPDX-License-Identifier: MIT
//
// What MODE, the modifiers and M0 change about vector operations: denormals, rounding, CLAMP, OMOD,
// overflow of halves, skipped vector code; and forks, LDS as an operand, buffers with formats.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>

#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/isa/encoding.h"
#include "tests/unit/isa/flat_gpu.h"
#include "tests/unit/isa/soft_float.h"

namespace vgpu::test {
namespace {

namespace enc = softgpu::isa::enc;
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
using Words = std::vector<std::uint32_t>;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u32 kEndpgm = 0xbf810000, kDst = 8;
constexpr std::array<u32, 3> kSource{12, 16, 20};
constexpr u32 kSingleDenormals = 0x30, kDoubleDenormals = 0xc0, kAllowInput = 1, kAllowOutput = 2;
constexpr u32 kDx10Clamp = 1u << 8, kIeee = 1u << 9, kHalfOverflow = 1u << 23;
constexpr u32 kDenormHalf = 0x0003, kDenormSingle = 0x00000003;

u32 put(enc::Field field, u32 value) {
    return value << field.first;
}

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

/// One wave of 32 registers; lane 0 is what most tests look at.
struct Bench {
    explicit Bench(Words words) {
        words.push_back(kEndpgm);
        gpu.load_words(words, 32);
        gpu.set_grid({});
        gpu.spec.lds_bytes = 1024;
        gpu.start(group, {0, 0, 0});
    }
    softgpu::isa::WaveState& wave() { return group.waves[0].state; }
    u32& v(u32 i, unsigned lane = 0) { return group.waves[0].vgprs[i].lane[lane]; }
    u32& s(u32 i) { return wave().scalar[i]; }
    void set_wide(u32 i, u64 value) {
        v(i) = softgpu::low32(value);
        v(i + 1) = softgpu::high32(value);
    }
    u64 wide(u32 i) { return softgpu::join(v(i), v(i + 1)); }
    void run() {
        ASSERT_EQ(softgpu::isa::run(group, gpu.context()).reason, StopReason::AllWavesEnded);
    }
    FlatGpu gpu{1u << 20};
    Workgroup group;
};

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
    const auto with_omod = [](u32 mode, float a) {
        Words words = vop3(Op::v_add_f32);
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

// ---- buffers with formats

/// Stores v12.. in lane 0 to a buffer of one element, loads them back to v8.., gives memory too.
struct Typed {
    std::array<u32, 4> loaded{};
    std::array<u32, 4> memory{};
};

Typed through_memory(Op store, Op load, u32 format, const std::array<u32, 4>& values) {
    const auto words = [&](Op op, u32 vdata) {
        return Words{
            enc::kMtbuf | put(enc::kMtbufOp, info(op).code) | put(enc::kMtbufFormat, format),
            put(enc::kMubufVdata, vdata) | put(enc::kMubufSrsrc, 20) |
                put(enc::kMubufSoffset, enc::kZero)};
    };
    Words program = words(store, 12);
    const Words second = words(load, 8);
    program.insert(program.end(), second.begin(), second.end());
    Bench bench(program);
    const u64 va = bench.gpu.allocate(64);
    bench.s(80) = softgpu::low32(va);
    bench.s(81) = softgpu::high32(va);
    bench.s(82) = 16;
    bench.wave().set_pair(ScalarReg::Exec, 1);
    for (u32 k = 0; k < 4; ++k) bench.v(12 + k) = values[k];
    bench.run();
    Typed out;
    for (u32 k = 0; k < 4; ++k) out.loaded[k] = bench.v(8 + k);
    const auto bytes = bench.gpu.download<u32>(va, 4);
    std::copy(bytes.begin(), bytes.end(), out.memory.begin());
    return out;
}

constexpr u32 format(u32 data, u32 number) {
    return data | (number << enc::kNumberFormat.first);
}
constexpr u32 kUnorm = 0, kSnorm = 1, kUint = 4, kSint = 5, kFloat = 7;
constexpr u32 k8888 = 10, k16_16 = 5, k32x4 = 14, k2_10_10_10 = 9, k11_11_10 = 6;

u32 bits(float x) {
    return std::bit_cast<u32>(x);
}

TEST(TypedBuffer, NormalisedBytesAreRoundedAndBounded) {
    const Typed t =
        through_memory(Op::tbuffer_store_format_xyzw, Op::tbuffer_load_format_xyzw,
                       format(k8888, kUnorm), {bits(0.0f), bits(1.0f), bits(0.5f), bits(7.0f)});
    EXPECT_EQ(t.memory[0], 0xff80ff00u);
    EXPECT_EQ(t.loaded, (std::array<u32, 4>{0, bits(1.0f), bits(128.0f / 255.0f), bits(1.0f)}));
    const Typed s = through_memory(Op::tbuffer_store_format_xy, Op::tbuffer_load_format_xyzw,
                                   format(k16_16, kSnorm), {bits(-1.0f), bits(0.25f), 0, 0});
    EXPECT_EQ(s.memory[0], 0x20008001u);
    EXPECT_EQ(s.loaded, (std::array<u32, 4>{bits(-1.0f), bits(8192.0f / 32767.0f), 0, bits(1.0f)}))
        << "components that are not there are 0, 0, 1";
}

TEST(TypedBuffer, IntegersAndFloatsKeepTheirBits) {
    const std::array<u32, 4> values{1, 0x80000000, 0xffffffff, 0x7fc00001};
    for (const u32 number : {kUint, kSint, kFloat})
        EXPECT_EQ(through_memory(Op::tbuffer_store_format_xyzw, Op::tbuffer_load_format_xyzw,
                                 format(k32x4, number), values)
                      .loaded,
                  values);
    const Typed t = through_memory(Op::tbuffer_store_format_xyzw, Op::tbuffer_load_format_xyzw,
                                   format(k2_10_10_10, kSint), {0x1ff, 0x3ff, 0x200, 3});
    EXPECT_EQ(t.loaded, (std::array<u32, 4>{0x1ff, 0xffffffff, 0xfffffe00, 0xffffffff}));
}

TEST(TypedBuffer, SmallFloatsHaveNoSign) {
    const Typed t =
        through_memory(Op::tbuffer_store_format_xyz, Op::tbuffer_load_format_xyz,
                       format(k11_11_10, kFloat), {bits(1.5f), bits(-2.0f), bits(0.25f), 0});
    EXPECT_EQ(t.loaded[0], bits(1.5f));
    EXPECT_EQ(t.loaded[1], 0u);
    EXPECT_EQ(t.loaded[2], bits(0.25f));
}

TEST(TypedBuffer, HalfRegistersHoldTwoComponents) {
    const Typed t =
        through_memory(Op::tbuffer_store_format_d16_xyzw, Op::tbuffer_load_format_d16_xyzw,
                       format(k8888, kUnorm), {0x3c00'3800, 0x0000'3c00, 0, 0});
    EXPECT_EQ(t.memory[0], 0x00ffff80u);
    EXPECT_EQ(t.loaded[0] >> 16, 0x3c00u);
    EXPECT_EQ(t.loaded[1], 0x0000'3c00u);
}

TEST(Buffer, RecordsCountWhereTheInstructionGivesAnIndex) {
    // buffer_load_dword v8, v12, s[80:83], 0 idxen, and with offen: stride 8, 3 records
    for (const bool indexed : {true, false}) {
        const u32 mode = indexed ? put(enc::kMubufIdxen, 1) : put(enc::kMubufOffen, 1);
        Bench bench({enc::kMubuf | put(enc::kMubufOp, info(Op::buffer_load_dword).code) | mode,
                     put(enc::kMubufVaddr, 12) | put(enc::kMubufVdata, 8) |
                         put(enc::kMubufSrsrc, 20) | put(enc::kMubufSoffset, enc::kZero)});
        const u64 va = bench.gpu.upload(std::vector<u32>(64, 5));
        bench.s(80) = softgpu::low32(va);
        bench.s(81) = softgpu::high32(va) | (8u << 16);
        bench.s(82) = 3;
        for (unsigned l = 0; l < kLanes; ++l) bench.v(12, l) = l;
        bench.run();
        EXPECT_EQ(bench.v(8, 2), indexed ? 5u : 0u) << "record 2, or bytes 2 to 5 of 3";
        EXPECT_EQ(bench.v(8, 3), 0u);
    }
}

TEST(Buffer, LoadsMayGoToLds) {
    Bench bench({enc::kMubuf | put(enc::kMubufOp, info(Op::buffer_load_dword).code) |
                     put(enc::kMubufLds, 1) | put(enc::kMubufOffen, 1),
                 put(enc::kMubufVaddr, 12) | put(enc::kMubufVdata, 8) | put(enc::kMubufSrsrc, 20) |
                     put(enc::kMubufSoffset, enc::kZero)});
    std::vector<u32> values(kLanes);
    for (u32 l = 0; l < kLanes; ++l) values[l] = 1000 + l;
    const u64 va = bench.gpu.upload(values);
    bench.s(80) = softgpu::low32(va);
    bench.s(81) = softgpu::high32(va);
    bench.s(82) = kLanes * 4;
    bench.s(124) = 16;
    for (unsigned l = 0; l < kLanes; ++l) bench.v(12, l) = l * 4;
    bench.run();
    u32 last = 0;
    std::memcpy(&last, bench.group.lds.data() + 16 + 63 * 4, 4);
    EXPECT_EQ(last, 1063u);
    EXPECT_EQ(bench.v(8, 63), 0u) << "no register is written";
}

/// buffer_OP v8, v12, s[80:83], 0 offen offset:48 on private memory of 16 dwords per lane: dword k
/// of lane l holds 100 * k + l before; v12 is the same in all lanes.
struct Private {
    static constexpr u32 kDwords = 16;

    Private(Op op, u32 offset, u32 low = 0, u32 high = 0)
        : bench({enc::kMubuf | put(enc::kMubufOp, info(op).code) | put(enc::kMubufOffen, 1) | 48,
                 put(enc::kMubufVaddr, 12) | put(enc::kMubufVdata, 8) | put(enc::kMubufSrsrc, 20) |
                     put(enc::kMubufSoffset, enc::kZero)}) {
        std::vector<u32> before;
        for (u32 k = 0; k < kDwords; ++k)
            for (u32 l = 0; l < kLanes; ++l) before.push_back(100 * k + l);
        const u64 va = bench.gpu.upload(before);
        bench.s(80) = softgpu::low32(va);
        bench.s(81) = softgpu::high32(va) | (1u << 31);  // swizzled
        bench.s(82) = ~0u;
        bench.s(83) = (1u << 23) | (3u << 21);  // lane number added; the lanes of a dword: 64
        for (unsigned l = 0; l < kLanes; ++l) {
            bench.v(8, l) = low;
            bench.v(9, l) = high;
            bench.v(12, l) = offset;
        }
        bench.run();
        memory = bench.gpu.download<u32>(va, kDwords * kLanes);
    }
    [[nodiscard]] u32 dword(u32 k, u32 lane) const { return memory[k * kLanes + lane]; }
    Bench bench;
    std::vector<u32> memory;
};

TEST(Buffer, NegativeOffsetsOfPrivateMemoryWrapAround) {
    constexpr u32 offset = 0xffffffe4;  // 48 - 28 = 20: dword 5
    Private load(Op::buffer_load_dword, offset);
    Private wide(Op::buffer_load_dwordx2, offset);
    const Private store(Op::buffer_store_dword, offset, 7);
    const Private both(Op::buffer_store_dwordx2, offset, 7, 8);
    const Private byte(Op::buffer_store_byte, offset + 1, 0xab);
    const Private add(Op::buffer_atomic_add, offset, 1000);
    for (const u32 l : {0u, 63u}) {
        EXPECT_EQ(load.bench.v(8, l), 500 + l);
        EXPECT_EQ(wide.bench.v(8, l), 500 + l);
        EXPECT_EQ(wide.bench.v(9, l), 600 + l);
        EXPECT_EQ(store.dword(5, l), 7u);
        EXPECT_EQ(both.dword(5, l), 7u);
        EXPECT_EQ(both.dword(6, l), 8u);
        EXPECT_EQ(byte.dword(5, l), ((500 + l) & 0xffff00ffu) | 0xab00u);
        EXPECT_EQ(add.dword(5, l), 1500 + l);
        EXPECT_EQ(add.dword(6, l), 600 + l);
    }
}

TEST(Buffer, OffsetsOfOtherBuffersDoNotWrap) {
    Bench bench({enc::kMubuf | put(enc::kMubufOp, info(Op::buffer_load_dword).code) |
                     put(enc::kMubufOffen, 1) | 4,
                 put(enc::kMubufVaddr, 12) | put(enc::kMubufVdata, 8) | put(enc::kMubufSrsrc, 20) |
                     put(enc::kMubufSoffset, enc::kZero)});
    const u64 va = bench.gpu.upload(std::vector<u32>(64, 5));
    bench.s(80) = softgpu::low32(va);
    bench.s(81) = softgpu::high32(va);
    bench.s(82) = 256;
    bench.v(12, 0) = ~0u;  // out of bounds on purpose, as compilers put what must not be stored
    bench.v(12, 1) = 8;
    bench.run();
    EXPECT_EQ(bench.v(8, 0), 0u);
    EXPECT_EQ(bench.v(8, 1), 5u);
}

// ---- scalar memory

TEST(ScalarMemory, ScratchOffsetsInRegistersCount64Bytes) {
    Bench bench({enc::kSmem | put(enc::kSmemOp, info(Op::s_scratch_load_dword).code) |
                     put(enc::kSmemData, 88) | put(enc::kSmemBase, 40),
                 6});  // s_scratch_load_dword s88, s[80:81], s6
    std::vector<u32> values(64);
    values[32] = 77;
    const u64 va = bench.gpu.upload(values);
    bench.s(80) = softgpu::low32(va);
    bench.s(81) = softgpu::high32(va);
    bench.s(6) = 2;
    bench.run();
    EXPECT_EQ(bench.s(88), 77u);
}

TEST(ScalarMemory, BufferAtomicsStayInsideTheBuffer) {
    for (const bool inside : {true, false}) {
        Bench bench({enc::kSmem | put(enc::kSmemOp, info(Op::s_buffer_atomic_add).code) |
                         put(enc::kSmemData, 88) | put(enc::kSmemBase, 40) | put(enc::kSmemImm, 1) |
                         put(enc::kSmemGlc, 1),
                     inside ? 4u : 8u});
        const u64 va = bench.gpu.upload(std::vector<u32>{5, 6, 7});
        bench.s(80) = softgpu::low32(va);
        bench.s(81) = softgpu::high32(va);
        bench.s(82) = 8;
        bench.s(88) = 100;
        bench.run();
        EXPECT_EQ(bench.s(88), inside ? 6u : 0u);
        EXPECT_EQ(bench.gpu.download<u32>(va, 3),
                  (inside ? std::vector<u32>{5, 106, 7} : std::vector<u32>{5, 6, 7}));
    }
}

}  // namespace
}  // namespace vgpu::test
