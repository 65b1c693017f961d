// SPDX-License-Identifier: MIT
//
// One wave that runs a few hand-made words, and the fields that the words are put together from.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/isa/encoding.h"
#include "tests/unit/isa/flat_gpu.h"

namespace vgpu::test {

namespace enc = softgpu::isa::enc;
using Words = std::vector<std::uint32_t>;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u32 kEndpgm = 0xbf810000;

inline u32 put(enc::Field field, u32 value) {
    return value << field.first;
}

/// One wave of 32 registers; lane 0 is what most tests look at.
struct Bench {
    explicit Bench(Words words) {
        words.push_back(kEndpgm);
        gpu.load_words(words, 32);
        gpu.set_grid({});
        gpu.spec.lds_bytes = 1024;
        gpu.start(group, {0, 0, 0});
    }
    softgpu::isa::WaveState& wave() { return group.waves[0].state; }
    u32& v(u32 i, unsigned lane = 0) { return group.waves[0].vgprs[i].lane[lane]; }
    u32& s(u32 i) { return wave().scalar[i]; }
    void set_wide(u32 i, u64 value) {
        v(i) = softgpu::low32(value);
        v(i + 1) = softgpu::high32(value);
    }
    u64 wide(u32 i) { return softgpu::join(v(i), v(i + 1)); }
    void run() {
        ASSERT_EQ(softgpu::isa::run(group, gpu.context()).reason,
                  softgpu::isa::StopReason::AllWavesEnded);
    }
    FlatGpu gpu{1u << 20};
    softgpu::isa::Workgroup group;
};

}  // namespace vgpu::test
