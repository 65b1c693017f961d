// SPDX-License-Identifier: MIT
//
// The corpus: programs compiled for gfx900 as OpenCL C and as HIP at three levels of optimisation,
// compared bit for bit with the same source compiled for the host.
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

/// What a program is compiled as, the level of optimisation, and what executes it.
using Way = std::tuple<const char*, int, Variant>;
std::string name(const Way& way) {
    const auto [language, level, variant] = way;
    return std::string(language) + "O" + std::to_string(level) +
           (variant == Variant::Avx2 ? "Avx2" : "Baseline");
}

class Corpus : public testing::TestWithParam<Way> {};

INSTANTIATE_TEST_SUITE_P(Levels, Corpus,
                         testing::Values(Way{"cl", 0, Variant::Avx2}, Way{"cl", 2, Variant::Avx2},
                                         Way{"cl", 3, Variant::Avx2},
                                         Way{"cl", 3, Variant::Baseline},
                                         Way{"hip", 0, Variant::Avx2}, Way{"hip", 2, Variant::Avx2},
                                         Way{"hip", 3, Variant::Avx2},
                                         Way{"hip", 0, Variant::Baseline}),
                         [](const auto& parameters) { return name(parameters.param); });

TEST_P(Corpus, EveryProgramComputesWhatItsSourceDoesOnTheHost) {
    const auto [language, level, variant] = GetParam();
    if (!softgpu::isa::has_variant(variant)) GTEST_SKIP() << "this processor has no AVX2";
    const auto input = random_input();
    EXPECT_GE(corpus::programs().size(), 40u);
    for (const corpus::Program& program : corpus::programs()) {
        FlatGpu gpu(48u << 20, variant);
        gpu.load_kernel(std::string(language) + "_" + program.name, level);
        const auto out = gpu.allocate(std::size_t{kItems} * corpus::kResults * 4);
        gpu.set_arguments(gpu.upload(input), out);
        gpu.set_grid({{corpus::kGroup, 1, 1}, {kItems, 1, 1}});
        ASSERT_EQ(gpu.dispatch().reason, StopReason::AllWavesEnded) << program.name;
        const auto got = gpu.download<std::uint32_t>(out, std::size_t{kItems} * corpus::kResults);
        const auto want = corpus::results(program, kItems, input);
        for (std::size_t k = 0; k < want.size(); ++k)
            if (got[k] != want[k]) {
                ADD_FAILURE() << program.name << " as " << language << " -O" << level << ": item "
                              << k / corpus::kResults << " result " << k % corpus::kResults
                              << std::hex << ": " << got[k] << " instead of " << want[k];
                break;
            }
    }
}

}  // namespace
}  // namespace vgpu::test
