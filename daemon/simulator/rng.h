// SPDX-License-Identifier: MIT
//
// Rng: seeded random numbers (SplitMix64). Used instead of the distributions of <random>, whose
// results depend on the C++ library.
#pragma once

#include <cmath>
#include <cstdint>

namespace vgpu::simulator {

class Rng {
public:
    explicit Rng(std::uint64_t seed) : state_(seed) {}

    std::uint64_t operator()() {
        state_ += 0x9e3779b97f4a7c15u;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }

    /// Uniformly distributed in 0 .. end - 1; `end` must be above 0.
    std::uint64_t below(std::uint64_t end) { return (*this)() % end; }
    /// Uniformly distributed in first .. last.
    std::int64_t between(std::int64_t first, std::int64_t last) {
        return first +
               static_cast<std::int64_t>(below(static_cast<std::uint64_t>(last - first + 1)));
    }
    /// Uniformly distributed in 0 <= x < 1.
    double unit() { return static_cast<double>((*this)() >> 11) * 0x1p-53; }
    /// True with this probability.
    bool chance(double probability) { return unit() < probability; }
    /// Exponentially distributed with this mean, then rounded up; at least 1.
    std::int64_t exponential(std::int64_t mean) {
        const double x = -std::log1p(-unit()) * static_cast<double>(mean);
        return static_cast<std::int64_t>(x) + 1;
    }
    /// Log-uniformly distributed in 1 .. 9999 (9.21034 is ln 10000).
    std::uint32_t weight() { return static_cast<std::uint32_t>(std::exp(unit() * 9.21034)); }

private:
    std::uint64_t state_;
};

}  // namespace vgpu::simulator
