// SPDX-License-Identifier: MIT
//
// Stands in for OpenCL C: its types, and halves as soft floats. corpus_programs.inc is made by the
// build: every program in a namespace of its own, and their table.
#include "tests/unit/isa/corpus_oracle.h"

#include <algorithm>
#include <bit>

#include "tests/unit/isa/soft_float.h"

#define global
#define local
#define AS_FLOAT(x) std::bit_cast<float>(static_cast<std::uint32_t>(x))
#define AS_UINT(x) std::bit_cast<std::uint32_t>(static_cast<float>(x))
#define AS_DOUBLE(x) std::bit_cast<double>(static_cast<std::uint64_t>(x))
#define AS_ULONG(x) std::bit_cast<std::uint64_t>(static_cast<double>(x))
#define AS_HALF(x)                    \
    half {                            \
        static_cast<std::uint16_t>(x) \
    }
#define HALF_BITS(x) std::uint32_t((x).bits)

namespace vgpu::test::corpus {
namespace {

using uint = std::uint32_t;
using ulong = std::uint64_t;
using ushort = std::uint16_t;

struct half {
    std::uint16_t bits;

    explicit half(std::uint16_t from) : bits(from) {}
    explicit half(float value)
        : bits(static_cast<std::uint16_t>(
              pack(unpack(std::bit_cast<std::uint32_t>(value), kSingle), kHalf))) {}
    explicit operator float() const {
        return std::bit_cast<float>(static_cast<std::uint32_t>(pack(unpack(bits, kHalf), kSingle)));
    }
};
half rounded(Quad value) {
    return half{static_cast<std::uint16_t>(pack(value, kHalf))};
}
half operator+(half a, half b) {
    return rounded(unpack(a.bits, kHalf) + unpack(b.bits, kHalf));
}
half operator-(half a, half b) {
    return rounded(unpack(a.bits, kHalf) - unpack(b.bits, kHalf));
}
half operator*(half a, half b) {
    return rounded(unpack(a.bits, kHalf) * unpack(b.bits, kHalf));
}
bool operator<(half a, half b) {
    return unpack(a.bits, kHalf) < unpack(b.bits, kHalf);
}

// One item after the other: what is atomic there is plain here.
void local_atomic_add(uint* cell, uint value) {
    *cell += value;
}
void local_atomic_max(uint* cell, uint value) {
    *cell = std::max(*cell, value);
}
void local_atomic_xor(uint* cell, uint value) {
    *cell ^= value;
}

#include "tests/kernels/corpus/language.h"
// corpus_programs.inc brings kPrograms
#include "corpus_programs.inc"

}  // namespace

std::span<const Program> programs() {
    return kPrograms;
}

std::vector<std::uint32_t> results(const Program& program, unsigned items,
                                   std::span<const std::uint32_t> in) {
    std::vector<std::uint32_t> out(std::size_t{items} * kResults);
    for (unsigned first = 0; first < items; first += kGroup) {
        std::vector<std::uint32_t> shared(program.local_words);
        for (unsigned phase = 0; phase < program.phases; ++phase)
            for (unsigned k = 0; k < kGroup; ++k)
                program.item(phase, first + k, k, shared.data(), in.data(),
                             out.data() + std::size_t{first + k} * kResults);
    }
    return out;
}

}  // namespace vgpu::test::corpus
