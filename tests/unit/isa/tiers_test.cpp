// SPDX-License-Identifier: MIT
//
// Compiled programs in both tiers, in lock step: the same work-groups, stopped after the same
// numbers of instructions, have the same state at every stop and leave the same memory.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "pf-driver/softgpu/base/block.h"
#include "pf-driver/softgpu/isa/translate/translator.h"
#include "tests/unit/isa/corpus_oracle.h"
#include "tests/unit/isa/flat_gpu.h"

namespace vgpu::test {
namespace {

using softgpu::isa::CodeMemory;
using softgpu::isa::CodeShare;
using softgpu::isa::StopReason;
using softgpu::isa::Workgroup;

constexpr std::size_t kArena = 48u << 20;

std::vector<std::byte> state_of(const Workgroup& group) {
    std::vector<std::byte> out;
    softgpu::Writer writer(out);
    group.save(writer);
    return out;
}

/// Two GPUs with the same contents; the second one translates every block at its first run.
class Tiers : public testing::Test {
protected:
    void SetUp() override {
        if (!softgpu::isa::can_translate()) GTEST_SKIP() << "no AVX-512";
    }
    /// `load` prepares a kernel and its grid; all of its groups run in steps of `budget`.
    void compare(const std::string& name, const std::function<void(FlatGpu&)>& load,
                 std::uint64_t budget) {
        constexpr std::size_t chunks = 64;
        const auto memory = CodeMemory::create(chunks);
        ASSERT_TRUE(memory.has_value());
        CodeShare share(**memory, chunks, 0);
        FlatGpu interpreted(kArena, softgpu::isa::variant(), nullptr);
        FlatGpu translated(kArena, softgpu::isa::variant(), &share);
        load(interpreted);
        load(translated);
        const auto counts = softgpu::isa::group_counts(interpreted.spec);
        for (std::uint32_t y = 0; y < counts[1]; ++y)
            for (std::uint32_t x = 0; x < counts[0]; ++x)
                ASSERT_NO_FATAL_FAILURE(run_group(interpreted, translated, {x, y, 0}, budget))
                    << name;
        const auto all = softgpu::mem::Port::kPageBytes;
        EXPECT_TRUE(std::ranges::equal(interpreted.port.bytes(FlatPort::kBase + all, kArena - all),
                                       translated.port.bytes(FlatPort::kBase + all, kArena - all)))
            << name << ": different memory";
        EXPECT_GT(share.allocated(), 0u) << name << " was not translated";
    }

private:
    void run_group(FlatGpu& interpreted, FlatGpu& translated, std::array<std::uint32_t, 3> id,
                   std::uint64_t budget) {
        Workgroup one, other;
        interpreted.start(one, id);
        translated.start(other, id);
        for (std::uint64_t step = 0;; ++step) {
            const std::uint64_t some = budget + step * 37 % 61;
            const auto want = softgpu::isa::run(one, interpreted.context(some));
            const auto got = softgpu::isa::run(other, translated.context(some));
            ASSERT_EQ(want.reason, got.reason) << "step " << step;
            ASSERT_EQ(want.retired, got.retired) << "step " << step;
            ASSERT_TRUE(state_of(one) == state_of(other)) << "step " << step;
            if (want.reason == StopReason::Budget) continue;
            ASSERT_EQ(want.reason, StopReason::AllWavesEnded);
            return;
        }
    }
};

std::vector<std::uint32_t> random_input() {
    std::mt19937 generator(31);
    std::vector<std::uint32_t> out(corpus::kWords);
    for (auto& word : out) word = static_cast<std::uint32_t>(generator());
    return out;
}

TEST_F(Tiers, CorpusStoppedAnywhereHasTheSameStateInBoth) {
    const auto input = random_input();
    std::uint64_t budget = 900;
    for (const corpus::Program& program : corpus::programs()) {
        const auto load = [&](FlatGpu& gpu) {
            gpu.load_kernel(std::string("cl_") + program.name, 3);
            const auto out = gpu.allocate(std::size_t{corpus::kGroup} * corpus::kResults * 4);
            gpu.set_arguments(gpu.upload(input), out);
            gpu.set_grid({{corpus::kGroup, 1, 1}, {corpus::kGroup, 1, 1}});
        };
        ASSERT_NO_FATAL_FAILURE(compare(program.name, load, budget += 53));
    }
}

TEST_F(Tiers, GroupsOfSeveralWavesHaveTheSameStateInBoth) {
    const auto matmul = [](FlatGpu& gpu) {
        constexpr std::uint32_t n = 32;
        std::vector<float> values(n * n);
        for (std::size_t k = 0; k < values.size(); ++k) values[k] = static_cast<float>(k % 97) / 7;
        gpu.load_kernel("matmul", 3);
        gpu.set_arguments(gpu.upload(values), gpu.upload(values), gpu.allocate(n * n * 4), n);
        gpu.set_grid({{16, 16, 1}, {n, n, 1}});
    };
    const auto collatz = [](FlatGpu& gpu) {
        gpu.load_kernel("collatz", 3);
        gpu.set_arguments(gpu.allocate(512 * 4));
        gpu.set_grid({{256, 1, 1}, {512, 1, 1}});
    };
    const auto sha256 = [](FlatGpu& gpu) {
        gpu.load_kernel("sha256", 3);
        gpu.set_arguments(gpu.allocate(512 * 32), 0u);
        gpu.set_grid({{256, 1, 1}, {512, 1, 1}});
    };
    ASSERT_NO_FATAL_FAILURE(compare("matmul", matmul, 311));
    ASSERT_NO_FATAL_FAILURE(compare("collatz", collatz, 1009));
    ASSERT_NO_FATAL_FAILURE(compare("sha256", sha256, 2003));
}

}  // namespace
}  // namespace vgpu::test
