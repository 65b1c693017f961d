// SPDX-License-Identifier: MIT
//
// Loads and stores of every width against a byte-by-byte model, in both builds of the execute unit,
// however the lanes lie: one behind the other, in runs as the rows of a group have, all at one
// place, scattered, across a page border, misaligned, some lanes off, pages without host address.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string_view>

#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/isa/encoding.h"
#include "tests/unit/isa/flat_gpu.h"

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
using Bytes = std::vector<std::byte>;
using Generator = std::mt19937;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u32 kEndpgm = 0xbf810000, kRegisters = 32;
constexpr u32 kAddress = 2, kData = 4, kResult = 12;
/// Bytes that the lanes may reach: two pages and a half.
constexpr u32 kReach = 10240;
/// Of scratch, which every lane has for itself; together many pages.
constexpr u32 kScratchReach = 2304;

u32 reach_of(const OpInfo& row) {
    return row.encoding == Encoding::Scratch ? kScratchReach : kReach;
}

u32 put(enc::Field field, u32 value) {
    return value << field.first;
}

/// What a row moves, by its mnemonic (Vega ISA manual, "Flat Memory Instructions").
struct Shape {
    bool is_load = false, is_signed = false;
    u32 bytes = 4;
    enum { Whole, Low, High } part = Whole;
};

std::optional<Shape> shape_of(const OpInfo& row) {
    const std::string_view name = row.name;
    const auto has = [&](std::string_view part) { return name.find(part) != name.npos; };
    Shape shape;
    shape.is_load = has("_load_");
    if (!shape.is_load && !has("_store_")) return {};
    shape.is_signed = has("sbyte") || has("sshort");
    if (has("byte")) shape.bytes = 1;
    if (has("short")) shape.bytes = 2;
    for (u32 words = 2; words <= 4; ++words)
        if (has("dwordx" + std::to_string(words))) shape.bytes = 4 * words;
    if (has("d16")) shape.part = has("_hi") ? Shape::High : Shape::Low;
    return shape;
}

enum class Layout : std::uint8_t { Row, Runs, OnePlace, Scattered, Misaligned };
constexpr std::array kLayouts{Layout::Row, Layout::Runs, Layout::OnePlace, Layout::Scattered,
                              Layout::Misaligned};

/// Byte of the reach at which each lane is.
std::array<u32, kLanes> draw_places(Layout layout, u32 bytes, u32 reach, Generator& random) {
    constexpr u32 run_lanes = 16;
    std::array<u32, kLanes> place{};
    constexpr u32 last_row = kLanes * 16;
    const u32 cells = (reach - last_row) / 16;
    const auto somewhere = [&] { return static_cast<u32>(random() % cells) * 16; };
    u32 start = somewhere();
    for (u32 l = 0; l < kLanes; ++l) {
        if (layout == Layout::Runs && l % run_lanes == 0) start = somewhere();
        if (layout == Layout::Row) place[l] = start + l * bytes;
        if (layout == Layout::Runs) place[l] = start + l % run_lanes * bytes;
        if (layout == Layout::OnePlace) place[l] = start;
        if (layout == Layout::Scattered) place[l] = somewhere();
        if (layout == Layout::Misaligned) place[l] = somewhere() + static_cast<u32>(random() % 16);
    }
    return place;
}

/// One instruction on one wave.
class Trial {
public:
    Trial(Variant variant, const OpInfo& row, bool is_indirect)
        : gpu_(1u << 20, variant), row_(row), shape_(*shape_of(row)), reach_(reach_of(row)) {
        constexpr u64 page = softgpu::mem::Port::kPageBytes;
        const bool is_scratch = row.encoding == Encoding::Scratch;
        const u32 segment = row.encoding == Encoding::Flat ? 0 : (is_scratch ? 0x4000 : 0x8000);
        const u32 saddr = row.encoding == Encoding::Flat ? 0 : enc::kNoSaddr;
        gpu_.load_words(
            {enc::kFlat | segment | put(enc::kFlatOp, row.code),
             put(enc::kFlatAddress, kAddress) | put(enc::kFlatData, kData) |
                 put(enc::kFlatVdst, shape_.is_load ? kResult : 0) | put(enc::kFlatSaddr, saddr),
             kEndpgm},
            kRegisters);
        gpu_.set_grid({});
        const u64 size = u64{reach_} * (is_scratch ? kLanes : 1);
        memory_ = (gpu_.allocate(size + 2 * page) + page) / page * page;
        if (is_indirect) gpu_.port.make_indirect(memory_ + page);
    }

    void check(const std::array<u32, kLanes>& place, u64 exec, Generator& random) {
        gpu_.start(group_, {0, 0, 0});
        auto& state = group_.waves[0].state;
        state.set_pair(ScalarReg::Exec, exec);
        state.set_pair(ScalarReg::FlatScratch, memory_);
        Bytes model(copies() * reach_);
        std::ranges::generate(model, [&] { return static_cast<std::byte>(random()); });
        for (std::size_t at = 0; at < model.size(); ++at) cell(at) = model[at];
        for (u32 r = kData; r < kRegisters; ++r)
            for (auto& word : registers(r).lane) word = static_cast<u32>(random());
        for (u32 l = 0; l < kLanes; ++l) {
            const u64 va = (is_scratch() ? 0 : memory_) + place[l];
            registers(kAddress).lane[l] = softgpu::low32(va);
            registers(kAddress + 1).lane[l] = softgpu::high32(va);
        }
        auto expected = group_.waves[0].vgprs;
        for (u32 l = 0; l < kLanes; ++l)
            if (((exec >> l) & 1) != 0) expect(model, expected, place[l], l);
        ASSERT_EQ(softgpu::isa::run(group_, gpu_.context()).reason, StopReason::AllWavesEnded);
        for (std::size_t at = 0; at < model.size(); ++at)
            ASSERT_EQ(cell(at), model[at]) << "byte " << at;
        for (u32 r = 0; r < kRegisters; ++r)
            ASSERT_EQ(registers(r).lane, expected[r].lane) << "register " << r;
    }

private:
    void expect(Bytes& model, std::vector<softgpu::isa::VgprRow>& rows, u32 place, u32 lane) const {
        std::byte* const at =
            model.data() + (is_scratch() ? std::size_t{lane} * reach_ : 0) + place;
        const u32 words = std::max(shape_.bytes / 4, 1u);
        for (u32 k = 0; k < words; ++k) {
            u32& loaded = rows[kResult + k].lane[lane];
            const u32 stored = rows[kData + k].lane[lane] >> (shape_.part == Shape::High ? 16 : 0);
            const u32 bytes = std::min(shape_.bytes, 4u);
            if (!shape_.is_load) {
                std::memcpy(at + 4 * k, &stored, bytes);
                continue;
            }
            u32 value = 0;
            std::memcpy(&value, at + 4 * k, bytes);
            const u32 sign = 1u << (8 * bytes - 1);
            if (shape_.is_signed && (value & sign) != 0) value |= ~(sign * 2 - 1);
            if (shape_.part == Shape::Whole) loaded = value;
            if (shape_.part == Shape::Low) loaded = (loaded & 0xffff0000) | (value & 0xffff);
            if (shape_.part == Shape::High) loaded = (loaded & 0xffff) | (value << 16);
        }
    }
    [[nodiscard]] bool is_scratch() const { return row_.encoding == Encoding::Scratch; }
    [[nodiscard]] std::size_t copies() const { return is_scratch() ? kLanes : 1; }
    /// Dwords of 64 lanes lie side by side in scratch (LLVM AMDGPUUsage, "Private").
    std::byte& cell(std::size_t at) {
        const u64 lane = at / reach_, offset = at % reach_;
        const u64 place = is_scratch() ? offset / 4 * 4 * kLanes + lane * 4 + offset % 4 : u64{at};
        return gpu_.port.bytes(memory_ + place, 1)[0];
    }
    softgpu::isa::VgprRow& registers(u32 first) { return group_.waves[0].vgprs[first]; }

    FlatGpu gpu_;
    Workgroup group_;
    const OpInfo& row_;
    const Shape shape_;
    const u32 reach_;
    u64 memory_ = 0;
};

class MemoryLayouts : public testing::TestWithParam<Variant> {
protected:
    void SetUp() override {
        if (!softgpu::isa::has_variant(GetParam())) GTEST_SKIP() << "this processor has no AVX2";
    }
    static void check_all(Encoding encoding, bool is_indirect) {
        Generator random(5);
        std::size_t count = 0;
        for (std::size_t k = 0; k < kOpCount; ++k) {
            const OpInfo& row = info(static_cast<Op>(k));
            if (row.encoding != encoding || !shape_of(row)) continue;
            ++count;
            Trial trial(GetParam(), row, is_indirect);
            for (const Layout layout : kLayouts)
                for (const u64 exec : {~u64{0}, u64{random()} << 32 | random(), u64{0x80}}) {
                    trial.check(draw_places(layout, shape_of(row)->bytes, reach_of(row), random),
                                exec, random);
                    if (HasFatalFailure())
                        FAIL() << row.name << ", layout " << static_cast<int>(layout) << ", exec "
                               << std::hex << exec;
                }
        }
        EXPECT_EQ(count, 22u);
    }
};

INSTANTIATE_TEST_SUITE_P(Builds, MemoryLayouts, testing::Values(Variant::Baseline, Variant::Avx2),
                         [](const auto& parameters) {
                             return parameters.param == Variant::Avx2 ? "Avx2" : "Baseline";
                         });

TEST_P(MemoryLayouts, GlobalAccessesMoveTheBytesOfEveryLane) {
    check_all(Encoding::Global, false);
}

TEST_P(MemoryLayouts, FlatAccessesMoveTheBytesOfEveryLane) {
    check_all(Encoding::Flat, false);
}

TEST_P(MemoryLayouts, ScratchAccessesMoveTheBytesOfEveryLane) {
    check_all(Encoding::Scratch, false);
}

TEST_P(MemoryLayouts, APageWithoutHostAddressIsNoDifference) {
    check_all(Encoding::Global, true);
}

}  // namespace
}  // namespace vgpu::test
