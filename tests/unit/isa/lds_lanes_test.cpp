// SPDX-License-Identifier: MIT
//
// Operations of LDS that are not one access per lane: counters of all lanes, exchanges of two
// places, swizzles; by the manual's words, in both builds of the execute unit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>

#include "pf-driver/softgpu/isa/encoding.h"
#include "tests/unit/isa/flat_gpu.h"

namespace vgpu::test {
namespace {

namespace enc = softgpu::isa::enc;
using softgpu::isa::info;
using softgpu::isa::kLanes;
using softgpu::isa::Op;
using softgpu::isa::ScalarReg;
using softgpu::isa::StopReason;
using softgpu::isa::Variant;
using softgpu::isa::Workgroup;
using Words = std::vector<std::uint32_t>;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u32 kEndpgm = 0xbf810000, kRegisters = 32, kOldResult = 0xa5a5'5a5a;
constexpr u32 kAddress = 2, kData = 4, kSecondData = 6, kResult = 12;

u32 put(enc::Field field, u32 value) {
    return value << field.first;
}

/// A wave with LDS, which holds `words` from 0 on.
class LdsBench {
public:
    LdsBench(Variant variant, Words program, const std::vector<u32>& words)
        : gpu_(1u << 16, variant) {
        program.push_back(kEndpgm);
        gpu_.load_words(program, kRegisters);
        gpu_.set_grid({});
        gpu_.spec.lds_bytes = kLdsBytes;
        gpu_.start(group_, {0, 0, 0});
        std::ranges::copy(std::as_bytes(std::span(words)), group_.lds.begin());
    }
    void run() {
        ASSERT_EQ(softgpu::isa::run(group_, gpu_.context()).reason, StopReason::AllWavesEnded);
    }
    u32& v(u32 i, unsigned lane) { return group_.waves[0].vgprs[i].lane[lane]; }
    softgpu::isa::WaveState& state() { return group_.waves[0].state; }
    [[nodiscard]] u32 lds(u64 word) const {
        u32 out = 0;
        std::memcpy(&out, group_.lds.data() + word * 4, 4);
        return out;
    }

private:
    static constexpr u32 kLdsBytes = 16384;
    FlatGpu gpu_;
    Workgroup group_;
};

class LdsLanes : public testing::TestWithParam<Variant> {
protected:
    void SetUp() override {
        if (!softgpu::isa::has_variant(GetParam())) GTEST_SKIP() << "this processor has no AVX2";
    }
};

INSTANTIATE_TEST_SUITE_P(Builds, LdsLanes, testing::Values(Variant::Baseline, Variant::Avx2),
                         [](const auto& parameters) {
                             return parameters.param == Variant::Avx2 ? "Avx2" : "Baseline";
                         });

TEST_P(LdsLanes, AppendAndConsumeCountLanes) {
    constexpr u64 exec = 0x8001'0000'f00f'0001;
    constexpr u32 base = 8, offset = 12, before = 100, lanes = 11;
    for (const Op op : {Op::ds_append, Op::ds_consume}) {
        LdsBench bench(
            GetParam(),
            {enc::kDs | put(enc::kDsOp, info(op).code) | offset, put(enc::kDsVdst, kResult)},
            std::vector<u32>(16, before));
        bench.state().scalar[static_cast<u32>(ScalarReg::M0)] = base;
        bench.state().set_pair(ScalarReg::Exec, exec);
        for (unsigned l = 0; l < kLanes; ++l) bench.v(kResult, l) = kOldResult;
        bench.run();
        EXPECT_EQ(bench.lds((base + offset) / 4),
                  op == Op::ds_append ? before + lanes : before - lanes);
        EXPECT_EQ(bench.lds((base + offset) / 4 + 1), before);
        for (unsigned l = 0; l < kLanes; ++l)
            EXPECT_EQ(bench.v(kResult, l), ((exec >> l) & 1) != 0 ? before : kOldResult) << l;
    }
}

TEST_P(LdsLanes, ExchangesOfTwoPlacesGiveBothBack) {
    struct Case {
        Op op;
        u32 words, stride_words;
    };
    constexpr u32 first_offset = 1, second_offset = 3, lane = 37, address_words = 10;
    for (const Case& c :
         {Case{Op::ds_wrxchg2_rtn_b32, 1, 1}, Case{Op::ds_wrxchg2st64_rtn_b32, 1, 64},
          Case{Op::ds_wrxchg2_rtn_b64, 2, 2}, Case{Op::ds_wrxchg2st64_rtn_b64, 2, 128}}) {
        std::vector<u32> words(2048);
        std::iota(words.begin(), words.end(), 5000);
        LdsBench bench(
            GetParam(),
            {enc::kDs | put(enc::kDsOp, info(c.op).code) | first_offset | (second_offset << 8),
             put(enc::kDsAddress, kAddress) | put(enc::kDsData0, kData) |
                 put(enc::kDsData1, kSecondData) | put(enc::kDsVdst, kResult)},
            words);
        bench.state().set_pair(ScalarReg::Exec, u64{1} << lane);
        bench.v(kAddress, lane) = address_words * 4;
        for (u32 k = 0; k < 4; ++k) bench.v(kData + k, lane) = 100 + k;
        bench.run();
        const u32 first = address_words + first_offset * c.stride_words;
        const u32 second = address_words + second_offset * c.stride_words;
        for (u32 k = 0; k < c.words; ++k) {
            EXPECT_EQ(bench.v(kResult + k, lane), 5000 + first + k) << info(c.op).name;
            EXPECT_EQ(bench.v(kResult + c.words + k, lane), 5000 + second + k) << info(c.op).name;
            EXPECT_EQ(bench.lds(first + k), 100 + k) << info(c.op).name;
            EXPECT_EQ(bench.lds(second + k), 100 + kSecondData - kData + k) << info(c.op).name;
        }
    }
}

TEST_P(LdsLanes, ExchangesOfOnePlaceWithItselfReadItTwiceAndLeaveTheSecondValue) {
    constexpr u32 lane = 2, before = 77;
    LdsBench bench(GetParam(),
                   {enc::kDs | put(enc::kDsOp, info(Op::ds_wrxchg2_rtn_b32).code),
                    put(enc::kDsAddress, kAddress) | put(enc::kDsData0, kData) |
                        put(enc::kDsData1, kSecondData) | put(enc::kDsVdst, kResult)},
                   {before});
    bench.state().set_pair(ScalarReg::Exec, u64{1} << lane);
    bench.v(kData, lane) = 1;
    bench.v(kSecondData, lane) = 2;
    bench.run();
    EXPECT_EQ(bench.v(kResult, lane), before);
    EXPECT_EQ(bench.v(kResult + 1, lane), before);
    EXPECT_EQ(bench.lds(0), 2u);
}

/// Lanes 0 to 31 of a swizzle of lane numbers that begin at 1; all others off read 0.
std::vector<u32> swizzled(Variant variant, u32 pattern, u64 exec = ~u64{0}) {
    LdsBench bench(variant,
                   {enc::kDs | put(enc::kDsOp, info(Op::ds_swizzle_b32).code) | pattern,
                    put(enc::kDsAddress, kAddress) | put(enc::kDsVdst, kResult)},
                   {});
    bench.state().set_pair(ScalarReg::Exec, exec);
    for (unsigned l = 0; l < kLanes; ++l) bench.v(kAddress, l) = l + 1;
    bench.run();
    std::vector<u32> out(kLanes / 2);
    for (unsigned l = 0; l < out.size(); ++l) {
        out[l] = bench.v(kResult, l);
        const bool is_same_above = out[l] == 0 || bench.v(kResult, l + 32) == out[l] + 32;
        EXPECT_TRUE(is_same_above || exec != ~u64{0}) << "lanes 32 to 63 do the same: " << l;
    }
    return out;
}

TEST_P(LdsLanes, SwizzlesOfGroupsOf32TakeMasks) {
    constexpr u32 xor_1 = (1u << 10) | 0x1f, broadcast_7 = 7u << 5;
    EXPECT_EQ(swizzled(GetParam(), xor_1)[6], 8u);
    EXPECT_EQ(swizzled(GetParam(), broadcast_7), std::vector<u32>(32, 8));
    EXPECT_EQ(swizzled(GetParam(), xor_1, 0x7f)[6], 0u) << "from a lane that is off";
}

TEST_P(LdsLanes, SwizzlesOfGroupsOfFourNameEachLane) {
    const std::vector<u32> out = swizzled(GetParam(), 0x8000 | 0b00'01'10'11);
    EXPECT_EQ(std::vector<u32>(out.begin() + 4, out.begin() + 8), (std::vector<u32>{8, 7, 6, 5}));
}

/// Examples of the manual, DS_SWIZZLE_B32.
TEST_P(LdsLanes, RotationsKeepTheLaneBitsOfTheMask) {
    constexpr u32 rotate = 0xc000 | (1u << 5), right = 1u << 10;
    const auto first = [&](u32 pattern) {
        const std::vector<u32> out = swizzled(GetParam(), pattern);
        return std::vector<u32>(out.begin(), out.begin() + 4);
    };
    EXPECT_EQ(first(rotate), (std::vector<u32>{2, 3, 4, 5}));
    EXPECT_EQ(first(rotate | right), (std::vector<u32>{0x20, 1, 2, 3}));
    EXPECT_EQ(first(rotate | 1), (std::vector<u32>{1, 4, 3, 6}));
    EXPECT_EQ(first(rotate | right | 1), (std::vector<u32>{0x1f, 2, 1, 4}));
}

TEST_P(LdsLanes, SwizzlesForFourierTransformsReverseTheBitsOutsideTheMask) {
    constexpr u32 fourier = 0xe000;
    const auto first = [&](u32 pattern) {
        const std::vector<u32> out = swizzled(GetParam(), pattern);
        return std::vector<u32>(out.begin(), out.begin() + 8);
    };
    EXPECT_EQ(first(fourier), (std::vector<u32>{1, 0x11, 9, 0x19, 5, 0x15, 0xd, 0x1d}));
    EXPECT_EQ(first(fourier | 0x10), (std::vector<u32>{1, 9, 5, 0xd, 3, 0xb, 7, 0xf}));
    EXPECT_EQ(first(fourier | 0x1f), (std::vector<u32>{1, 2, 3, 4, 5, 6, 7, 8}));
}

}  // namespace
}  // namespace vgpu::test
