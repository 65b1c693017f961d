// SPDX-License-Identifier: MIT
#include "tests/support/workloads/workload.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "tests/support/kernel_oracle.h"

namespace vgpu::test {
namespace {

using std::uint32_t;

constexpr std::uint16_t kLine = 256;  ///< items of a one-dimensional group
constexpr std::uint16_t kTile = 16;   ///< side of a two-dimensional group

WorkArgument buffer(uint32_t index) {
    return {WorkArgument::Kind::Buffer, index};
}
WorkArgument number(uint32_t value) {
    return {WorkArgument::Kind::Number, value};
}
WorkArgument number(float value) {
    return number(std::bit_cast<uint32_t>(value));
}

WorkWords words_of(std::span<const float> values) {
    WorkWords out(values.size());
    std::ranges::transform(values, out.begin(),
                           [](float value) { return std::bit_cast<uint32_t>(value); });
    return out;
}

/// Pseudorandom 32-bit words, the same on every machine.
WorkWords scattered(std::size_t count) {
    WorkWords out(count);
    uint32_t x = 2463534242u;
    for (auto& word : out) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        word = x;
    }
    return out;
}

/// Whole numbers of [-8, 7] as floats.
std::vector<float> whole_floats(std::size_t count) {
    const auto bits = scattered(count);
    std::vector<float> out(count);
    std::ranges::transform(bits, out.begin(), [](uint32_t word) {
        return static_cast<float>(static_cast<int>(word >> 28) - 8);
    });
    return out;
}

double sum_of(const WorkWords& words) {
    return std::accumulate(words.begin(), words.end(), 0.0);
}

/// `size` elements, four to a work-item; every run adds a * x to y again.
Workload saxpy(uint32_t size, uint32_t runs) {
    constexpr uint32_t per_item = 4;
    constexpr float a = 2.0f;
    const auto x = whole_floats(size);
    std::vector<float> y(x.rbegin(), x.rend());
    Workload out{.kernel = "saxpy",
                 .items = {size / per_item, 1},
                 .group = {kLine, 1},
                 .buffers = {words_of(x), words_of(y)},
                 .output = 1,
                 .arguments = {buffer(0), buffer(1), number(a), number(size)},
                 .work = 2.0 * size};
    // exact as long as sums stay below 2^24
    out.expected = words_of(oracle::saxpy(x, y, a * static_cast<float>(runs)));
    return out;
}

Workload matrices(const std::string& kernel, uint32_t size) {
    const auto cells = std::size_t{size} * size;
    const auto a = whole_floats(2 * cells);
    const std::span<const float> left(a.data(), cells), right(a.data() + cells, cells);
    return {.kernel = kernel,
            .items = {size, size},
            .group = {kTile, kTile},
            .buffers = {words_of(left), words_of(right), WorkWords(cells)},
            .output = 2,
            .arguments = {buffer(0), buffer(1), buffer(2), number(size)},
            .expected = words_of(oracle::matmul(left, right, size)),
            .work = 2.0 * size * size * size};
}
Workload matmul(uint32_t size, uint32_t) {
    return matrices("matmul_global", size);
}
Workload matmul_lds(uint32_t size, uint32_t) {
    return matrices("matmul", size);
}

/// Accelerations of the first `size` bodies, which the first `field` bodies pull.
Workload nbody(uint32_t size, uint32_t) {
    constexpr uint32_t field = 1024;
    constexpr double flops = 20;
    constexpr float tolerance = 1.0f / 4096;
    const auto bodies = whole_floats(std::size_t{4} * std::max(size, field));
    return {.kernel = "nbody",
            .items = {size, 1},
            .group = {kLine, 1},
            .buffers = {words_of(bodies), WorkWords(std::size_t{4} * size)},
            .output = 1,
            .arguments = {buffer(0), buffer(1), number(field)},
            .expected = words_of(oracle::nbody(bodies, size, field)),
            .tolerance = tolerance,
            .work = flops * size * field};
}

/// Sums of `size` words.
Workload reduce(uint32_t size, uint32_t) {
    constexpr uint32_t per_item = 4;
    auto in = scattered(size);
    auto sums = oracle::reduce(in, per_item);
    WorkWords space(sums.size());
    return {.kernel = "reduce",
            .items = {size / per_item, 1},
            .group = {kLine, 1},
            .buffers = {std::move(in), std::move(space)},
            .output = 1,
            .arguments = {buffer(0), buffer(1), number(per_item)},
            .expected = std::move(sums),
            .work = static_cast<double>(size)};
}

/// A one-dimensional kernel that reads nothing; its `size` items write the words `expected`.
Workload generator(const std::string& kernel, uint32_t size, WorkWords expected) {
    return {.kernel = kernel,
            .items = {size, 1},
            .group = {kLine, 1},
            .buffers = {WorkWords(expected.size())},
            .output = 0,
            .arguments = {buffer(0)},
            .expected = std::move(expected)};
}

Workload hash(uint32_t size, uint32_t) {
    constexpr uint32_t rounds = 256;
    constexpr double operations = 8;
    auto out = generator("hash", size, oracle::hash(size, rounds));
    out.arguments.push_back(number(rounds));
    out.work = operations * size * rounds;
    return out;
}

Workload collatz(uint32_t size, uint32_t) {
    auto out = generator("collatz", size, oracle::collatz(size));
    out.work = sum_of(out.expected);
    return out;
}

Workload sha256(uint32_t size, uint32_t) {
    constexpr uint32_t base = 1000;
    auto out = generator("sha256", size, oracle::sha256(base, size));
    out.arguments.push_back(number(base));
    out.work = size;
    return out;
}

constexpr uint32_t kColumns = 256;

/// `size` rows.
Workload stencil(uint32_t size, uint32_t) {
    const auto in = whole_floats(std::size_t{kColumns + 2} * (size + 2));
    constexpr double flops = 6;
    return {.kernel = "stencil",
            .items = {kColumns, size},
            .group = {kTile, kTile},
            .buffers = {words_of(in), WorkWords(std::size_t{kColumns} * size)},
            .output = 1,
            .arguments = {buffer(0), buffer(1), number(kColumns)},
            .expected = words_of(oracle::stencil(in, kColumns, size)),
            .work = flops * kColumns * size};
}

/// `size` rows.
Workload mandelbrot(uint32_t size, uint32_t) {
    constexpr uint32_t limit = 256;
    auto out = generator("mandelbrot", size, oracle::mandelbrot(size, limit));
    out.items = {kColumns, size};
    out.group = {kTile, kTile};
    out.arguments.push_back(number(limit));
    out.work = sum_of(out.expected);
    return out;
}

std::vector<uint32_t> powers(uint32_t first, uint32_t last) {
    std::vector<uint32_t> out;
    for (uint32_t size = first; size <= last; size *= 2) out.push_back(size);
    return out;
}

/// Sides of matrices, multiples of kTile.
std::vector<uint32_t> sides() {
    return {32, 48, 64, 96, 128, 192, 256, 384, 512};
}

}  // namespace

const std::vector<WorkloadKind>& workload_kinds() {
    static const std::vector<WorkloadKind> kinds{
        {"saxpy", "flop", powers(1u << 12, 1u << 21), saxpy},
        {"matmul", "flop", sides(), matmul},
        {"matmul-lds", "flop", sides(), matmul_lds},
        {"nbody", "flop", powers(256, 1u << 14), nbody},
        {"reduce", "element", powers(1u << 12, 1u << 22), reduce},
        {"hash", "operation", powers(256, 1u << 18), hash},
        {"collatz", "step", powers(1024, 1u << 18), collatz},
        {"sha256", "hash", powers(256, 1u << 14), sha256},
        {"stencil", "flop", powers(16, 1u << 12), stencil},
        {"mandelbrot", "step", powers(16, 1u << 12), mandelbrot},
    };
    return kinds;
}

namespace {

float largest(std::span<const uint32_t> words) {
    float out = 0;
    for (const auto word : words) out = std::max(out, std::abs(std::bit_cast<float>(word)));
    return out;
}

}  // namespace

std::size_t wrong_words(const Workload& workload, std::span<const uint32_t> output) {
    const float bound =
        workload.tolerance == 0 ? 0 : workload.tolerance * largest(workload.expected);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < workload.expected.size(); ++i) {
        const uint32_t want = workload.expected[i], got = output[i];
        const float distance = std::abs(std::bit_cast<float>(got) - std::bit_cast<float>(want));
        const bool is_right = got == want || (bound > 0 && distance <= bound);
        wrong += is_right ? 0 : 1;
    }
    return wrong;
}

}  // namespace vgpu::test
