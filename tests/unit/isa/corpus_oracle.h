// SPDX-License-Identifier: MIT
//
// The programs of tests/kernels/corpus compiled for the host: what the same source computes there.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace vgpu::test::corpus {

inline constexpr unsigned kGroup = 64, kWords = 4096, kResults = 4;

struct Program {
    const char* name;
    unsigned phases;
    unsigned local_words;
    void (*item)(std::uint32_t phase, std::uint32_t id, std::uint32_t in_group,
                 std::uint32_t* shared, const std::uint32_t* in, std::uint32_t* out);
};

[[nodiscard]] std::span<const Program> programs();

/// kResults words of each of `items` work-items, for kWords words of input.
[[nodiscard]] std::vector<std::uint32_t> results(const Program& program, unsigned items,
                                                 std::span<const std::uint32_t> in);

}  // namespace vgpu::test::corpus
