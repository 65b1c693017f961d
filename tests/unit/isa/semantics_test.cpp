// SPDX-License-Identifier: MIT
//
// What single instructions compute, on edge values, against references written here from the ISA
// manual; and the two builds of the execute unit against each other for every vector row.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/isa/encoding.h"
#include "tests/unit/isa/flat_gpu.h"

namespace vgpu::test {
namespace {

using softgpu::isa::Encoding;
using softgpu::isa::info;
using softgpu::isa::kLanes;
using softgpu::isa::Op;
using softgpu::isa::OpInfo;
using softgpu::isa::StopReason;
using softgpu::isa::Trait;
using softgpu::isa::Type;
using softgpu::isa::Variant;
using softgpu::isa::VgprRow;
using softgpu::isa::Workgroup;
namespace enc = softgpu::isa::enc;

using Words = std::vector<std::uint32_t>;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u32 kEndpgm = 0xbf810000;
constexpr u32 kDst = 8, kSrc0 = 12, kSrc1 = 16, kSrc2 = 20, kRegisters = 32;

bool is_wide(Type type) {
    return type == Type::u64 || type == Type::i64 || type == Type::f64;
}

std::uint32_t put(enc::Field field, u32 value) {
    return value << field.first;
}

/// The 64-bit form of a vector row on v12, v16 and v20 with its result in v8; masks in VCC.
Words vop3(Op op) {
    const OpInfo& row = info(op);
    const std::array<std::uint32_t, 3> vgprs{kSrc0, kSrc1, kSrc2};
    const u32 base = row.encoding == Encoding::Vop2    ? enc::kVop3OfVop2
                     : row.encoding == Encoding::Vop1  ? enc::kVop3OfVop1
                     : row.encoding == Encoding::Vop3p ? enc::kFirstVop3p
                                                       : 0;
    const auto source = [&](std::size_t i) -> u32 {
        if (row.src[i] == Type::none) return 0;
        return row.src[i] == Type::mask ? enc::kVcc : enc::kFirstVgpr + vgprs[i];
    };
    const u32 dst = row.dst == Type::mask ? enc::kVcc : kDst;
    const u32 sdst = row.trait == Trait::CarryOut ? put(enc::kVop3Sdst, enc::kVcc) : 0;
    return {enc::kVop3 | put(enc::kVop3Op, row.code + base) | put(enc::kVop3Vdst, dst) | sdst,
            put(enc::kVop3Src0, source(0)) | put(enc::kVop3Src1, source(1)) |
                put(enc::kVop3Src2, source(2))};
}

struct Bench {
    explicit Bench(Variant variant = softgpu::isa::variant()) : gpu(1u << 20, variant) {}

    /// Loads the words, followed by s_endpgm, and starts one wave.
    void prepare(Words words) {
        words.push_back(kEndpgm);
        gpu.load_words(words, kRegisters);
        gpu.set_grid({});
        gpu.start(group, {0, 0, 0});
    }
    VgprRow& v(u32 i) { return group.waves[0].vgprs[i]; }
    softgpu::isa::WaveState& wave() { return group.waves[0].state; }
    void set_wide(u32 i, unsigned lane, u64 value) {
        v(i).lane[lane] = softgpu::low32(value);
        v(i + 1).lane[lane] = softgpu::high32(value);
    }
    u64 wide(u32 i, unsigned lane) { return softgpu::join(v(i).lane[lane], v(i + 1).lane[lane]); }
    void run() {
        const auto result = softgpu::isa::run(group, gpu.context());
        ASSERT_EQ(result.reason, StopReason::AllWavesEnded);
    }

    FlatGpu gpu;
    Workgroup group;
};

constexpr std::array<u32, 16> kEdges{
    0,          1,          2,          31,       32,         0x7f,       0x7fffffff, 0x80000000,
    0xffffffff, 0xfffffffe, 0x00ffffff, 0x800000, 0x12345678, 0x87654321, 0xffff,     0x8000};

const std::array<float, 16> kFloatEdges{0.0f,
                                        -0.0f,
                                        1.0f,
                                        -1.0f,
                                        0.5f,
                                        1.5f,
                                        -2.5f,
                                        3.0e38f,
                                        -3.0e38f,
                                        1.0e-40f,
                                        -1.0e-40f,
                                        1.17549435e-38f,
                                        std::numeric_limits<float>::infinity(),
                                        -std::numeric_limits<float>::infinity(),
                                        std::numeric_limits<float>::quiet_NaN(),
                                        65535.5f};

/// Runs a row of 32-bit operands over all pairs of edge values and compares each lane.
void check_words(Op op, const std::array<u32, 16>& edges,
                 const std::function<u32(u32, u32, u32)>& expected, bool nan_is_nan = false) {
    for (unsigned third = 0; third < 16; third += 5) {
        for (unsigned quarter = 0; quarter < 4; ++quarter) {
            Bench bench;
            bench.prepare(vop3(op));
            for (unsigned l = 0; l < kLanes; ++l) {
                bench.v(kSrc0).lane[l] = edges[l % 16];
                bench.v(kSrc1).lane[l] = edges[quarter * 4 + l / 16];
                bench.v(kSrc2).lane[l] = edges[(third + l) % 16];
            }
            bench.run();
            for (unsigned l = 0; l < kLanes; ++l) {
                const u32 a = edges[l % 16];
                const u32 b = edges[quarter * 4 + l / 16];
                const u32 c = edges[(third + l) % 16];
                const u32 want = expected(a, b, c);
                const u32 got = bench.v(kDst).lane[l];
                if (nan_is_nan && std::isnan(std::bit_cast<float>(want)) &&
                    std::isnan(std::bit_cast<float>(got)))
                    continue;
                ASSERT_EQ(got, want)
                    << info(op).name << std::hex << " of " << a << ", " << b << ", " << c;
            }
        }
    }
}

std::array<u32, 16> float_edges() {
    std::array<u32, 16> out{};
    for (std::size_t i = 0; i < 16; ++i) out[i] = std::bit_cast<u32>(kFloatEdges[i]);
    return out;
}

void check_floats(Op op, const std::function<float(float, float, float)>& expected) {
    check_words(
        op, float_edges(),
        [&](u32 a, u32 b, u32 c) {
            return std::bit_cast<u32>(expected(std::bit_cast<float>(a), std::bit_cast<float>(b),
                                               std::bit_cast<float>(c)));
        },
        true);
}

using i64 = std::int64_t;
i64 signed_of(u32 a) {
    return static_cast<std::int32_t>(a);
}
u32 low(i64 a) {
    return static_cast<u32>(static_cast<u64>(a));
}
i64 signed24(u32 a) {
    return signed_of(a << 8) / 256;
}

TEST(Semantics, IntegerArithmeticOnEdgeValues) {
    check_words(Op::v_add_u32, kEdges, [](u32 a, u32 b, u32) { return a + b; });
    check_words(Op::v_sub_u32, kEdges, [](u32 a, u32 b, u32) { return a - b; });
    check_words(Op::v_subrev_u32, kEdges, [](u32 a, u32 b, u32) { return b - a; });
    check_words(Op::v_mul_lo_u32, kEdges, [](u32 a, u32 b, u32) { return a * b; });
    check_words(Op::v_mul_hi_u32, kEdges,
                [](u32 a, u32 b, u32) { return softgpu::high32(u64{a} * b); });
    check_words(Op::v_mul_hi_i32, kEdges, [](u32 a, u32 b, u32) {
        return softgpu::high32(static_cast<u64>(signed_of(a) * signed_of(b)));
    });
    check_words(Op::v_mad_i32_i24, kEdges,
                [](u32 a, u32 b, u32 c) { return low(signed24(a) * signed24(b) + signed_of(c)); });
    check_words(Op::v_mad_u32_u24, kEdges,
                [](u32 a, u32 b, u32 c) { return (a & 0xffffff) * (b & 0xffffff) + c; });
    check_words(Op::v_mul_hi_i32_i24, kEdges, [](u32 a, u32 b, u32) {
        return softgpu::high32(static_cast<u64>(signed24(a) * signed24(b)));
    });
    check_words(Op::v_sad_u32, kEdges,
                [](u32 a, u32 b, u32 c) { return low(std::abs(i64{a} - i64{b}) + i64{c}); });
    check_words(Op::v_add3_u32, kEdges, [](u32 a, u32 b, u32 c) { return a + b + c; });
    check_words(Op::v_xad_u32, kEdges, [](u32 a, u32 b, u32 c) { return (a ^ b) + c; });
}

TEST(Semantics, OrderAndMedianOnEdgeValues) {
    const auto min = [](auto a, auto b, auto c) { return std::min({a, b, c}); };
    const auto middle = [](auto a, auto b, auto c) {
        std::array sorted{a, b, c};
        std::ranges::sort(sorted);
        return sorted[1];
    };
    check_words(Op::v_min3_u32, kEdges, min);
    check_words(Op::v_med3_u32, kEdges, middle);
    check_words(Op::v_med3_i32, kEdges, [&](u32 a, u32 b, u32 c) {
        return low(middle(signed_of(a), signed_of(b), signed_of(c)));
    });
    check_words(Op::v_max3_i32, kEdges, [](u32 a, u32 b, u32 c) {
        return low(std::max({signed_of(a), signed_of(b), signed_of(c)}));
    });
    check_words(Op::v_min_i32, kEdges,
                [](u32 a, u32 b, u32) { return low(std::min(signed_of(a), signed_of(b))); });
    check_words(Op::v_max_u32, kEdges, [](u32 a, u32 b, u32) { return std::max(a, b); });
}

TEST(Semantics, ShiftsAndFieldsOnEdgeValues) {
    check_words(Op::v_lshlrev_b32, kEdges, [](u32 a, u32 b, u32) { return b << (a % 32); });
    check_words(Op::v_lshrrev_b32, kEdges, [](u32 a, u32 b, u32) { return b >> (a % 32); });
    check_words(Op::v_ashrrev_i32, kEdges,
                [](u32 a, u32 b, u32) { return low(signed_of(b) >> (a % 32)); });
    check_words(Op::v_bfe_u32, kEdges, [](u32 a, u32 b, u32 c) {
        u32 out = 0;
        for (u32 i = 0; i < c % 32 && b % 32 + i < 32; ++i) out |= ((a >> (b % 32 + i)) & 1) << i;
        return out;
    });
    check_words(Op::v_bfe_i32, kEdges, [](u32 a, u32 b, u32 c) {
        const u32 width = c % 32;
        if (width == 0) return 0u;
        const u64 extended = static_cast<u64>(signed_of(a)) >> (b % 32);
        const u64 field = extended % (u64{1} << width);
        const bool negative = ((field >> (width - 1)) & 1) != 0;
        return static_cast<u32>(negative ? field - (u64{1} << width) : field);
    });
    check_words(Op::v_bfi_b32, kEdges, [](u32 a, u32 b, u32 c) { return (a & b) | (~a & c); });
    check_words(Op::v_alignbit_b32, kEdges, [](u32 a, u32 b, u32 c) {
        return c % 32 == 0 ? b : (b >> (c % 32)) | (a << (32 - c % 32));
    });
    check_words(Op::v_lshl_add_u32, kEdges,
                [](u32 a, u32 b, u32 c) { return (a << (b % 32)) + c; });
    check_words(Op::v_and_or_b32, kEdges, [](u32 a, u32 b, u32 c) { return (a & b) | c; });
    check_words(Op::v_bfrev_b32, kEdges, [](u32 a, u32, u32) {
        u32 out = 0;
        for (u32 i = 0; i < 32; ++i) out |= ((a >> i) & 1) << (31 - i);
        return out;
    });
    check_words(Op::v_ffbh_u32, kEdges, [](u32 a, u32, u32) {
        for (u32 i = 0; i < 32; ++i)
            if (((a >> (31 - i)) & 1) != 0) return i;
        return ~0u;
    });
    check_words(Op::v_ffbl_b32, kEdges, [](u32 a, u32, u32) {
        for (u32 i = 0; i < 32; ++i)
            if (((a >> i) & 1) != 0) return i;
        return ~0u;
    });
    check_words(Op::v_ffbh_i32, kEdges, [](u32 a, u32, u32) {
        for (u32 i = 1; i < 32; ++i)
            if ((((a >> (31 - i)) ^ (a >> 31)) & 1) != 0) return i;
        return ~0u;
    });
}

TEST(Semantics, BytePermutationFollowsTheSelectorTable) {
    check_words(Op::v_perm_b32,
                {0x03020100, 0x07060504, 0x0b0a0908, 0x0c0d0e0f, 0x80ff7f01, 1, 2, 3, 0xdeadbeef,
                 0x00ff00ff, 0x0c0c0c0c, 0x08090a0b, 7, 8, 12, 13},
                [](u32 a, u32 b, u32 c) {
                    const auto byte = [&](u32 i) {
                        return ((i < 4 ? b : a) >> (8 * (i % 4))) & 0xff;
                    };
                    u32 out = 0;
                    for (u32 k = 0; k < 4; ++k) {
                        const u32 s = (c >> (8 * k)) & 0xff;
                        u32 value = 0xff;
                        if (s < 8) value = byte(s);
                        if (s >= 8 && s < 12) value = byte(2 * (s - 8) + 1) >= 0x80 ? 0xff : 0;
                        if (s == 12) value = 0;
                        out |= value << (8 * k);
                    }
                    return out;
                });
}

TEST(Semantics, FloatArithmeticIsThatOfIeee) {
    check_floats(Op::v_add_f32, [](float a, float b, float) { return a + b; });
    check_floats(Op::v_sub_f32, [](float a, float b, float) { return a - b; });
    check_floats(Op::v_mul_f32, [](float a, float b, float) { return a * b; });
    check_floats(Op::v_fma_f32, [](float a, float b, float c) { return std::fma(a, b, c); });
    const auto flushed = [](float x) {
        return std::isnormal(x) || x != x || std::isinf(x) ? x : std::copysign(0.0f, x);
    };
    check_floats(Op::v_rcp_f32, [&](float a, float, float) { return flushed(1.0f / flushed(a)); });
    check_floats(Op::v_sqrt_f32, [](float a, float, float) { return std::sqrt(a); });
    check_floats(Op::v_floor_f32, [](float a, float, float) { return std::floor(a); });
    check_floats(Op::v_trunc_f32, [](float a, float, float) { return std::trunc(a); });
    check_floats(Op::v_rndne_f32, [](float a, float, float) { return std::nearbyint(a); });
    check_floats(Op::v_mul_legacy_f32,
                 [](float a, float b, float) { return a == 0.0f || b == 0.0f ? 0.0f : a * b; });
}

TEST(Semantics, MinAndMaxOrderZerosAndPreferNumbers) {
    const auto min = [](float a, float b, float) {
        if (a == b) return std::signbit(a) ? a : b;
        return std::fmin(a, b);
    };
    const auto max = [](float a, float b, float) {
        if (a == b) return std::signbit(a) ? b : a;
        return std::fmax(a, b);
    };
    check_floats(Op::v_min_f32, min);
    check_floats(Op::v_max_f32, max);
}

TEST(Semantics, ConversionsSaturateAndNanBecomesZero) {
    const auto to_int = [](u32 bits, u32, u32) {
        const float a = std::bit_cast<float>(bits);
        if (std::isnan(a)) return 0u;
        const double bounded =
            std::fmin(std::fmax(std::trunc(double{a}), -2147483648.0), 2147483647.0);
        return low(static_cast<i64>(bounded));
    };
    const auto to_unsigned = [](u32 bits, u32, u32) {
        const float a = std::bit_cast<float>(bits);
        if (std::isnan(a)) return 0u;
        const double bounded = std::fmin(std::fmax(std::trunc(double{a}), 0.0), 4294967295.0);
        return static_cast<u32>(bounded);
    };
    check_words(Op::v_cvt_i32_f32, float_edges(), to_int);
    check_words(Op::v_cvt_u32_f32, float_edges(), to_unsigned);
    check_words(Op::v_cvt_f32_u32, kEdges,
                [](u32 a, u32, u32) { return std::bit_cast<u32>(static_cast<float>(a)); });
}

TEST(Semantics, EveryHalfSurvivesTheWayThroughSingle) {
    for (u32 first = 0; first < 0x10000; first += kLanes) {
        Bench bench;
        const u32 to_single = enc::kVop1 | put(enc::kVop1Op, info(Op::v_cvt_f32_f16).code) |
                              put(enc::kVdst, kSrc1) | (enc::kFirstVgpr + kSrc0);
        const u32 to_half = enc::kVop1 | put(enc::kVop1Op, info(Op::v_cvt_f16_f32).code) |
                            put(enc::kVdst, kDst) | (enc::kFirstVgpr + kSrc1);
        bench.prepare({to_single, to_half});
        for (u32 l = 0; l < kLanes; ++l) bench.v(kSrc0).lane[l] = first + l;
        bench.run();
        for (u32 l = 0; l < kLanes; ++l) {
            const u32 half = first + l;
            const bool is_nan = (half & 0x7fff) > 0x7c00;
            ASSERT_EQ(bench.v(kDst).lane[l], is_nan ? half | 0x200 : half) << half;
        }
    }
}

TEST(Semantics, SingleToHalfRoundsToNearestEven) {
    struct Case {
        float from;
        u32 to;
    };
    constexpr std::array<Case, 12> cases{{{1.0f, 0x3c00},
                                          {1.00048828125f, 0x3c00},
                                          {1.000489f, 0x3c01},
                                          {1.00146484375f, 0x3c02},
                                          {65504.0f, 0x7bff},
                                          {65519.0f, 0x7bff},
                                          {65520.0f, 0x7c00},
                                          {-1.0e9f, 0xfc00},
                                          {0x1p-24f, 0x0001},
                                          {0x1p-25f, 0x0000},
                                          {0x1.8p-25f, 0x0001},
                                          {-0x1.ffcp-15f, 0x8400}}};
    Bench bench;
    bench.prepare({enc::kVop1 | put(enc::kVop1Op, info(Op::v_cvt_f16_f32).code) |
                   put(enc::kVdst, kDst) | (enc::kFirstVgpr + kSrc0)});
    for (std::size_t l = 0; l < cases.size(); ++l)
        bench.v(kSrc0).lane[l] = std::bit_cast<u32>(cases[l].from);
    bench.run();
    for (std::size_t l = 0; l < cases.size(); ++l)
        EXPECT_EQ(bench.v(kDst).lane[l], cases[l].to) << cases[l].from;
}

/// The division sequence that the compiler emits, all steps in one program.
TEST(Semantics, DivisionSequenceGivesTheRoundedQuotient) {
    std::mt19937_64 generator(5);
    const auto& scale = info(Op::v_div_scale_f64);
    const auto words3 = [](const OpInfo& row, u32 dst, u32 a, u32 b, u32 c, u32 negate = 0) {
        const u32 sdst = row.trait == Trait::CarryOut ? put(enc::kVop3Sdst, enc::kVcc) : 0;
        return Words{enc::kVop3 | put(enc::kVop3Op, row.code) | put(enc::kVop3Vdst, dst) | sdst,
                     put(enc::kVop3Src0, enc::kFirstVgpr + a) |
                         put(enc::kVop3Src1, enc::kFirstVgpr + b) |
                         put(enc::kVop3Src2, enc::kFirstVgpr + c) | put(enc::kVop3Neg, negate)};
    };
    // v0 numerator, v2 denominator; v4, v6 scaled; v8 reciprocal; v10 error; v12 quotient.
    Words program;
    const auto add = [&](const Words& words) {
        program.insert(program.end(), words.begin(), words.end());
    };
    const OpInfo& fma = info(Op::v_fma_f64);
    constexpr u32 one = 24;
    add(words3(scale, 4, 2, 2, 0));
    add({enc::kVop1 | put(enc::kVop1Op, info(Op::v_rcp_f64).code) | put(enc::kVdst, 8) |
         (enc::kFirstVgpr + 4)});
    add(words3(fma, 10, 4, 8, one, 1));
    add(words3(fma, 8, 8, 10, 8));
    add(words3(fma, 10, 4, 8, one, 1));
    add(words3(fma, 8, 8, 10, 8));
    add(words3(scale, 6, 0, 2, 0));
    Words multiply = words3(info(Op::v_mul_f64), 12, 6, 8, 0);
    multiply[1] &= ~put(enc::kVop3Src2, 0x1ff);
    add(multiply);
    add(words3(fma, 14, 4, 12, 6, 1));
    add(words3(info(Op::v_div_fmas_f64), 16, 14, 8, 12));
    add(words3(info(Op::v_div_fixup_f64), 18, 16, 2, 0));
    for (unsigned round = 0; round < 200; ++round) {
        Bench bench;
        bench.prepare(program);
        for (unsigned l = 0; l < kLanes; ++l) {
            bench.set_wide(0, l, generator());
            bench.set_wide(2, l, generator());
            bench.set_wide(one, l, std::bit_cast<u64>(1.0));
        }
        std::array<double, kLanes> n{};
        std::array<double, kLanes> d{};
        for (unsigned l = 0; l < kLanes; ++l) {
            n[l] = std::bit_cast<double>(bench.wide(0, l));
            d[l] = std::bit_cast<double>(bench.wide(2, l));
        }
        bench.run();
        for (unsigned l = 0; l < kLanes; ++l) {
            const double want = n[l] / d[l];
            const double got = std::bit_cast<double>(bench.wide(18, l));
            if (std::isnan(want) && std::isnan(got)) continue;
            if (std::fpclassify(want) == FP_SUBNORMAL) continue;  // rounded twice by construction
            ASSERT_EQ(got, want) << n[l] << " / " << d[l];
        }
    }
}

TEST(Semantics, LanesThatAreOffKeepTheirRegisters) {
    Bench bench;
    bench.prepare(vop3(Op::v_add_u32));
    constexpr u64 exec = 0x00ff'0f0f'3355'8001;
    bench.wave().set_pair(softgpu::isa::ScalarReg::Exec, exec);
    for (unsigned l = 0; l < kLanes; ++l) {
        bench.v(kDst).lane[l] = 0xabc;
        bench.v(kSrc0).lane[l] = l;
        bench.v(kSrc1).lane[l] = 1000;
    }
    bench.run();
    for (unsigned l = 0; l < kLanes; ++l)
        EXPECT_EQ(bench.v(kDst).lane[l], ((exec >> l) & 1) != 0 ? 1000 + l : 0xabc) << l;
}

/// Whole wave after one instruction on random and special values, some lanes off.
Workgroup after(Op op, Variant variant, unsigned seed, bool clamp) {
    Bench bench(variant);
    Words words = vop3(op);
    const bool is_mask_writer = info(op).trait == Trait::CarryOut || info(op).dst == Type::mask;
    if (clamp && !is_mask_writer) words[0] |= put(enc::kVop3Clamp, 1);
    bench.prepare(words);
    std::mt19937 generator(seed);
    for (u32 r = 0; r < kRegisters; ++r)
        for (u32& word : bench.v(r).lane) {
            const u32 pick = static_cast<u32>(generator());
            word = pick % 3 == 0   ? kEdges[generator() % 16]
                   : pick % 3 == 1 ? std::bit_cast<u32>(kFloatEdges[generator() % 16])
                                   : static_cast<u32>(generator());
        }
    bench.wave().set_pair(softgpu::isa::ScalarReg::Vcc,
                          softgpu::join(u32(generator()), u32(generator())));
    if (seed % 2 != 0)
        bench.wave().set_pair(softgpu::isa::ScalarReg::Exec,
                              softgpu::join(u32(generator()), u32(generator())));
    bench.run();
    return std::move(bench.group);
}

bool is_nan_of(Type type, const Workgroup& group, unsigned lane) {
    const auto& rows = group.waves[0].vgprs;
    const u32 low_word = rows[kDst].lane[lane];
    if (type == Type::f64)
        return std::isnan(
            std::bit_cast<double>(softgpu::join(low_word, rows[kDst + 1].lane[lane])));
    if (type == Type::f16) return (low_word & 0x7fff) > 0x7c00;
    return std::isnan(std::bit_cast<float>(low_word));
}

TEST(Semantics, BothBuildsOfTheExecuteUnitGiveTheSameResults) {
    if (!softgpu::isa::has_variant(Variant::Avx2)) GTEST_SKIP() << "this processor has no AVX2";
    for (std::size_t k = 0; k < softgpu::isa::kOpCount; ++k) {
        const Op op = static_cast<Op>(k);
        const OpInfo& row = info(op);
        const bool is_vector = row.encoding >= Encoding::Vop2 && row.encoding <= Encoding::Vop3;
        if (!is_vector || row.trait == Trait::Constant || row.dst == Type::sgpr) continue;
        if (row.dst == Type::none || op == Op::v_swap_b32 || row.src[1] == Type::lane_value)
            continue;
        for (unsigned seed = 0; seed < 4; ++seed) {
            const Workgroup one = after(op, Variant::Baseline, seed, seed >= 2);
            const Workgroup two = after(op, Variant::Avx2, seed, seed >= 2);
            EXPECT_EQ(one.waves[0].state.scalar, two.waves[0].state.scalar) << row.name;
            for (unsigned l = 0; l < kLanes; ++l) {
                if (is_nan_of(row.dst, one, l) && is_nan_of(row.dst, two, l)) continue;
                EXPECT_EQ(one.waves[0].vgprs[kDst].lane[l], two.waves[0].vgprs[kDst].lane[l])
                    << row.name << " lane " << l;
                if (!is_wide(row.dst)) continue;
                EXPECT_EQ(one.waves[0].vgprs[kDst + 1].lane[l],
                          two.waves[0].vgprs[kDst + 1].lane[l])
                    << row.name << " lane " << l;
            }
        }
    }
}

TEST(Semantics, FloatModeOfTheWaveChangesRoundingAndDenormals) {
    constexpr u32 up = 1;
    Bench bench;
    bench.prepare(vop3(Op::v_add_f32));
    bench.wave().mode = (bench.wave().mode & ~3u) | up;
    bench.v(kSrc0).lane[0] = std::bit_cast<u32>(1.0f);
    bench.v(kSrc1).lane[0] = std::bit_cast<u32>(0x1p-30f);
    bench.run();
    EXPECT_EQ(bench.v(kDst).lane[0], std::bit_cast<u32>(std::nextafter(1.0f, 2.0f)));

    Bench flush;
    flush.prepare(vop3(Op::v_add_f32));
    flush.wave().mode &= ~0x30u;  // single-precision denormals off
    flush.v(kSrc0).lane[0] = std::bit_cast<u32>(1.0e-40f);
    flush.v(kSrc1).lane[0] = std::bit_cast<u32>(1.0e-40f);
    flush.run();
    EXPECT_EQ(flush.v(kDst).lane[0], 0u);
}

TEST(Semantics, HalfPrecisionOverflowFollowsTheRoundingMode) {
    constexpr u32 toward_zero = 3u << 2;
    for (const bool truncates : {false, true}) {
        Bench bench;
        bench.prepare(vop3(Op::v_cvt_f16_f32));
        if (truncates) bench.wave().mode |= toward_zero;
        bench.v(kSrc0).lane[0] = std::bit_cast<u32>(1.0e9f);
        bench.v(kSrc0).lane[1] = std::bit_cast<u32>(-65535.0f);
        bench.v(kSrc0).lane[2] = std::bit_cast<u32>(1.0009765f);
        bench.run();
        EXPECT_EQ(bench.v(kDst).lane[0], truncates ? 0x7bffu : 0x7c00u);
        EXPECT_EQ(bench.v(kDst).lane[1], truncates ? 0xfbffu : 0xfc00u);
        EXPECT_EQ(bench.v(kDst).lane[2], truncates ? 0x3c00u : 0x3c01u);
    }
}

TEST(Semantics, RegistersThatTheKernelDoesNotHaveAreNotTouched) {
    Bench bench;
    // v_add_u32 v200, v12, v16 and v_mov_b32 v8, v201 with 32 registers.
    bench.prepare({enc::kVop2 | put(enc::kVop2Op, info(Op::v_add_u32).code) | put(enc::kVdst, 200) |
                       put(enc::kVsrc1, kSrc1) | (enc::kFirstVgpr + kSrc0),
                   enc::kVop1 | put(enc::kVop1Op, info(Op::v_mov_b32).code) |
                       put(enc::kVdst, kDst) | (enc::kFirstVgpr + 201)});
    bench.v(0).lane.fill(77);
    bench.run();
    EXPECT_EQ(bench.v(kDst).lane[5], 77u);  // sources out of range read v0
}

/// Random words as a program: it may do anything but leave its wave and its memory.
TEST(Robustness, RandomProgramsStayInsideTheirWave) {
    std::mt19937 generator(23);
    for (unsigned round = 0; round < 3000; ++round) {
        FlatGpu gpu(1u << 18);
        Words words;
        while (words.size() < 48) {
            const Words pair{static_cast<u32>(generator()), static_cast<u32>(generator())};
            const auto decoded = softgpu::isa::decode(pair);
            const bool is_rare_illegal = decoded.op == Op::Illegal && generator() % 16 != 0;
            if (!is_rare_illegal)
                words.insert(words.end(), pair.begin(), pair.begin() + decoded.size / 4);
        }
        gpu.load_words(words, 8 + generator() % 64 / 4 * 4);
        gpu.spec.lds_bytes = 1024;
        gpu.set_grid({{128, 1, 1}, {128, 1, 1}});
        Workgroup group;
        gpu.start(group, {0, 0, 0});
        for (auto& wave : group.waves) {
            for (u32 s = 0; s < 100; s += 2) wave.state.scalar[s] = 0x7f00'0000u + s * 64;
            for (auto& row : wave.vgprs)
                for (u32& word : row.lane) word = static_cast<u32>(generator());
        }
        (void)softgpu::isa::run(group, gpu.context(2000));
    }
}

}  // namespace
}  // namespace vgpu::test
