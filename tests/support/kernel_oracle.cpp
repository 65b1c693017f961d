// SPDX-License-Identifier: MIT
#include "tests/support/kernel_oracle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace vgpu::test::oracle {

using std::uint32_t;
using std::uint64_t;

std::vector<double> array_increment(std::span<const double> x) {
    std::vector<double> out(x.begin(), x.end());
    for (double& value : out) value += 1.0;
    return out;
}

std::vector<float> vector_add(std::span<const float> a, std::span<const float> b) {
    std::vector<float> out(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) out[i] = a[i] + b[i];
    return out;
}

std::vector<float> saxpy(std::span<const float> x, std::span<const float> y, float a) {
    std::vector<float> out(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) out[i] = std::fma(a, x[i], y[i]);
    return out;
}

std::vector<float> matmul(std::span<const float> a, std::span<const float> b, uint32_t n) {
    std::vector<float> out(std::size_t{n} * n);
    for (uint32_t row = 0; row < n; ++row)
        for (uint32_t column = 0; column < n; ++column) {
            float sum = 0.0f;
            for (uint32_t k = 0; k < n; ++k) sum = std::fma(a[row * n + k], b[k * n + column], sum);
            out[row * n + column] = sum;
        }
    return out;
}

namespace {

/// The constants of SHA-256: the first bits of the fractional parts of roots of primes.
std::array<uint32_t, 64> primes() {
    std::array<uint32_t, 64> out{};
    std::size_t count = 0;
    for (uint32_t n = 2; count < out.size(); ++n) {
        bool is_prime = true;
        for (uint32_t d = 2; d * d <= n; ++d) is_prime = is_prime && n % d != 0;
        if (is_prime) out[count++] = n;
    }
    return out;
}

/// First 32 bits of the fraction of `root`, for which a 64-bit mantissa is exact enough.
uint32_t fraction_bits(long double root) {
    const long double fraction = root - std::floor(root);
    return static_cast<uint32_t>(fraction * 4294967296.0L);
}

void add_round(std::array<uint32_t, 8>& h, uint32_t constant, uint32_t word) {
    const uint32_t s1 = std::rotr(h[4], 6) ^ std::rotr(h[4], 11) ^ std::rotr(h[4], 25);
    const uint32_t choice = (h[4] & h[5]) ^ (~h[4] & h[6]);
    const uint32_t one = h[7] + s1 + choice + constant + word;
    const uint32_t s0 = std::rotr(h[0], 2) ^ std::rotr(h[0], 13) ^ std::rotr(h[0], 22);
    const uint32_t majority = (h[0] & h[1]) ^ (h[0] & h[2]) ^ (h[1] & h[2]);
    std::rotate(h.begin(), h.begin() + 7, h.end());
    h[4] += one;
    h[0] = one + s0 + majority;
}

std::array<uint32_t, 8> sha256_of(uint32_t number) {
    std::array<uint32_t, 64> w{};
    w[0] = __builtin_bswap32(number);
    w[1] = 0x80000000;
    w[15] = 32;
    for (std::size_t i = 16; i < w.size(); ++i) {
        const uint32_t x = w[i - 15];
        const uint32_t y = w[i - 2];
        const uint32_t s0 = std::rotr(x, 7) ^ std::rotr(x, 18) ^ (x >> 3);
        const uint32_t s1 = std::rotr(y, 17) ^ std::rotr(y, 19) ^ (y >> 10);
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    const auto prime = primes();
    std::array<uint32_t, 8> start{};
    for (std::size_t i = 0; i < 8; ++i)
        start[i] = fraction_bits(std::sqrt(static_cast<long double>(prime[i])));
    std::array<uint32_t, 8> h = start;
    for (std::size_t i = 0; i < 64; ++i)
        add_round(h, fraction_bits(std::cbrt(static_cast<long double>(prime[i]))), w[i]);
    for (std::size_t i = 0; i < 8; ++i) h[i] += start[i];
    return h;
}

}  // namespace

std::vector<uint32_t> sha256(uint32_t base, uint32_t items) {
    std::vector<uint32_t> out;
    for (uint32_t t = 0; t < items; ++t) {
        const auto digest = sha256_of(base + t);
        out.insert(out.end(), digest.begin(), digest.end());
    }
    return out;
}

std::vector<uint32_t> collatz(uint32_t items) {
    std::vector<uint32_t> out(items);
    for (uint32_t t = 0; t < items; ++t)
        for (uint64_t value = uint64_t{t} + 1; value != 1; ++out[t])
            value = value % 2 != 0 ? 3 * value + 1 : value / 2;
    return out;
}

std::vector<uint32_t> lds_neighbours(std::span<const uint32_t> in) {
    constexpr std::size_t group = 256;
    std::vector<uint32_t> out(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) {
        const std::size_t first = i / group * group;
        const std::size_t x = i % group;
        const std::size_t next = (x + 1) % group;
        out[i] = in[first + group - 1 - x] + in[first + group - 1 - next];
    }
    return out;
}

std::vector<uint32_t> long_running(uint32_t items, uint32_t rounds) {
    std::vector<uint32_t> out(items);
    for (uint32_t t = 0; t < items; ++t) {
        uint32_t x = t * 2654435761u + 1;
        for (uint32_t i = 0; i < rounds; ++i) {
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
        }
        out[t] = x;
    }
    return out;
}

std::vector<uint32_t> scratch(std::span<const uint32_t> in) {
    constexpr uint32_t cells = 64;
    std::vector<uint32_t> out(in.size());
    for (uint32_t t = 0; t < in.size(); ++t) {
        std::array<uint32_t, cells> cell{};
        for (uint32_t i = 0; i < cells; ++i) cell[i] = i * t;
        uint32_t place = in[t] % cells;
        for (uint32_t i = 0; i < cells; ++i) {
            cell[place] += i;
            place = (place * 5 + cell[(place + 1) % cells]) % cells;
        }
        for (const uint32_t value : cell) out[t] = out[t] * 31 + value;
    }
    return out;
}

std::vector<uint32_t> reduce(std::span<const uint32_t> in, uint32_t per_item) {
    constexpr std::size_t group = 256;
    std::vector<uint32_t> out(in.size() / (group * per_item));
    for (std::size_t i = 0; i < out.size(); ++i)
        for (const uint32_t word : in.subspan(i * group * per_item, group * per_item))
            out[i] += word;
    return out;
}

std::vector<uint32_t> hash(uint32_t items, uint32_t rounds) {
    std::vector<uint32_t> out(items);
    for (uint32_t t = 0; t < items; ++t) {
        uint32_t x = t * 2654435761u + 1;
        for (uint32_t i = 0; i < rounds; ++i) {
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
            x = x * 1664525u + 1013904223u;
        }
        out[t] = x;
    }
    return out;
}

std::vector<float> nbody(std::span<const float> bodies, uint32_t items, uint32_t count) {
    constexpr float softening = 0.01f;
    std::vector<float> out(std::size_t{items} * 4);
    for (std::size_t t = 0; t < items; ++t)
        for (std::size_t k = 0; k < count; ++k) {
            std::array<float, 3> way{};
            float square = softening;
            for (std::size_t d = way.size(); d-- > 0;) {
                way[d] = bodies[k * 4 + d] - bodies[t * 4 + d];
                square = std::fma(way[d], way[d], square);
            }
            const float inverse = 1.0f / std::sqrt(square);
            const float pull = bodies[k * 4 + 3] * inverse * inverse * inverse;
            for (std::size_t d = 0; d < way.size(); ++d)
                out[t * 4 + d] = std::fma(way[d], pull, out[t * 4 + d]);
        }
    return out;
}

std::vector<float> stencil(std::span<const float> in, uint32_t width, uint32_t rows) {
    const std::size_t stride = std::size_t{width} + 2;
    std::vector<float> out(std::size_t{width} * rows);
    for (std::size_t y = 0; y < rows; ++y)
        for (std::size_t x = 0; x < width; ++x) {
            const std::size_t at = (y + 1) * stride + x + 1;
            const float around = in[at - 1] + in[at + 1] + in[at - stride] + in[at + stride];
            out[y * width + x] = 0.5f * in[at] + 0.125f * around;
        }
    return out;
}

std::vector<uint32_t> mandelbrot(uint32_t rows, uint32_t limit) {
    constexpr uint32_t columns = 256;
    std::vector<uint32_t> out(std::size_t{columns} * rows);
    for (uint32_t i = 0; i < out.size(); ++i) {
        const float cx = static_cast<float>(i % columns) * 0.01171875f - 2.25f;
        const uint32_t row = i / columns;
        const uint32_t line = (row / 16 * 5 + 7) % 16 * 16 + row % 16;
        const float cy = static_cast<float>(line) * 0.009765625f - 1.25f;
        float x = 0.0f, y = 0.0f;
        while (out[i] < limit && x * x + y * y <= 4.0f) {
            const float product = x * y;
            const float real = x * x - y * y + cx;
            y = product + product + cy;
            x = real;
            ++out[i];
        }
    }
    return out;
}

Totals atomics(uint32_t n) {
    Totals out{0, ~0u, 0, 0, 0, n, 0};
    for (uint32_t t = 0; t < n; ++t) {
        out.sum += t;
        out.min = std::min(out.min, t + 7);
        out.max = std::max(out.max, t);
        out.all_or |= 1u << (t & 31);
        out.all_xor ^= t * 31;
        out.wide += uint64_t{t} << 8;
    }
    return out;
}

}  // namespace vgpu::test::oracle
