// SPDX-License-Identifier: MIT
//
// Every row of arithmetic against its independent reference, on edge values and random ones, in
// both builds of the execute unit. A row without a reference fails unless it is listed with a
// reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>

#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/isa/encoding.h"
#include "tests/unit/isa/flat_gpu.h"
#include "tests/unit/isa/reference.h"
#include "tests/unit/isa/soft_float.h"

namespace vgpu::test {
namespace {

namespace enc = softgpu::isa::enc;
using softgpu::isa::Encoding;
using softgpu::isa::info;
using softgpu::isa::kLanes;
using softgpu::isa::kOpCount;
using softgpu::isa::Op;
using softgpu::isa::OpInfo;
using softgpu::isa::ScalarReg;
using softgpu::isa::StopReason;
using softgpu::isa::Trait;
using softgpu::isa::Type;
using softgpu::isa::Variant;
using softgpu::isa::Workgroup;
using Words = std::vector<std::uint32_t>;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u32 kEndpgm = 0xbf810000;
constexpr u32 kDst = 8, kRegisters = 32;
constexpr std::array<u32, 3> kSource{12, 16, 20};
constexpr u64 kOldResult = 0xa5a5'5a5a'0ff0'f00f;

u32 put(enc::Field field, u32 value) {
    return value << field.first;
}
bool is_wide(Type type) {
    return type == Type::u64 || type == Type::i64 || type == Type::f64;
}
bool is_short(Type type) {
    return type == Type::u16 || type == Type::i16 || type == Type::f16;
}

bool is_vector(const OpInfo& row) {
    return row.encoding >= Encoding::Vop2 && row.encoding <= Encoding::Vop3p;
}
bool is_scalar(const OpInfo& row) {
    return row.encoding <= Encoding::Sopk;
}

/// The 64-bit form of a vector row; masks in VCC.
Words vop3(Op op) {
    const OpInfo& row = info(op);
    const u32 base = row.encoding == Encoding::Vop2    ? enc::kVop3OfVop2
                     : row.encoding == Encoding::Vop1  ? enc::kVop3OfVop1
                     : row.encoding == Encoding::Vop3p ? enc::kFirstVop3p
                                                       : 0;
    const auto source = [&](std::size_t i) -> u32 {
        if (row.src[i] == Type::none) return 0;
        return row.src[i] == Type::mask ? enc::kVcc : enc::kFirstVgpr + kSource[i];
    };
    const u32 dst = row.dst == Type::mask ? enc::kVcc : kDst;
    const u32 sdst = row.trait == Trait::CarryOut ? put(enc::kVop3Sdst, enc::kVcc) : 0;
    Words words{enc::kVop3 | put(enc::kVop3Op, row.code + base) | put(enc::kVop3Vdst, dst) | sdst,
                put(enc::kVop3Src0, source(0)) | put(enc::kVop3Src1, source(1)) |
                    put(enc::kVop3Src2, source(2))};
    const bool is_packed = row.encoding == Encoding::Vop3p && row.src[0] != Type::f32;
    if (!is_packed) return words;
    words[0] |= put(enc::kVop3pOpSelHi2, 1);
    words[1] |= put(enc::kVop3pOpSelHi, 3);
    return words;
}

/// One wave that runs the same few words over and over on other registers.
class Wave {
public:
    explicit Wave(Variant variant) : gpu_(16u << 20, variant) {}
    void load(Words words) {
        words.push_back(kEndpgm);
        gpu_.load_words(words, kRegisters);
        gpu_.set_grid({});
    }
    void restart() { gpu_.start(group_, {0, 0, 0}); }
    softgpu::isa::WaveState& state() { return group_.waves[0].state; }
    void set(u32 first, unsigned lane, u64 value) {
        group_.waves[0].vgprs[first].lane[lane] = softgpu::low32(value);
        group_.waves[0].vgprs[first + 1].lane[lane] = softgpu::high32(value);
    }
    u64 get(u32 first, unsigned lane) {
        return softgpu::join(group_.waves[0].vgprs[first].lane[lane],
                             group_.waves[0].vgprs[first + 1].lane[lane]);
    }
    [[nodiscard]] bool run() {
        return softgpu::isa::run(group_, gpu_.context()).reason == StopReason::AllWavesEnded;
    }

private:
    FlatGpu gpu_;
    Workgroup group_;
};

// ---- values

constexpr std::array<u64, 16> kIntegers{
    0,          1,          2,          31,       32,         0x7f,       0x7fffffff, 0x80000000,
    0xffffffff, 0xfffffffe, 0x00ffffff, 0x800000, 0x12345678, 0x87654321, 0xffff,     0x8000};
constexpr std::array<u64, 22> kHalves{
    0x0000, 0x8000, 0x3c00, 0xbc00, 0x3800, 0x3e00, 0xc100, 0x7bff, 0xfbff, 0x0001, 0x8001,
    0x03ff, 0x0400, 0x7c00, 0xfc00, 0x7e00, 0x7c01, 0xfd00, 0x3555, 0x4248, 0x0200, 0x3bff};
constexpr std::array<u64, 22> kSingles{
    0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x3f000000, 0x3fc00000, 0xc0200000, 0x7f7fffff,
    0xff7fffff, 0x00000001, 0x80000001, 0x007fffff, 0x00800000, 0x7f800000, 0xff800000, 0x7fc00000,
    0x7f800001, 0xffa00000, 0x477fff00, 0x4f000000, 0x7e800001, 0x3f7fffff};
constexpr std::array<u64, 18> kDoubles{0x0000000000000000, 0x8000000000000000, 0x3ff0000000000000,
                                       0xbff0000000000000, 0x3fe0000000000000, 0x4004000000000000,
                                       0x7fefffffffffffff, 0xffefffffffffffff, 0x0000000000000001,
                                       0x8000000000000001, 0x000fffffffffffff, 0x0010000000000000,
                                       0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000,
                                       0x7ff0000000000001, 0x41dfffffffc00000, 0xc1e0000000000000};

/// Edges of the type a third of the time, numbers of usual size a third, any bits a third.
u64 draw(Type type, std::mt19937_64& generator) {
    const u64 random = generator();
    const u64 pick = generator();
    const auto edge = [&](const auto& values) { return values[pick / 3 % values.size()]; };
    switch (type) {
        case Type::f16:
            if (pick % 3 == 0) return edge(kHalves);
            return pick % 3 == 1 ? (random & 0x8fff) + 0x3000 : random & 0xffff;
        case Type::f32:
            if (pick % 3 == 0) return edge(kSingles);
            return pick % 3 == 1 ? (random & 0x87ffffff) + 0x3c000000 : random & 0xffffffff;
        case Type::f64:
            if (pick % 3 == 0) return edge(kDoubles);
            return pick % 3 == 1 ? (random & 0x80ffffffffffffff) + 0x3f80000000000000 : random;
        case Type::u64:
        case Type::i64:
            return pick % 3 == 0 ? edge(kIntegers) | (edge(kIntegers) << 32) : random;
        default:
            return pick % 3 == 0 ? edge(kIntegers) : random & 0xffffffff;
    }
}

/// What a value looks like to the operation: its width, for packed operations both halves.
u64 as_type(u64 value, Type type) {
    if (is_wide(type)) return value;
    return type == Type::mask ? value & 1 : value & 0xffffffff;
}

FloatFormat format_of(Type type) {
    return type == Type::f16 ? kHalf : (type == Type::f32 ? kSingle : kDouble);
}

u64 ordered(u64 bits, FloatFormat format) {
    return (bits & format.sign()) != 0 ? format.sign() - (bits & (format.sign() - 1))
                                       : format.sign() + bits;
}

/// Equal, or both NaN, or as near as the reference allows.
bool is_close(u64 got, u64 want, Type type, u64 ulp, double absolute = 0) {
    if (got == want) return true;
    if (type != Type::f16 && type != Type::f32 && type != Type::f64) return false;
    const FloatFormat format = format_of(type);
    if (format.is_nan(got) && format.is_nan(want)) return true;
    if (format.is_nan(got) || format.is_nan(want)) return false;
    const Quad error = unpack(got, format) - unpack(want, format);
    if (absolute > 0 && error <= static_cast<Quad>(absolute) &&
        -error <= static_cast<Quad>(absolute))
        return true;
    const u64 x = ordered(got, format), y = ordered(want, format);
    return (x > y ? x - y : y - x) <= ulp;
}

/// The type whose halves are compared one by one.
bool is_packed_float(const OpInfo& row) {
    return row.encoding == Encoding::Vop3p && row.src[0] == Type::f16;
}
bool has_half_pairs(Op op) {
    return is_packed_float(info(op)) || op == Op::v_cvt_pkrtz_f16_f32 || op == Op::v_pack_b32_f16;
}

bool is_right(Op op, u64 got, u64 want, const Reference& reference) {
    const u64 ulp = reference.ulp;
    const OpInfo& row = info(op);
    if (op == Op::v_pack_b32_f16) return got == want;
    if (op == Op::v_mad_mix_f32) return is_close(got, want, Type::f32, 0);
    if (op == Op::v_mad_mixlo_f16)
        return is_close(got & 0xffff, want & 0xffff, Type::f16, 0) &&
               (got >> 16) == ((kOldResult >> 16) & 0xffff);
    if (op == Op::v_mad_mixhi_f16)
        return is_close(got >> 16, want >> 16, Type::f16, 0) &&
               (got & 0xffff) == (kOldResult & 0xffff);
    if (row.trait == Trait::KeepsHigh)
        return is_close(got & 0xffff, want, row.dst, ulp) &&
               (got >> 16) == ((kOldResult >> 16) & 0xffff);
    if (has_half_pairs(op))
        return is_close(got & 0xffff, want & 0xffff, Type::f16, 0) &&
               is_close(got >> 16, want >> 16, Type::f16, 0);
    return is_close(got, want, row.dst, ulp, reference.absolute);
}

struct Draws {
    std::array<Operands, kLanes> lanes;
    u64 vcc = 0;
};

/// What reads the old destination instead of a third source.
bool reads_result(const OpInfo& row) {
    return row.trait == Trait::OldResult;
}

Draws fill(Wave& wave, Op op, std::mt19937_64& generator) {
    const OpInfo& row = info(op);
    Draws out;
    out.vcc = generator();
    for (unsigned l = 0; l < kLanes; ++l) {
        std::array<u64, 3> values{};
        for (std::size_t k = 0; k < 3; ++k) {
            if (row.src[k] == Type::none) continue;
            u64 value = draw(row.src[k], generator);
            if (is_packed_float(row) || is_short(row.src[k]))
                value |= draw(row.src[k], generator) << 16;
            if (row.src[k] == Type::mask) value = (out.vcc >> l) & 1;
            values[k] = as_type(value, row.src[k]);
            if (row.src[k] != Type::mask) wave.set(kSource[k], l, values[k]);
        }
        // Old results are what accumulators add to; for 16-bit results the other half stays known.
        const u64 old =
            reads_result(row) && !is_wide(row.dst) ? draw(row.dst, generator) : kOldResult;
        wave.set(kDst, l, old);
        if (reads_result(row)) values[2] = old;
        out.lanes[l] = {values[0], values[1], values[2], l, 0};
    }
    wave.state().set_pair(ScalarReg::Vcc, out.vcc);
    return out;
}

void check_vector(Wave& wave, Op op, const Reference& reference, unsigned rounds) {
    const OpInfo& row = info(op);
    wave.load(vop3(op));
    std::mt19937_64 generator(static_cast<u64>(op) * 7919 + 3);
    for (unsigned round = 0; round < rounds; ++round) {
        wave.restart();
        const Draws draws = fill(wave, op, generator);
        ASSERT_TRUE(wave.run()) << row.name;
        for (unsigned l = 0; l < kLanes; ++l) {
            const Operands& o = draws.lanes[l];
            const u64 got = is_wide(row.dst) ? wave.get(kDst, l) : wave.get(kDst, l) & 0xffffffff;
            const u64 want = reference.value(o);
            ASSERT_TRUE(is_right(op, got, want, reference))
                << std::hex << row.name << " of " << o.a << ", " << o.b << ", " << o.c << " gives "
                << got << " instead of " << want;
            if (reference.flag == nullptr) continue;
            ASSERT_EQ((wave.state().vcc() >> l) & 1, reference.flag(o) & 1)
                << std::hex << row.name << " of " << o.a << ", " << o.b << ", " << o.c << ": mask";
        }
    }
}

void check_comparison(Wave& wave, Op op, unsigned rounds) {
    const OpInfo& row = info(op);
    wave.load(vop3(op));
    std::mt19937_64 generator(static_cast<u64>(op) * 7919 + 3);
    for (unsigned round = 0; round < rounds; ++round) {
        wave.restart();
        const Draws draws = fill(wave, op, generator);
        ASSERT_TRUE(wave.run()) << row.name;
        for (unsigned l = 0; l < kLanes; ++l) {
            const Operands& o = draws.lanes[l];
            ASSERT_EQ((wave.state().vcc() >> l) & 1, compare_reference(row.name, o) ? 1u : 0u)
                << std::hex << row.name << " of " << o.a << ", " << o.b;
        }
        if (row.trait != Trait::WritesExec) continue;
        ASSERT_EQ(wave.state().exec(), wave.state().vcc()) << row.name;
    }
}

class ReferenceTest : public testing::TestWithParam<Variant> {
protected:
    void SetUp() override {
        if (!softgpu::isa::has_variant(GetParam())) GTEST_SKIP() << "this processor has no AVX2";
    }
    static constexpr unsigned kRounds = 12;
    Wave wave{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Builds, ReferenceTest, testing::Values(Variant::Baseline, Variant::Avx2),
                         [](const auto& parameters) {
                             return parameters.param == Variant::Avx2 ? "Avx2" : "Baseline";
                         });

TEST_P(ReferenceTest, EveryVectorRowComputesWhatItsReferenceDoes) {
    for (std::size_t k = 0; k < kOpCount; ++k) {
        const Op op = static_cast<Op>(k);
        const OpInfo& row = info(op);
        if (!is_vector(row) || row.encoding == Encoding::Vopc) continue;
        const auto found = vector_references().find(row.name);
        if (rows_without_reference().contains(row.name)) continue;
        ASSERT_NE(found, vector_references().end()) << row.name << " has no reference";
        check_vector(wave, op, found->second, kRounds);
    }
}

TEST_P(ReferenceTest, EveryComparisonHoldsWhereItsNameSays) {
    for (std::size_t k = 0; k < kOpCount; ++k)
        if (info(static_cast<Op>(k)).encoding == Encoding::Vopc)
            check_comparison(wave, static_cast<Op>(k), kRounds / 3);
}

/// Scalar rows that are control flow, or move between registers that operands do not name.
bool is_control(const OpInfo& row) {
    static constexpr std::array<std::string_view, 19> kNames{
        "s_getpc_b64",       "s_setpc_b64",        "s_swappc_b64",     "s_rfe_b64",
        "s_rfe_restore_b64", "s_cbranch_g_fork",   "s_cbranch_i_fork", "s_cbranch_join",
        "s_movrels_b32",     "s_movrels_b64",      "s_movreld_b32",    "s_movreld_b64",
        "s_set_gpr_idx_idx", "s_set_gpr_idx_on",   "s_setvskip",       "s_getreg_b32",
        "s_setreg_b32",      "s_setreg_imm32_b32", "s_call_b64"};
    const std::string name = row.name;
    const bool is_exec =
        name.find("saveexec") != std::string::npos || name.find("wrexec") != std::string::npos;
    return is_exec || std::ranges::find(kNames, name) != kNames.end();
}

Words scalar_words(const OpInfo& row, u32 constant) {
    const u32 dst = row.dst == Type::none ? 0 : put(enc::kSdst, 8);
    switch (row.encoding) {
        case Encoding::Sop2:
            return {enc::kSop2 | put(enc::kSop2Op, row.code) | dst | put(enc::kSsrc0, 4) |
                    put(enc::kSsrc1, 6)};
        case Encoding::Sop1:
            return {enc::kSop1 | put(enc::kSop1Op, row.code) | dst | put(enc::kSsrc0, 4)};
        case Encoding::Sopc:
            return {enc::kSopc | put(enc::kSopcOp, row.code) | put(enc::kSsrc0, 4) |
                    put(enc::kSsrc1, 6)};
        default:
            return {enc::kSopk | put(enc::kSopkOp, row.code) | put(enc::kSdst, 8) | constant};
    }
}

void check_scalar(Wave& wave, Op op, const Reference& reference, std::mt19937_64& generator) {
    const OpInfo& row = info(op);
    const bool has_constant = row.encoding == Encoding::Sopk;
    const u32 constant = static_cast<u32>(generator() & 0xffff);
    wave.load(scalar_words(row, constant));
    for (unsigned round = 0; round < 60; ++round) {
        wave.restart();
        Operands o;
        o.a = as_type(draw(row.src[0], generator), has_constant ? Type::u32 : row.src[0]);
        o.b = as_type(draw(row.src[1], generator), row.src[1]);
        u64 old = draw(Type::u64, generator);
        o.scc = static_cast<u32>(generator() & 1);
        if (has_constant) {
            old = as_type(draw(Type::u32, generator), Type::u32);
            o = {old, constant, 0, 0, o.scc};
        }
        o.c = is_wide(row.dst) ? old : old & 0xffffffff;
        wave.state().set_pair(static_cast<ScalarReg>(4), o.a);
        wave.state().set_pair(static_cast<ScalarReg>(6), o.b);
        wave.state().set_pair(static_cast<ScalarReg>(8), old);
        wave.state().scc = static_cast<std::uint8_t>(o.scc);
        ASSERT_TRUE(wave.run()) << row.name;
        const u64 result = wave.state().pair(static_cast<ScalarReg>(8));
        if (reference.value != nullptr) {
            const u64 got = is_wide(row.dst) ? result : result & 0xffffffff;
            ASSERT_EQ(got, reference.value(o))
                << std::hex << row.name << " of " << o.a << ", " << o.b << ", " << o.c;
        }
        const u64 flag = reference.flag != nullptr ? reference.flag(o) & 1 : o.scc;
        ASSERT_EQ(wave.state().scc, flag)
            << std::hex << row.name << " of " << o.a << ", " << o.b << ": SCC";
    }
}

TEST(Reference, EveryScalarRowComputesWhatItsReferenceDoes) {
    Wave wave(softgpu::isa::variant());
    std::mt19937_64 generator(17);
    for (std::size_t k = 0; k < kOpCount; ++k) {
        const Op op = static_cast<Op>(k);
        const OpInfo& row = info(op);
        if (!is_scalar(row) || is_control(row)) continue;
        const auto found = scalar_references().find(row.name);
        ASSERT_NE(found, scalar_references().end()) << row.name << " has no reference";
        check_scalar(wave, op, found->second, generator);
    }
}

TEST(Reference, ExecIsSavedAndReplaced) {
    struct Case {
        Op op;
        u64 (*value)(u64 a, u64 exec);
        bool saves;
    };
    const std::array<Case, 12> cases{{
        {Op::s_and_saveexec_b64, [](u64 a, u64 e) { return a & e; }, true},
        {Op::s_or_saveexec_b64, [](u64 a, u64 e) { return a | e; }, true},
        {Op::s_xor_saveexec_b64, [](u64 a, u64 e) { return a ^ e; }, true},
        {Op::s_andn2_saveexec_b64, [](u64 a, u64 e) { return a & ~e; }, true},
        {Op::s_orn2_saveexec_b64, [](u64 a, u64 e) { return a | ~e; }, true},
        {Op::s_nand_saveexec_b64, [](u64 a, u64 e) { return ~(a & e); }, true},
        {Op::s_nor_saveexec_b64, [](u64 a, u64 e) { return ~(a | e); }, true},
        {Op::s_xnor_saveexec_b64, [](u64 a, u64 e) { return ~(a ^ e); }, true},
        {Op::s_andn1_saveexec_b64, [](u64 a, u64 e) { return ~a & e; }, true},
        {Op::s_orn1_saveexec_b64, [](u64 a, u64 e) { return ~a | e; }, true},
        {Op::s_andn1_wrexec_b64, [](u64 a, u64 e) { return ~a & e; }, false},
        {Op::s_andn2_wrexec_b64, [](u64 a, u64 e) { return a & ~e; }, false},
    }};
    std::mt19937_64 generator(5);
    Wave wave(softgpu::isa::variant());
    for (const Case& c : cases) {
        wave.load(scalar_words(info(c.op), 0));
        for (unsigned round = 0; round < 8; ++round) {
            wave.restart();
            const u64 a = round == 0 ? 0 : generator();
            const u64 exec = round == 0 ? 0 : generator();
            wave.state().set_pair(static_cast<ScalarReg>(4), a);
            wave.state().set_pair(ScalarReg::Exec, exec);
            ASSERT_TRUE(wave.run());
            const u64 want = c.value(a, exec);
            EXPECT_EQ(wave.state().exec(), want) << info(c.op).name;
            EXPECT_EQ(wave.state().pair(static_cast<ScalarReg>(8)), c.saves ? exec : want);
            EXPECT_EQ(wave.state().scc, want != 0 ? 1 : 0);
        }
    }
}

// ---- rows of the list without a reference

TEST_P(ReferenceTest, SwapExchangesTwoRegisters) {
    wave.load({enc::kVop1 | put(enc::kVop1Op, info(Op::v_swap_b32).code) | put(enc::kVdst, kDst) |
               (enc::kFirstVgpr + kSource[0])});
    wave.restart();
    constexpr u64 exec = 0xf0f0'1234'0000'ffff;
    wave.state().set_pair(ScalarReg::Exec, exec);
    for (unsigned l = 0; l < kLanes; ++l) {
        wave.set(kDst, l, l);
        wave.set(kSource[0], l, 1000 + l);
    }
    ASSERT_TRUE(wave.run());
    for (unsigned l = 0; l < kLanes; ++l) {
        const bool on = ((exec >> l) & 1) != 0;
        EXPECT_EQ(wave.get(kDst, l) & 0xffffffff, on ? 1000 + l : l);
        EXPECT_EQ(wave.get(kSource[0], l) & 0xffffffff, on ? l : 1000 + l);
    }
}

TEST_P(ReferenceTest, LanesAreReadAndWrittenByNumber) {
    const auto words3 = [](Op op, u32 dst, u32 a, u32 b) {
        return Words{enc::kVop3 | put(enc::kVop3Op, info(op).code) | put(enc::kVop3Vdst, dst),
                     put(enc::kVop3Src0, a) | put(enc::kVop3Src1, b)};
    };
    Words program = words3(Op::v_readlane_b32, 20, enc::kFirstVgpr + 12, 4);
    const Words write = words3(Op::v_writelane_b32, kDst, 5, 4);
    program.insert(program.end(), write.begin(), write.end());
    program.push_back(enc::kVop1 | put(enc::kVop1Op, info(Op::v_readfirstlane_b32).code) |
                      put(enc::kVdst, 21) | (enc::kFirstVgpr + 12));
    wave.load(program);
    for (const u32 lane : {0u, 17u, 63u, 64u + 5u}) {
        wave.restart();
        wave.state().scalar[4] = lane;
        wave.state().scalar[5] = 0xabcd;
        wave.state().set_pair(ScalarReg::Exec, u64{1} << 9);
        for (unsigned l = 0; l < kLanes; ++l) wave.set(12, l, 500 + l);
        ASSERT_TRUE(wave.run());
        EXPECT_EQ(wave.state().scalar[20], 500 + lane % 64) << "lanes that are off are read, too";
        EXPECT_EQ(wave.get(kDst, lane % 64) & 0xffffffff, 0xabcdu);
        EXPECT_EQ(wave.state().scalar[21], 509u);
    }
}

TEST_P(ReferenceTest, MultiplyAddsTakeTheirConstant) {
    struct Case {
        Op op;
        u32 constant, a, b, want;
    };
    constexpr u32 two = 0x40000000, three = 0x40400000, five = 0x40a00000;
    constexpr u32 half_two = 0x4000, half_three = 0x4200, half_five = 0x4500;
    // madmk: a * k + b; madak: a * b + k
    for (const Case& c : {Case{Op::v_madmk_f32, five, two, three, 0x41500000},
                          Case{Op::v_madak_f32, five, two, three, 0x41300000},
                          Case{Op::v_madmk_f16, half_five, half_two, half_three, 0x4a80},
                          Case{Op::v_madak_f16, half_five, half_two, half_three, 0x4980}}) {
        wave.load({enc::kVop2 | put(enc::kVop2Op, info(c.op).code) | put(enc::kVdst, kDst) |
                       put(enc::kVsrc1, kSource[1]) | (enc::kFirstVgpr + kSource[0]),
                   c.constant});
        wave.restart();
        wave.set(kSource[0], 3, c.a);
        wave.set(kSource[1], 3, c.b);
        ASSERT_TRUE(wave.run());
        EXPECT_EQ(wave.get(kDst, 3) & 0xffffffff, c.want) << info(c.op).name;
    }
}

TEST_P(ReferenceTest, TrigPreopGivesTheBitsOfTwoOverPi) {
    wave.load(vop3(Op::v_trig_preop_f64));
    wave.restart();
    for (unsigned l = 0; l < kLanes; ++l) {
        wave.set(kSource[0], l, 0x3ff0000000000000);
        wave.set(kSource[1], l, l % 3);
    }
    ASSERT_TRUE(wave.run());
    Quad sum = 0;
    for (unsigned l = 3; l-- > 0;) sum += twice(wave.get(kDst, l));
    // 2/pi to 113 bits, from its hexadecimal expansion
    const Quad want = static_cast<Quad>(0xa2f9836e4e441529) * power_of_two(-64) +
                      static_cast<Quad>(0xfc2757d1f534ddc0) * power_of_two(-128);
    const Quad error = sum > want ? sum - want : want - sum;
    EXPECT_TRUE(error < power_of_two(-110));
}

TEST_P(ReferenceTest, MaskedQuadSadOfWords) {
    wave.load(vop3(Op::v_mqsad_u32_u8));
    wave.restart();
    wave.set(kSource[0], 7, 0x0807'0605'0403'0201);
    wave.set(kSource[1], 7, 0x0a00'0a0a);
    wave.set(kSource[2], 7, 100 | (u64{200} << 32));
    wave.set(kSource[2] + 2, 7, 300 | (u64{0xffff'fff8} << 32));
    ASSERT_TRUE(wave.run());
    // bytes 1 2 (3) 4 against 10 10 (0) 10, then from one byte further each time
    EXPECT_EQ(wave.get(kDst, 7), (100 + 9 + 8 + 6) | (u64{200 + 8 + 7 + 5} << 32));
    EXPECT_EQ(wave.get(kDst + 2, 7), (300 + 7 + 6 + 4) | (u64{0xffff'ffff} << 32));
}

}  // namespace
}  // namespace vgpu::test
