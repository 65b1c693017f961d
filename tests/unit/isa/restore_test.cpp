// SPDX-License-Identifier: MIT
//
// A work-group can be stopped anywhere, saved, loaded into another one, and continued.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "tests/support/kernel_oracle.h"
#include "tests/unit/isa/flat_gpu.h"

namespace vgpu::test {
namespace {

using softgpu::Reader;
using softgpu::Writer;
using softgpu::isa::RunResult;
using softgpu::isa::StopReason;
using softgpu::isa::Workgroup;

/// Saves, loads into a fresh group, and fills the old one with nonsense.
void move_group(Workgroup& group) {
    std::vector<std::byte> stream;
    Writer writer(stream);
    group.save(writer);
    for (auto& wave : group.waves) {
        wave.state.scalar.fill(0xdeadbeef);
        for (auto& row : wave.vgprs) row.lane.fill(0xdeadbeef);
    }
    std::ranges::fill(group.lds, std::byte{0x5a});
    Workgroup other;
    Reader reader(stream);
    ASSERT_TRUE(other.load(reader).has_value());
    EXPECT_EQ(reader.remaining(), 0u);
    std::vector<std::byte> again;
    Writer second(again);
    other.save(second);
    EXPECT_EQ(stream, again);
    group = std::move(other);
}

/// Runs a group in pieces of `step` instructions, moved between them.
RunResult run_in_pieces(FlatGpu& gpu, Workgroup& group, std::uint64_t step) {
    RunResult result;
    do {
        result = softgpu::isa::run(group, gpu.context(step));
        move_group(group);
    } while (result.reason == StopReason::Budget);
    return result;
}

class Restore : public testing::TestWithParam<int> {
protected:
    FlatGpu gpu{48u << 20};
};

INSTANTIATE_TEST_SUITE_P(Levels, Restore, testing::Values(0, 3));

TEST_P(Restore, LdsKernelStoppedAtEveryInstructionGivesTheSameResult) {
    std::vector<std::uint32_t> in(256);
    for (std::uint32_t i = 0; i < in.size(); ++i) in[i] = i * 2654435761u;
    gpu.load_kernel("lds_neighbours", GetParam());
    const auto out = gpu.allocate(in.size() * 4);
    gpu.set_arguments(gpu.upload(in), out);
    gpu.set_grid({{256, 1, 1}, {256, 1, 1}});
    Workgroup group;
    gpu.start(group, {0, 0, 0});
    EXPECT_EQ(run_in_pieces(gpu, group, 1).reason, StopReason::AllWavesEnded);
    EXPECT_EQ(gpu.download<std::uint32_t>(out, in.size()), oracle::lds_neighbours(in));
}

TEST_P(Restore, MatmulStoppedEverySevenInstructionsGivesTheSameResult) {
    constexpr std::uint32_t n = 16;
    std::vector<float> a(n * n);
    std::vector<float> b(n * n);
    for (std::uint32_t i = 0; i < n * n; ++i) {
        a[i] = static_cast<float>(i) * 0.37f;
        b[i] = 3.0f - static_cast<float>(i) * 0.11f;
    }
    gpu.load_kernel("matmul", GetParam());
    const auto c = gpu.allocate(n * n * 4);
    gpu.set_arguments(gpu.upload(a), gpu.upload(b), c, n);
    gpu.set_grid({{16, 16, 1}, {n, n, 1}});
    Workgroup group;
    gpu.start(group, {0, 0, 0});
    EXPECT_EQ(run_in_pieces(gpu, group, 7).reason, StopReason::AllWavesEnded);
    EXPECT_EQ(gpu.download<float>(c, n * n), oracle::matmul(a, b, n));
}

TEST_P(Restore, DivergentLoopStoppedAtEveryInstructionGivesTheSameResult) {
    gpu.load_kernel("collatz", GetParam());
    const auto out = gpu.allocate(64 * 4);
    gpu.set_arguments(out);
    gpu.set_grid({});
    Workgroup group;
    gpu.start(group, {0, 0, 0});
    EXPECT_EQ(run_in_pieces(gpu, group, 1).reason, StopReason::AllWavesEnded);
    EXPECT_EQ(gpu.download<std::uint32_t>(out, 64), oracle::collatz(64));
}

TEST_P(Restore, StopFlagEndsAnEndlessKernelFromAnotherThread) {
    gpu.load_kernel("endless", GetParam());
    const auto progress = gpu.allocate(16);
    gpu.set_arguments(progress);
    gpu.set_grid({{256, 1, 1}, {256, 1, 1}});
    Workgroup group;
    gpu.start(group, {0, 0, 0});
    std::jthread stopper([&] { gpu.stop = true; });
    EXPECT_EQ(softgpu::isa::run(group, gpu.context(~0ull)).reason, StopReason::Stopped);
    stopper.join();
    gpu.stop = false;
    move_group(group);
    const auto before = gpu.download<std::uint32_t>(progress, 4);
    EXPECT_EQ(softgpu::isa::run(group, gpu.context(50'000)).reason, StopReason::Budget);
    const auto after = gpu.download<std::uint32_t>(progress, 4);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_GT(after[i], before[i]);
}

TEST(RestoreStop, WaveStopsAfterAnIndirectAccessAndContinuesBehindIt) {
    FlatGpu gpu;
    gpu.load_words({0xdc748000, 0x007f0200,  // global_store_dwordx2 v[0:1], v[2:3]
                    0xdc748000, 0x007f0200,  // the same
                    0xbf810000});            // s_endpgm
    gpu.set_grid({});
    constexpr std::uint64_t kPage = softgpu::mem::Port::kPageBytes;
    const std::uint64_t va = (gpu.allocate(2 * kPage) + kPage - 1) / kPage * kPage;
    Workgroup group;
    gpu.start(group, {0, 0, 0});
    auto& wave = group.waves[0];
    wave.state.set_pair(softgpu::isa::ScalarReg::Exec, 1);
    wave.vgprs[0].lane[0] = static_cast<std::uint32_t>(va);
    wave.vgprs[1].lane[0] = static_cast<std::uint32_t>(va >> 32);
    gpu.port.make_indirect(va);
    gpu.port.on_indirect_write = [&gpu] { gpu.stop = true; };
    const RunResult stopped = softgpu::isa::run(group, gpu.context());
    EXPECT_EQ(stopped.reason, StopReason::Stopped);
    EXPECT_EQ(stopped.retired, 1u);
    gpu.port.on_indirect_write = nullptr;
    gpu.stop = false;
    const RunResult ended = softgpu::isa::run(group, gpu.context());
    EXPECT_EQ(ended.reason, StopReason::AllWavesEnded);
    EXPECT_EQ(ended.retired, 2u);
}

TEST(RestoreStream, TruncatedOrImpossibleStreamsLeaveAnEmptyGroup) {
    FlatGpu gpu;
    gpu.load_words({0xbf810000});
    Workgroup group;
    gpu.start(group, {0, 0, 0});
    std::vector<std::byte> stream;
    Writer writer(stream);
    group.save(writer);
    for (std::size_t size = 0; size < stream.size(); size += 37) {
        Workgroup other;
        const std::span<const std::byte> part(stream.data(), size);
        Reader reader(part);
        EXPECT_FALSE(other.load(reader).has_value()) << size;
        EXPECT_TRUE(other.waves.empty());
    }
    std::mt19937 generator(3);
    for (unsigned round = 0; round < 500; ++round) {
        auto broken = stream;
        for (unsigned k = 0; k < 8; ++k)
            broken[generator() % broken.size()] = static_cast<std::byte>(generator());
        Workgroup other;
        Reader reader(broken);
        if (!other.load(reader).has_value()) continue;
        (void)softgpu::isa::run(other, gpu.context(1000));  // whatever it does, it stays inside
    }
}

}  // namespace
}  // namespace vgpu::test
