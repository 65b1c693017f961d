// SPDX-License-Identifier: MIT
//
// Every atomic on memory and on LDS against its independent reference, on edge and random values,
// in both builds of the execute unit: some lanes off, lanes that meet at one place, misaligned
// places, places outside, memory without a host address, through every way to name a place, with
// and without the old value. What lanes do to one place happens in the order of lanes.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/isa/encoding.h"
#include "tests/unit/isa/flat_gpu.h"
#include "tests/unit/isa/memory_atomics_reference.h"
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
using softgpu::isa::Variant;
using softgpu::isa::Workgroup;
using Words = std::vector<std::uint32_t>;
using Bytes = std::vector<std::byte>;
using Generator = std::mt19937_64;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u32 kEndpgm = 0xbf810000, kRegisters = 32;
// vector and scalar registers of the instruction
constexpr u32 kAddress = 2, kData = 4, kSecondData = 6, kResult = 12;
constexpr u32 kBaseSgpr = 4, kOffsetSgpr = 6, kBufferSgpr = 8, kScalarData = 16;
constexpr u32 kOldResult = 0xa5a5'5a5a;
/// What is written into the instruction's offset; addresses are lower by it.
constexpr u32 kOffset = 16;
/// What the second place of an operation on two is away.
constexpr u32 kDistanceDwords = 7;
/// Bytes that the atomics of one run may reach, from place 0 on.
constexpr u32 kReach = 1024;

u32 put(enc::Field field, u32 value) {
    return value << field.first;
}

/// How lanes name places.
enum class Way : std::uint8_t { Vector, ScalarBase, SharedWindow, PrivateWindow, Buffer, Lds };
/// Where the lanes' places are.
enum class Layout : std::uint8_t { Apart, Crowded, Misaligned };

struct Trial {
    Way way = Way::Vector;
    Layout layout = Layout::Apart;
    bool is_indirect = false;  ///< pages have no host address
    bool returns = true;       ///< GLC
};

/// What every lane brings, and what the places hold before.
struct Draws {
    Bytes memory;
    std::array<u32, kLanes> place{};
    std::array<u64, kLanes> first{};
    std::array<u64, kLanes> second{};
    u64 exec = 0;
};

// ---- values

constexpr std::array<u64, 12> kEdges32{0,          1,          2,          0x7fffffff,
                                       0x80000000, 0x80000001, 0xffffffff, 0xfffffffe,
                                       0x00000010, 0x7f800000, 0x7fc00000, 0xff800000};
constexpr std::array<u64, 12> kEdges64{0,
                                       1,
                                       2,
                                       0x7fffffffffffffff,
                                       0x8000000000000000,
                                       0xffffffff,
                                       0x80000000,
                                       0xffffffffffffffff,
                                       0xfffffffffffffffe,
                                       0x7ff0000000000000,
                                       0x10,
                                       0x7ff8000000000000};

u64 draw_value(const AtomicReference& reference, Generator& generator) {
    const u64 random = generator();
    const auto& edges = reference.bits == 64 ? kEdges64 : kEdges32;
    if (generator() % 2 == 0) return edges[random % edges.size()];
    if (reference.bits == 64) return random;
    const u64 word = random & 0xffffffff;
    const bool is_usual = reference.is_float && generator() % 2 == 0;
    return is_usual ? (word & 0x83ffffff) + 0x3e000000 : word;
}

u64 load(const Bytes& bytes, u64 at, unsigned bits) {
    u64 out = 0;
    std::memcpy(&out, bytes.data() + at, bits / 8);
    return out;
}
void store(Bytes& bytes, u64 at, unsigned bits, u64 value) {
    std::memcpy(bytes.data() + at, &value, bits / 8);
}

/// Lanes' scratch is apart; else they share places.
bool is_private(Way way) {
    return way == Way::PrivateWindow;
}
u32 draw_place(Layout layout, unsigned lane, Generator& generator) {
    constexpr u32 cell = 8, few = 4;
    if (layout == Layout::Apart) return kOffset + (lane * 5 % kLanes) * cell;
    if (layout == Layout::Crowded) return kOffset + static_cast<u32>(generator() % few) * cell;
    return kOffset + static_cast<u32>(generator() % (kReach - kOffset - cell));
}

Draws draw(const AtomicReference& reference, const Trial& trial, Generator& generator) {
    Draws out;
    const u32 copies = is_private(trial.way) ? kLanes : 1;
    out.memory.resize(std::size_t{kReach} * copies);
    for (u32 at = 0; at < out.memory.size(); at += reference.bits / 8)
        store(out.memory, at, reference.bits, draw_value(reference, generator));
    out.exec = generator() | generator();
    for (unsigned l = 0; l < kLanes; ++l) {
        out.place[l] = draw_place(trial.layout, l, generator);
        out.first[l] = draw_value(reference, generator);
        out.second[l] = draw_value(reference, generator);
        // Comparisons with what is there are to hold often.
        const u64 there = load(out.memory, out.place[l], reference.bits);
        if (generator() % 4 == 0) out.first[l] = there;
        if (generator() % 4 == 0) out.second[l] = there;
    }
    return out;
}

/// Places beyond the reach of LDS and of buffers: they hold 0 and nothing can be put there.
void move_some_outside(Draws& draws, Generator& generator) {
    for (u32& place : draws.place)
        if (generator() % 8 == 0) place = kReach - 2 + static_cast<u32>(generator() % 64);
}

// ---- what is expected

struct Expected {
    Bytes memory;
    std::array<u64, kLanes> old{};
};

class Model {
public:
    Model(const Draws& draws, unsigned bits) : memory(draws.memory), bits_(bits) {}
    [[nodiscard]] u64 read(u64 place) const {
        return is_inside(place) ? load(memory, place, bits_) : 0;
    }
    void write(u64 place, u64 value) {
        if (is_inside(place)) store(memory, place, bits_, value);
    }
    Bytes memory;

private:
    [[nodiscard]] bool is_inside(u64 place) const { return place + bits_ / 8 <= memory.size(); }
    unsigned bits_;
};

bool is_on_two_places(const OpInfo& row) {
    return std::string(row.name).find("_src2_") != std::string::npos;
}

/// Lane after lane.
Expected expect(const OpInfo& row, const AtomicReference& reference, const Trial& trial,
                const Draws& draws) {
    Model model(draws, reference.bits);
    Expected out;
    for (unsigned l = 0; l < kLanes; ++l) {
        if (((draws.exec >> l) & 1) == 0) continue;
        const u64 place = draws.place[l] + (is_private(trial.way) ? u64{kReach} * l : 0);
        out.old[l] = model.read(place);
        const u64 first =
            is_on_two_places(row) ? model.read(place + kDistanceDwords * 4) : draws.first[l];
        model.write(place, reference.value({out.old[l], first, draws.second[l], reference.bits}));
    }
    out.memory = std::move(model.memory);
    return out;
}

// ---- instructions

Words flat_words(const OpInfo& row, const Trial& trial) {
    const u32 segment = row.encoding == Encoding::Global ? 0x8000 : 0;
    const u32 saddr = trial.way == Way::ScalarBase ? kBaseSgpr : enc::kNoSaddr;
    return {enc::kFlat | segment | put(enc::kFlatOp, row.code) | kOffset |
                put(enc::kFlatGlc, trial.returns ? 1 : 0),
            put(enc::kFlatAddress, kAddress) | put(enc::kFlatData, kData) |
                put(enc::kFlatVdst, trial.returns ? kResult : 0) |
                (row.encoding == Encoding::Global ? put(enc::kFlatSaddr, saddr) : 0)};
}

Words buffer_words(const OpInfo& row, const Trial& trial) {
    return {enc::kMubuf | put(enc::kMubufOp, row.code) | put(enc::kMubufOffen, 1) | kOffset |
                put(enc::kMubufGlc, trial.returns ? 1 : 0),
            put(enc::kMubufVaddr, kAddress) | put(enc::kMubufVdata, kData) |
                put(enc::kMubufSrsrc, kBufferSgpr / 4) | put(enc::kMubufSoffset, kOffsetSgpr)};
}

Words ds_words(const OpInfo& row) {
    if (is_on_two_places(row))
        return {enc::kDs | put(enc::kDsOp, row.code) | kDistanceDwords,
                put(enc::kDsAddress, kAddress)};
    return {enc::kDs | put(enc::kDsOp, row.code) | kOffset,
            put(enc::kDsAddress, kAddress) | put(enc::kDsData0, kData) |
                put(enc::kDsData1, row.data_operands > 1 ? kSecondData : 0) |
                put(enc::kDsVdst, row.result_regs != 0 ? kResult : 0)};
}

Words words_of(const OpInfo& row, const Trial& trial) {
    if (row.encoding == Encoding::Ds) return ds_words(row);
    return row.encoding == Encoding::Mubuf ? buffer_words(row, trial) : flat_words(row, trial);
}

/// In the data registers of a memory instruction the second operand is behind the first.
u32 second_register(const OpInfo& row) {
    return row.encoding == Encoding::Ds ? kSecondData : kData + row.data_regs;
}

// ---- running

/// One wave and the bytes it works on; a GPU of its own for each instruction.
class Bench {
public:
    Bench(Variant variant, const OpInfo& row, const Trial& trial)
        : gpu_(1u << 18, variant), row_(row), trial_(trial) {
        Words words = words_of(row, trial);
        words.push_back(kEndpgm);
        gpu_.load_words(words, kRegisters);
        gpu_.set_grid({});
        gpu_.spec.lds_bytes = kReach;
        constexpr u64 page = softgpu::mem::Port::kPageBytes;
        // Half of the bytes are behind the end of a page.
        const u64 va = gpu_.allocate(page * 40);
        memory_ = (va + 2 * page) / page * page - kReach / 2;
        if (!trial.is_indirect) return;
        gpu_.port.make_indirect(memory_);
        gpu_.port.make_indirect(memory_ + kReach);
    }
    /// What the instruction leaves, compared with what is expected.
    void check(const AtomicReference& reference, const Draws& draws, const Expected& expected);

private:
    void place_operands(const Draws& draws);
    void place_bytes(const Bytes& bytes);
    [[nodiscard]] Bytes bytes(std::size_t count);
    [[nodiscard]] u64 lane_base() const;
    void set(u32 first, unsigned lane, u64 value) {
        row(first).lane[lane] = softgpu::low32(value);
        row(first + 1).lane[lane] = softgpu::high32(value);
    }
    void check_memory(const AtomicReference& reference, const Bytes& expected);
    /// Where the old value goes: MUBUF has one field for data and result.
    [[nodiscard]] u64 result(unsigned lane) {
        const u32 first = row_.encoding == Encoding::Mubuf ? kData : kResult;
        return softgpu::join(row(first).lane[lane], row(first + 1).lane[lane]);
    }
    softgpu::isa::VgprRow& row(u32 i) { return group_.waves[0].vgprs[i]; }
    softgpu::isa::WaveState& state() { return group_.waves[0].state; }
    [[nodiscard]] bool is_in_lds() const {
        return trial_.way == Way::Lds || trial_.way == Way::SharedWindow;
    }
    /// Address in memory of a byte of the model.
    [[nodiscard]] u64 address(std::size_t at) const;

    FlatGpu gpu_;
    Workgroup group_;
    const OpInfo& row_;
    const Trial trial_;
    u64 memory_ = 0;
};

/// Dwords of 64 lanes lie side by side in scratch (LLVM AMDGPUUsage, "Private").
u64 Bench::address(std::size_t at) const {
    if (!is_private(trial_.way)) return memory_ + at;
    const u64 lane = at / kReach, offset = at % kReach;
    return memory_ + offset / 4 * 4 * kLanes + lane * 4 + offset % 4;
}

void Bench::place_bytes(const Bytes& bytes) {
    if (is_in_lds()) {
        std::ranges::copy(bytes, group_.lds.begin());
        return;
    }
    for (std::size_t at = 0; at < bytes.size(); ++at)
        gpu_.port.bytes(address(at), 1)[0] = bytes[at];
}

Bytes Bench::bytes(std::size_t count) {
    if (is_in_lds()) return {group_.lds.begin(), group_.lds.end()};
    Bytes out(count);
    for (std::size_t at = 0; at < count; ++at) out[at] = gpu_.port.bytes(address(at), 1)[0];
    return out;
}

/// What the vector address of place 0 is, without the instruction's offset.
u64 Bench::lane_base() const {
    const softgpu::isa::Apertures apertures;
    switch (trial_.way) {
        case Way::Vector:
            return memory_;
        case Way::SharedWindow:
            return apertures.shared_base;
        case Way::PrivateWindow:
            return apertures.private_base;
        default:
            return 0;
    }
}

void Bench::place_operands(const Draws& draws) {
    constexpr u32 soffset = 32;
    const u64 base = lane_base() - (is_on_two_places(row_) ? 0 : kOffset);
    const u64 back = trial_.way == Way::ScalarBase ? kReach : 0;
    for (unsigned l = 0; l < kLanes; ++l) {
        set(kAddress, l, base + draws.place[l] + back);
        if (row_.data_regs == 1) {
            row(kData).lane[l] = softgpu::low32(draws.first[l]);
            row(second_register(row_)).lane[l] = softgpu::low32(draws.second[l]);
        } else {
            set(kData, l, draws.first[l]);
            set(second_register(row_), l, draws.second[l]);
        }
        set(kResult, l, kOldResult | (u64{kOldResult} << 32));
    }
    state().set_pair(static_cast<ScalarReg>(kBaseSgpr), memory_ - back);
    state().set_pair(ScalarReg::FlatScratch, memory_);
    state().scalar[kOffsetSgpr] = soffset;
    state().set_pair(static_cast<ScalarReg>(kBufferSgpr), memory_ - soffset);
    state().scalar[kBufferSgpr + 2] = kReach + soffset;
    state().scalar[kBufferSgpr + 3] = 0;
    state().set_pair(ScalarReg::Exec, draws.exec);
}

bool is_same(const AtomicReference& reference, u64 got, u64 want) {
    const FloatFormat format = reference.bits == 64 ? kDouble : kSingle;
    const bool are_nan = format.is_nan(got) && format.is_nan(want);
    return got == want || (reference.is_float && are_nan);
}

void Bench::check(const AtomicReference& reference, const Draws& draws, const Expected& expected) {
    gpu_.start(group_, {0, 0, 0});
    place_bytes(draws.memory);
    place_operands(draws);
    std::array<u64, kLanes> before{};
    for (unsigned l = 0; l < kLanes; ++l) before[l] = result(l);
    ASSERT_EQ(softgpu::isa::run(group_, gpu_.context()).reason, StopReason::AllWavesEnded);
    check_memory(reference, expected.memory);
    const bool returns = row_.encoding == Encoding::Ds ? row_.result_regs != 0 : trial_.returns;
    const u64 written = reference.bits == 64 ? ~u64{0} : 0xffff'ffff;
    for (unsigned l = 0; l < kLanes; ++l) {
        const bool is_written = returns && ((draws.exec >> l) & 1) != 0;
        const u64 want = is_written ? (before[l] & ~written) | expected.old[l] : before[l];
        ASSERT_TRUE(is_same(reference, result(l), want))
            << std::hex << "lane " << l << " gives " << result(l) << " instead of " << want;
    }
}

void Bench::check_memory(const AtomicReference& reference, const Bytes& expected) {
    const Bytes memory = bytes(expected.size());
    const unsigned size = reference.bits / 8;
    for (std::size_t at = 0; at < memory.size(); ++at) {
        if (memory[at] == expected[at]) continue;
        const std::size_t cell = at / size * size;
        ASSERT_TRUE(is_same(reference, load(memory, cell, reference.bits),
                            load(expected, cell, reference.bits)))
            << "byte " << at;
    }
}

// ---- the tests

class MemoryAtomics : public testing::TestWithParam<Variant> {
protected:
    void SetUp() override {
        if (!softgpu::isa::has_variant(GetParam())) GTEST_SKIP() << "this processor has no AVX2";
    }
    static void check_layouts(const OpInfo& row, Trial trial);
};

INSTANTIATE_TEST_SUITE_P(Builds, MemoryAtomics, testing::Values(Variant::Baseline, Variant::Avx2),
                         [](const auto& parameters) {
                             return parameters.param == Variant::Avx2 ? "Avx2" : "Baseline";
                         });

/// Memory cells that overlap cannot be told apart as floats: bytes of NaNs would be compared.
bool can_be_misaligned(const AtomicReference& reference) {
    return !reference.is_float;
}

void MemoryAtomics::check_layouts(const OpInfo& row, Trial trial) {
    const auto reference = atomic_reference(row.name);
    ASSERT_TRUE(reference) << row.name << " has no reference";
    Generator generator(std::hash<std::string>{}(row.name));
    const bool has_an_end = trial.way == Way::Lds || trial.way == Way::Buffer;
    for (const Layout layout : {Layout::Apart, Layout::Crowded, Layout::Misaligned}) {
        if (layout == Layout::Misaligned && !can_be_misaligned(*reference)) continue;
        trial.layout = layout;
        Draws draws = draw(*reference, trial, generator);
        if (has_an_end && !is_on_two_places(row)) move_some_outside(draws, generator);
        const Expected expected = expect(row, *reference, trial, draws);
        Bench(GetParam(), row, trial).check(*reference, draws, expected);
        if (!testing::Test::HasFatalFailure()) continue;
        FAIL() << row.name << ", way " << static_cast<int>(trial.way) << ", layout "
               << static_cast<int>(layout) << (trial.is_indirect ? ", indirect" : "");
    }
}

/// 13 operations, 32 and 64 bits wide.
constexpr std::size_t kAtomics = 26;

template <class Check>
void for_each_atomic(Encoding encoding, Check check, std::size_t expected = kAtomics) {
    std::size_t count = 0;
    for (std::size_t k = 0; k < kOpCount && !testing::Test::HasFatalFailure(); ++k) {
        const OpInfo& row = info(static_cast<Op>(k));
        const bool is_atomic = std::string(row.name).find("_atomic_") != std::string::npos;
        if (row.encoding != encoding || !is_atomic) continue;
        ++count;
        for (const bool returns : {false, true}) check(row, returns);
    }
    EXPECT_EQ(count, expected);
}

TEST_P(MemoryAtomics, FlatOnesFindMemoryAndBothWindows) {
    for_each_atomic(Encoding::Flat, [](const OpInfo& row, bool returns) {
        for (const Way way : {Way::Vector, Way::SharedWindow, Way::PrivateWindow})
            check_layouts(row, {.way = way, .returns = returns});
    });
}

TEST_P(MemoryAtomics, GlobalOnesFindMemoryByVectorAndByScalarBase) {
    for_each_atomic(Encoding::Global, [](const OpInfo& row, bool returns) {
        for (const Way way : {Way::Vector, Way::ScalarBase})
            check_layouts(row, {.way = way, .returns = returns});
    });
}

TEST_P(MemoryAtomics, BufferOnesStayInsideTheBuffer) {
    for_each_atomic(Encoding::Mubuf, [](const OpInfo& row, bool returns) {
        check_layouts(row, {.way = Way::Buffer, .returns = returns});
    });
}

TEST_P(MemoryAtomics, MemoryWithoutAHostAddressIsTheSame) {
    for_each_atomic(Encoding::Global, [](const OpInfo& row, bool returns) {
        check_layouts(row, {.is_indirect = true, .returns = returns});
    });
}

/// Of LDS, reads and writes that change nothing else are no atomics.
bool is_plain_access(const OpInfo& row) {
    const std::string name = row.name;
    const bool is_write = name.starts_with("ds_write") && !is_on_two_places(row);
    return name.starts_with("ds_read") || is_write;
}

TEST_P(MemoryAtomics, EveryOneOfLdsDoesWhatItsReferenceSays) {
    for (std::size_t k = 0; k < kOpCount && !HasFatalFailure(); ++k) {
        const OpInfo& row = info(static_cast<Op>(k));
        const bool has_other_test = lds_rows_without_reference().contains(row.name);
        if (row.encoding != Encoding::Ds || is_plain_access(row) || has_other_test) continue;
        check_layouts(row, {.way = Way::Lds});
    }
}

// ---- scalar memory

/// One scalar atomic on a place in the middle of some words.
void check_scalar(Variant variant, const OpInfo& row, bool returns, Generator& generator) {
    const auto reference = atomic_reference(row.name);
    ASSERT_TRUE(reference) << row.name << " has no reference";
    const bool is_buffer = std::string(row.name).starts_with("s_buffer");
    FlatGpu gpu(1u << 16, variant);
    gpu.load_words({enc::kSmem | put(enc::kSmemOp, row.code) | put(enc::kSmemImm, 1) |
                        put(enc::kSmemBase, (is_buffer ? kBufferSgpr : kBaseSgpr) / 2) |
                        put(enc::kSmemData, kScalarData) | put(enc::kSmemGlc, returns ? 1 : 0),
                    kOffset, kEndpgm});
    gpu.set_grid({});
    const unsigned bits = reference->bits;
    const AtomicOperands o{draw_value(*reference, generator), draw_value(*reference, generator),
                           draw_value(*reference, generator), bits};
    Bytes before(kReach, std::byte{0x5a});
    store(before, kOffset, bits, o.memory);
    const u64 va = gpu.upload(before);
    Workgroup group;
    gpu.start(group, {0, 0, 0});
    auto& state = group.waves[0].state;
    state.set_pair(static_cast<ScalarReg>(kBaseSgpr), va);
    state.set_pair(static_cast<ScalarReg>(kBufferSgpr), va);
    state.set_pair(static_cast<ScalarReg>(kBufferSgpr + 2), kReach);
    state.set_pair(static_cast<ScalarReg>(kScalarData), o.a);
    state.set_pair(static_cast<ScalarReg>(kScalarData + row.data_regs), o.b);
    const u64 data = state.pair(static_cast<ScalarReg>(kScalarData));
    ASSERT_EQ(softgpu::isa::run(group, gpu.context()).reason, StopReason::AllWavesEnded);
    store(before, kOffset, bits, reference->value(o));
    EXPECT_EQ(gpu.download<std::byte>(va, kReach), before) << row.name;
    const u64 old = bits == 64 ? o.memory : o.memory | (data >> 32 << 32);
    EXPECT_EQ(state.pair(static_cast<ScalarReg>(kScalarData)), returns ? old : data) << row.name;
}

TEST_P(MemoryAtomics, ScalarOnesWorkOnOnePlace) {
    Generator generator(29);
    for_each_atomic(
        Encoding::Smem,
        [&](const OpInfo& row, bool returns) {
            for (unsigned round = 0; round < 10; ++round)
                check_scalar(GetParam(), row, returns, generator);
        },
        2 * kAtomics);
}

}  // namespace
}  // namespace vgpu::test
