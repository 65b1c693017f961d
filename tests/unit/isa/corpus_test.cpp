// SPDX-License-Identifier: MIT
//
// The corpus: programs compiled for gfx900 at three levels of optimisation, compared bit for bit
// with the same source compiled for the host.
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/isa/corpus_oracle.h"
#include "tests/unit/isa/flat_gpu.h"

namespace vgpu::test {
namespace {

using softgpu::isa::StopReason;
using softgpu::isa::Variant;

constexpr unsigned kItems = 256;

std::vector<std::uint32_t> random_input() {
    std::mt19937 generator(29);
    std::vector<std::uint32_t> out(corpus::kWords);
    for (auto& word : out) word = static_cast<std::uint32_t>(generator());
    return out;
}

class Corpus : public testing::TestWithParam<std::tuple<int, Variant>> {};

INSTANTIATE_TEST_SUITE_P(Levels, Corpus,
                         testing::Values(std::tuple{0, Variant::Avx2}, std::tuple{2, Variant::Avx2},
                                         std::tuple{3, Variant::Avx2},
                                         std::tuple{3, Variant::Baseline}),
                         [](const auto& parameters) {
                             const bool avx2 = std::get<1>(parameters.param) == Variant::Avx2;
                             return "O" + std::to_string(std::get<0>(parameters.param)) +
                                    (avx2 ? "Avx2" : "Baseline");
                         });

TEST_P(Corpus, EveryProgramComputesWhatItsSourceDoesOnTheHost) {
    const auto [level, variant] = GetParam();
    if (!softgpu::isa::has_variant(variant)) GTEST_SKIP() << "this processor has no AVX2";
    const auto input = random_input();
    EXPECT_GE(corpus::programs().size(), 40u);
    for (const corpus::Program& program : corpus::programs()) {
        FlatGpu gpu(48u << 20, variant);
        gpu.load_kernel(std::string("corpus_") + program.name, level);
        const auto out = gpu.allocate(std::size_t{kItems} * corpus::kResults * 4);
        gpu.set_arguments(gpu.upload(input), out);
        gpu.set_grid({{corpus::kGroup, 1, 1}, {kItems, 1, 1}});
        ASSERT_EQ(gpu.dispatch().reason, StopReason::AllWavesEnded) << program.name;
        const auto got = gpu.download<std::uint32_t>(out, std::size_t{kItems} * corpus::kResults);
        const auto want = corpus::results(program, kItems, input);
        for (std::size_t k = 0; k < want.size(); ++k)
            if (got[k] != want[k]) {
                ADD_FAILURE() << program.name << " -O" << level << ": item " << k / corpus::kResults
                              << " result " << k % corpus::kResults << std::hex << ": " << got[k]
                              << " instead of " << want[k];
                break;
            }
    }
}

}  // namespace
}  // namespace vgpu::test
