// SPDX-License-Identifier: MIT
//
// The benchmark's workloads on the bare engine: what is compared for speed is right to begin with.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/workloads/workload.h"
#include "tests/unit/isa/flat_gpu.h"

namespace vgpu::test {
namespace {

using softgpu::isa::StopReason;

class Workloads : public testing::TestWithParam<std::size_t> {
protected:
    [[nodiscard]] static const WorkloadKind& kind() { return workload_kinds().at(GetParam()); }
    void start(const Workload& workload) {
        gpu.load_kernel(workload.kernel, 3);
        gpu.set_arguments();
        for (const auto& words : workload.buffers) addresses.push_back(gpu.upload(words));
        for (const auto& argument : workload.arguments) {
            if (argument.kind == WorkArgument::Kind::Buffer)
                gpu.add_argument(addresses[argument.value]);
            else
                gpu.add_argument(argument.value);
        }
        gpu.set_grid(
            {{workload.group[0], workload.group[1], 1}, {workload.items[0], workload.items[1], 1}});
    }
    FlatGpu gpu{16u << 20};
    std::vector<std::uint64_t> addresses;
};

INSTANTIATE_TEST_SUITE_P(Kinds, Workloads, testing::Range(std::size_t{0}, workload_kinds().size()),
                         [](const auto& index) {
                             auto name = workload_kinds().at(index.param).name;
                             std::erase(name, '-');
                             return name;
                         });

TEST_P(Workloads, SmallestSizeGivesWhatTheHostComputesAlsoTheSecondTime) {
    constexpr std::uint32_t runs = 2;
    const auto workload = kind().make(kind().sizes.front(), runs);
    start(workload);
    for (std::uint32_t i = 0; i < runs; ++i)
        ASSERT_EQ(gpu.dispatch().reason, StopReason::AllWavesEnded);
    const auto words = workload.buffers[workload.output].size();
    const auto output = gpu.download<std::uint32_t>(addresses[workload.output], words);
    EXPECT_EQ(wrong_words(workload, output), 0u);
}

TEST_P(Workloads, OutputThatWasNeverWrittenIsWrong) {
    const auto workload = kind().make(kind().sizes.front(), 1);
    EXPECT_GT(wrong_words(workload, workload.buffers[workload.output]), 0u);
}

TEST_P(Workloads, SizesGrow) {
    EXPECT_TRUE(std::ranges::is_sorted(kind().sizes));
    const auto& sizes = kind().sizes;
    EXPECT_LT(kind().make(sizes[0], 1).work, kind().make(sizes[1], 1).work);
}

TEST(WrongWords, OneBitIsSeenWhereNoToleranceIsNamed) {
    Workload workload;
    workload.expected = {1, 2, 3};
    EXPECT_EQ(wrong_words(workload, WorkWords{1, 2, 3}), 0u);
    EXPECT_EQ(wrong_words(workload, WorkWords{1, 3, 3}), 1u);
}

TEST(WrongWords, ToleranceIsRelativeToTheLargestAndNoNumberIsWrong) {
    constexpr std::uint32_t four = 0x40800000, next = 0x40800001, five = 0x40a00000;
    constexpr std::uint32_t not_a_number = 0x7fc00000;
    Workload workload;
    workload.expected = {four, 0};
    workload.tolerance = 1.0f / 4096;
    EXPECT_EQ(wrong_words(workload, WorkWords{next, 0}), 0u);
    EXPECT_EQ(wrong_words(workload, WorkWords{five, 0}), 1u);
    EXPECT_EQ(wrong_words(workload, WorkWords{not_a_number, 0}), 1u);
}

}  // namespace
}  // namespace vgpu::test
