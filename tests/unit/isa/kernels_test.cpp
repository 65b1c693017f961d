// SPDX-License-Identifier: MIT
//
// Compiled kernels on the bare execution engine, against what the host computes.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tests/support/kernel_oracle.h"
#include "tests/unit/isa/flat_gpu.h"

namespace vgpu::test {
namespace {

using softgpu::isa::StopReason;
using softgpu::isa::Variant;

/// Optimisation level of the kernel and build of the execute unit.
class Kernels : public testing::TestWithParam<std::tuple<int, Variant>> {
protected:
    void SetUp() override {
        if (!softgpu::isa::has_variant(std::get<1>(GetParam())))
            GTEST_SKIP() << "this processor has no AVX2";
    }
    [[nodiscard]] int level() const { return std::get<0>(GetParam()); }
    FlatGpu gpu{48u << 20, std::get<1>(GetParam())};
};

INSTANTIATE_TEST_SUITE_P(Levels, Kernels,
                         testing::Combine(testing::Values(0, 3),
                                          testing::Values(Variant::Baseline, Variant::Avx2)),
                         [](const auto& parameters) {
                             const bool avx2 = std::get<1>(parameters.param) == Variant::Avx2;
                             return "O" + std::to_string(std::get<0>(parameters.param)) +
                                    (avx2 ? "Avx2" : "Baseline");
                         });

std::vector<std::uint32_t> random_words(std::size_t count) {
    std::mt19937 generator(7);
    std::vector<std::uint32_t> out(count);
    for (auto& word : out) word = static_cast<std::uint32_t>(generator());
    return out;
}

std::vector<float> random_floats(std::size_t count, unsigned seed) {
    std::mt19937 generator(seed);
    std::uniform_real_distribution<float> in_range(-8.0f, 8.0f);
    std::vector<float> out(count);
    for (auto& value : out) value = in_range(generator);
    return out;
}

TEST_P(Kernels, ArrayIncrementAddsOneToEveryElement) {
    std::vector<double> x(32);
    std::iota(x.begin(), x.end(), 0.0);
    gpu.load_kernel("array_increment", level());
    const auto va = gpu.upload(x);
    gpu.set_arguments(va);
    gpu.set_grid({{32, 1, 1}, {32, 1, 1}});
    ASSERT_EQ(gpu.dispatch().reason, StopReason::AllWavesEnded);
    EXPECT_EQ(gpu.download<double>(va, 32), oracle::array_increment(x));
}

TEST_P(Kernels, VectorAddLeavesElementsBehindTheEndAlone) {
    constexpr std::uint32_t n = 1000;
    const auto a = random_floats(n, 1);
    const auto b = random_floats(n, 2);
    gpu.load_kernel("vector_add", level());
    const auto c = gpu.allocate(1024 * 4);
    gpu.set_arguments(gpu.upload(a), gpu.upload(b), c, n);
    gpu.set_grid({{256, 1, 1}, {1024, 1, 1}});
    ASSERT_EQ(gpu.dispatch().reason, StopReason::AllWavesEnded);
    EXPECT_EQ(gpu.download<float>(c, n), oracle::vector_add(a, b));
    EXPECT_EQ(gpu.download<std::uint32_t>(c + n * 4, 24), std::vector<std::uint32_t>(24));
}

TEST_P(Kernels, SaxpyRunsOverTheWholeGridSeveralTimes) {
    constexpr std::uint32_t n = 5000;
    const auto x = random_floats(n, 3);
    const auto y = random_floats(n, 4);
    gpu.load_kernel("saxpy", level());
    const auto out = gpu.upload(y);
    gpu.set_arguments(gpu.upload(x), out, 2.5f, n);
    gpu.set_grid({{128, 1, 1}, {1024, 1, 1}});
    ASSERT_EQ(gpu.dispatch().reason, StopReason::AllWavesEnded);
    EXPECT_EQ(gpu.download<float>(out, n), oracle::saxpy(x, y, 2.5f));
}

TEST_P(Kernels, TiledMatmulAgreesToTheLastBit) {
    constexpr std::uint32_t n = 64;
    const auto a = random_floats(n * n, 5);
    const auto b = random_floats(n * n, 6);
    gpu.load_kernel("matmul", level());
    const auto c = gpu.allocate(n * n * 4);
    gpu.set_arguments(gpu.upload(a), gpu.upload(b), c, n);
    gpu.set_grid({{16, 16, 1}, {n, n, 1}});
    ASSERT_EQ(gpu.dispatch().reason, StopReason::AllWavesEnded);
    EXPECT_EQ(gpu.download<float>(c, n * n), oracle::matmul(a, b, n));
}

TEST_P(Kernels, Sha256OfEveryWorkItemIsRight) {
    constexpr std::uint32_t items = 256;
    gpu.load_kernel("sha256", level());
    const auto out = gpu.allocate(items * 32);
    gpu.set_arguments(out, 1000u);
    gpu.set_grid({{64, 1, 1}, {items, 1, 1}});
    ASSERT_EQ(gpu.dispatch().reason, StopReason::AllWavesEnded);
    EXPECT_EQ(gpu.download<std::uint32_t>(out, items * 8), oracle::sha256(1000, items));
}

TEST_P(Kernels, LanesLeaveADivergentLoopOneByOne) {
    constexpr std::uint32_t items = 500;
    gpu.load_kernel("collatz", level());
    const auto out = gpu.allocate(items * 4);
    gpu.set_arguments(out);
    gpu.set_grid({{128, 1, 1}, {items, 1, 1}});
    ASSERT_EQ(gpu.dispatch().reason, StopReason::AllWavesEnded);
    EXPECT_EQ(gpu.download<std::uint32_t>(out, items), oracle::collatz(items));
}

TEST_P(Kernels, LdsPassesNumbersBetweenTheWavesOfAGroup) {
    const auto in = random_words(1024);
    gpu.load_kernel("lds_neighbours", level());
    const auto out = gpu.allocate(in.size() * 4);
    gpu.set_arguments(gpu.upload(in), out);
    gpu.set_grid({{256, 1, 1}, {1024, 1, 1}});
    ASSERT_EQ(gpu.dispatch().reason, StopReason::AllWavesEnded);
    EXPECT_EQ(gpu.download<std::uint32_t>(out, in.size()), oracle::lds_neighbours(in));
}

TEST_P(Kernels, LongRunningKernelReportsProgress) {
    constexpr std::uint32_t items = 128;
    constexpr std::uint32_t rounds = 1000;
    gpu.load_kernel("long_running", level());
    const auto out = gpu.allocate(items * 4);
    const auto progress = gpu.allocate(items * 4);
    gpu.set_arguments(out, progress, rounds);
    gpu.set_grid({{64, 1, 1}, {items, 1, 1}});
    ASSERT_EQ(gpu.dispatch().reason, StopReason::AllWavesEnded);
    EXPECT_EQ(gpu.download<std::uint32_t>(out, items), oracle::long_running(items, rounds));
    EXPECT_EQ(gpu.download<std::uint32_t>(progress, items),
              std::vector<std::uint32_t>(items, rounds));
}

TEST_P(Kernels, AtomicsCountEveryWorkItemOnce) {
    constexpr std::uint32_t items = 1000;
    gpu.load_kernel("atomics", level());
    const auto totals = gpu.upload(std::vector<std::uint32_t>{0, ~0u, 0, 0, 0, 0});
    const auto wide = gpu.allocate(8);
    gpu.set_arguments(totals, wide, items);
    gpu.set_grid({{256, 1, 1}, {1024, 1, 1}});
    ASSERT_EQ(gpu.dispatch().reason, StopReason::AllWavesEnded);
    const oracle::Totals t = oracle::atomics(items);
    EXPECT_EQ(gpu.download<std::uint32_t>(totals, 6),
              (std::vector<std::uint32_t>{t.sum, t.min, t.max, t.all_or, t.all_xor, t.seen}));
    EXPECT_EQ(gpu.download<std::uint64_t>(wide, 1).front(), t.wide);
}

TEST_P(Kernels, PrivateArraysLiveInScratch) {
    const auto in = random_words(256);
    gpu.load_kernel("scratch", level());
    const auto out = gpu.allocate(in.size() * 4);
    gpu.set_arguments(gpu.upload(in), out);
    gpu.set_grid({{128, 1, 1}, {256, 1, 1}});
    ASSERT_EQ(gpu.dispatch().reason, StopReason::AllWavesEnded);
    EXPECT_EQ(gpu.download<std::uint32_t>(out, in.size()), oracle::scratch(in));
}

TEST_P(Kernels, EndlessKernelRunsUntilItsBudgetIsUsedUp) {
    gpu.load_kernel("endless", level());
    const auto progress = gpu.allocate(16);
    gpu.set_arguments(progress);
    gpu.set_grid({{256, 1, 1}, {256, 1, 1}});
    softgpu::isa::Workgroup group;
    gpu.start(group, {0, 0, 0});
    const auto result = softgpu::isa::run(group, gpu.context(100'000));
    EXPECT_EQ(result.reason, StopReason::Budget);
    EXPECT_EQ(result.retired, 100'000u);
    for (const auto cell : gpu.download<std::uint32_t>(progress, 4)) EXPECT_GT(cell, 100u);
}

TEST_P(Kernels, IllegalInstructionStopsTheWaveThere) {
    gpu.load_kernel("illegal", level());
    const auto out = gpu.allocate(64 * 4);
    gpu.set_arguments(out);
    gpu.set_grid({});
    const auto result = gpu.dispatch();
    ASSERT_EQ(result.reason, StopReason::IllegalInstruction);
    EXPECT_EQ(result.words[0], 0xbfff0000u);
    EXPECT_EQ(gpu.download<std::uint32_t>(result.pc, 1).front(), 0xbfff0000u);
    EXPECT_EQ(gpu.download<std::uint32_t>(out, 64), std::vector<std::uint32_t>(64, 1));
}

TEST_P(Kernels, WildStoreNamesTheLaneAndTheAddress) {
    constexpr std::uint64_t nowhere = 0x1234'5678'9000;
    gpu.load_kernel("wild_store", level());
    const auto out = gpu.allocate(64 * 4);
    gpu.set_arguments(out, nowhere);
    gpu.set_grid({});
    const auto result = gpu.dispatch();
    ASSERT_EQ(result.reason, StopReason::Fault);
    EXPECT_EQ(result.lane, 5u);
    EXPECT_EQ(softgpu::raw(result.fault.va), nowhere);
    EXPECT_EQ(result.fault.access, softgpu::mem::Access::Write);
    EXPECT_EQ(gpu.download<std::uint32_t>(out, 64), std::vector<std::uint32_t>(64, 1));
}

TEST_P(Kernels, InterruptIsSeenWhileTheKernelStillRuns) {
    gpu.load_kernel("interrupt", level());
    const auto mailbox = gpu.allocate(8);
    gpu.messages.on_interrupt = [&](std::uint32_t payload) {
        softgpu::store(gpu.port.bytes(mailbox, 8), (payload - 40) * 4, payload);
    };
    gpu.set_arguments(mailbox, 40u);
    gpu.set_grid({{128, 1, 1}, {128, 1, 1}});
    ASSERT_EQ(gpu.dispatch().reason, StopReason::AllWavesEnded);
    EXPECT_EQ(gpu.messages.payloads, (std::vector<std::uint32_t>{40, 41}));
    EXPECT_EQ(gpu.download<std::uint32_t>(mailbox, 2), (std::vector<std::uint32_t>{41, 42}));
}

}  // namespace
}  // namespace vgpu::test
