// SPDX-License-Identifier: MIT
//
// What the test kernels compute, computed by the host in plain C++: one function per kernel in
// tests/kernels, with the same arguments. Results are compared bit for bit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vgpu::test::oracle {

[[nodiscard]] std::vector<double> array_increment(std::span<const double> x);
[[nodiscard]] std::vector<float> vector_add(std::span<const float> a, std::span<const float> b);
[[nodiscard]] std::vector<float> saxpy(std::span<const float> x, std::span<const float> y, float a);
/// Square matrices of side n; sums in the order of the kernel, with fused multiply-adds.
[[nodiscard]] std::vector<float> matmul(std::span<const float> a, std::span<const float> b,
                                        std::uint32_t n);
/// Eight words per item.
[[nodiscard]] std::vector<std::uint32_t> sha256(std::uint32_t base, std::uint32_t items);
[[nodiscard]] std::vector<std::uint32_t> collatz(std::uint32_t items);
/// Work-groups of 256.
[[nodiscard]] std::vector<std::uint32_t> lds_neighbours(std::span<const std::uint32_t> in);
[[nodiscard]] std::vector<std::uint32_t> long_running(std::uint32_t items, std::uint32_t rounds);
[[nodiscard]] std::vector<std::uint32_t> scratch(std::span<const std::uint32_t> in);

/// One sum of `per_item` * 256 words for each group of 256.
[[nodiscard]] std::vector<std::uint32_t> reduce(std::span<const std::uint32_t> in,
                                                std::uint32_t per_item);
[[nodiscard]] std::vector<std::uint32_t> hash(std::uint32_t items, std::uint32_t rounds);
/// Bodies are x, y, z and mass; accelerations are x, y, z and 0. The division and the root are
/// rounded correctly, which an OpenCL device need not do.
[[nodiscard]] std::vector<float> nbody(std::span<const float> bodies, std::uint32_t items,
                                       std::uint32_t count);
/// `in` has a border of one cell around `width` columns.
[[nodiscard]] std::vector<float> stencil(std::span<const float> in, std::uint32_t width,
                                         std::uint32_t rows);
/// An image of 256 columns.
[[nodiscard]] std::vector<std::uint32_t> mandelbrot(std::uint32_t rows, std::uint32_t limit);

struct Totals {
    std::uint32_t sum, min, max, all_or, all_xor, seen;
    std::uint64_t wide;
};
/// The result of n items; `min` starts at ~0, the other counters at 0.
[[nodiscard]] Totals atomics(std::uint32_t n);

}  // namespace vgpu::test::oracle
