// SPDX-License-Identifier: MIT
//
// Buffers: formats of typed buffers, records, LDS as the target, private memory; and scalar memory.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>

#include "tests/unit/isa/wave_bench.h"

namespace vgpu::test {
namespace {

using softgpu::isa::info;
using softgpu::isa::kLanes;
using softgpu::isa::Op;
using softgpu::isa::ScalarReg;

/// Stores v12.. in lane 0 to a buffer of one element, loads them back to v8.., gives memory too.
struct Typed {
    std::array<u32, 4> loaded{};
    std::array<u32, 4> memory{};
};

Typed through_memory(Op store, Op load, u32 format, const std::array<u32, 4>& values) {
    const auto words = [&](Op op, u32 vdata) {
        return Words{
            enc::kMtbuf | put(enc::kMtbufOp, info(op).code) | put(enc::kMtbufFormat, format),
            put(enc::kMubufVdata, vdata) | put(enc::kMubufSrsrc, 20) |
                put(enc::kMubufSoffset, enc::kZero)};
    };
    Words program = words(store, 12);
    const Words second = words(load, 8);
    program.insert(program.end(), second.begin(), second.end());
    Bench bench(program);
    const u64 va = bench.gpu.allocate(64);
    bench.s(80) = softgpu::low32(va);
    bench.s(81) = softgpu::high32(va);
    bench.s(82) = 16;
    bench.wave().set_pair(ScalarReg::Exec, 1);
    for (u32 k = 0; k < 4; ++k) bench.v(12 + k) = values[k];
    bench.run();
    Typed out;
    for (u32 k = 0; k < 4; ++k) out.loaded[k] = bench.v(8 + k);
    const auto bytes = bench.gpu.download<u32>(va, 4);
    std::copy(bytes.begin(), bytes.end(), out.memory.begin());
    return out;
}

constexpr u32 format(u32 data, u32 number) {
    return data | (number << enc::kNumberFormat.first);
}
constexpr u32 kUnorm = 0, kSnorm = 1, kUint = 4, kSint = 5, kFloat = 7;
constexpr u32 k8888 = 10, k16_16 = 5, k32x4 = 14, k2_10_10_10 = 9, k11_11_10 = 6;

u32 bits(float x) {
    return std::bit_cast<u32>(x);
}

TEST(TypedBuffer, NormalisedBytesAreRoundedAndBounded) {
    const Typed t =
        through_memory(Op::tbuffer_store_format_xyzw, Op::tbuffer_load_format_xyzw,
                       format(k8888, kUnorm), {bits(0.0f), bits(1.0f), bits(0.5f), bits(7.0f)});
    EXPECT_EQ(t.memory[0], 0xff80ff00u);
    EXPECT_EQ(t.loaded, (std::array<u32, 4>{0, bits(1.0f), bits(128.0f / 255.0f), bits(1.0f)}));
    const Typed s = through_memory(Op::tbuffer_store_format_xy, Op::tbuffer_load_format_xyzw,
                                   format(k16_16, kSnorm), {bits(-1.0f), bits(0.25f), 0, 0});
    EXPECT_EQ(s.memory[0], 0x20008001u);
    EXPECT_EQ(s.loaded, (std::array<u32, 4>{bits(-1.0f), bits(8192.0f / 32767.0f), 0, bits(1.0f)}))
        << "components that are not there are 0, 0, 1";
}

TEST(TypedBuffer, IntegersAndFloatsKeepTheirBits) {
    const std::array<u32, 4> values{1, 0x80000000, 0xffffffff, 0x7fc00001};
    for (const u32 number : {kUint, kSint, kFloat})
        EXPECT_EQ(through_memory(Op::tbuffer_store_format_xyzw, Op::tbuffer_load_format_xyzw,
                                 format(k32x4, number), values)
                      .loaded,
                  values);
    const Typed t = through_memory(Op::tbuffer_store_format_xyzw, Op::tbuffer_load_format_xyzw,
                                   format(k2_10_10_10, kSint), {0x1ff, 0x3ff, 0x200, 3});
    EXPECT_EQ(t.loaded, (std::array<u32, 4>{0x1ff, 0xffffffff, 0xfffffe00, 0xffffffff}));
}

TEST(TypedBuffer, SmallFloatsHaveNoSign) {
    const Typed t =
        through_memory(Op::tbuffer_store_format_xyz, Op::tbuffer_load_format_xyz,
                       format(k11_11_10, kFloat), {bits(1.5f), bits(-2.0f), bits(0.25f), 0});
    EXPECT_EQ(t.loaded[0], bits(1.5f));
    EXPECT_EQ(t.loaded[1], 0u);
    EXPECT_EQ(t.loaded[2], bits(0.25f));
}

TEST(TypedBuffer, SmallFloatsAreRoundedOnceTowardZero) {
    const Typed t =
        through_memory(Op::tbuffer_store_format_xyz, Op::tbuffer_load_format_xyz,
                       format(k11_11_10, kFloat), {bits(1.99999f), bits(1e9f), bits(1.99999f), 0});
    EXPECT_EQ(t.loaded[0], bits(2.0f - 1.0f / 64));
    EXPECT_EQ(t.loaded[1], bits(65024.0f));
    EXPECT_EQ(t.loaded[2], bits(2.0f - 1.0f / 32));
}

TEST(TypedBuffer, HalfRegistersHoldTwoComponents) {
    const Typed t =
        through_memory(Op::tbuffer_store_format_d16_xyzw, Op::tbuffer_load_format_d16_xyzw,
                       format(k8888, kUnorm), {0x3c00'3800, 0x0000'3c00, 0, 0});
    EXPECT_EQ(t.memory[0], 0x00ffff80u);
    EXPECT_EQ(t.loaded[0] >> 16, 0x3c00u);
    EXPECT_EQ(t.loaded[1], 0x0000'3c00u);
}

TEST(Buffer, RecordsCountWhereTheInstructionGivesAnIndex) {
    // buffer_load_dword v8, v12, s[80:83], 0 idxen, and with offen: stride 8, 3 records
    for (const bool indexed : {true, false}) {
        const u32 mode = indexed ? put(enc::kMubufIdxen, 1) : put(enc::kMubufOffen, 1);
        Bench bench({enc::kMubuf | put(enc::kMubufOp, info(Op::buffer_load_dword).code) | mode,
                     put(enc::kMubufVaddr, 12) | put(enc::kMubufVdata, 8) |
                         put(enc::kMubufSrsrc, 20) | put(enc::kMubufSoffset, enc::kZero)});
        const u64 va = bench.gpu.upload(std::vector<u32>(64, 5));
        bench.s(80) = softgpu::low32(va);
        bench.s(81) = softgpu::high32(va) | (8u << 16);
        bench.s(82) = 3;
        for (unsigned l = 0; l < kLanes; ++l) bench.v(12, l) = l;
        bench.run();
        EXPECT_EQ(bench.v(8, 2), indexed ? 5u : 0u) << "record 2, or bytes 2 to 5 of 3";
        EXPECT_EQ(bench.v(8, 3), 0u);
    }
}

TEST(Buffer, LoadsMayGoToLds) {
    Bench bench({enc::kMubuf | put(enc::kMubufOp, info(Op::buffer_load_dword).code) |
                     put(enc::kMubufLds, 1) | put(enc::kMubufOffen, 1),
                 put(enc::kMubufVaddr, 12) | put(enc::kMubufVdata, 8) | put(enc::kMubufSrsrc, 20) |
                     put(enc::kMubufSoffset, enc::kZero)});
    std::vector<u32> values(kLanes);
    for (u32 l = 0; l < kLanes; ++l) values[l] = 1000 + l;
    const u64 va = bench.gpu.upload(values);
    bench.s(80) = softgpu::low32(va);
    bench.s(81) = softgpu::high32(va);
    bench.s(82) = kLanes * 4;
    bench.s(124) = 16;
    for (unsigned l = 0; l < kLanes; ++l) bench.v(12, l) = l * 4;
    bench.run();
    u32 last = 0;
    std::memcpy(&last, bench.group.lds.data() + 16 + 63 * 4, 4);
    EXPECT_EQ(last, 1063u);
    EXPECT_EQ(bench.v(8, 63), 0u) << "no register is written";
}

/// buffer_OP v8, v12, s[80:83], 0 offen offset:48 on private memory of 16 dwords per lane: dword k
/// of lane l holds 100 * k + l before; v12 is the same in all lanes.
struct Private {
    static constexpr u32 kDwords = 16;

    Private(Op op, u32 offset, u32 low = 0, u32 high = 0)
        : bench({enc::kMubuf | put(enc::kMubufOp, info(op).code) | put(enc::kMubufOffen, 1) | 48,
                 put(enc::kMubufVaddr, 12) | put(enc::kMubufVdata, 8) | put(enc::kMubufSrsrc, 20) |
                     put(enc::kMubufSoffset, enc::kZero)}) {
        std::vector<u32> before;
        for (u32 k = 0; k < kDwords; ++k)
            for (u32 l = 0; l < kLanes; ++l) before.push_back(100 * k + l);
        const u64 va = bench.gpu.upload(before);
        bench.s(80) = softgpu::low32(va);
        bench.s(81) = softgpu::high32(va) | (1u << 31);  // swizzled
        bench.s(82) = ~0u;
        bench.s(83) = (1u << 23) | (3u << 21);  // lane number added; the lanes of a dword: 64
        for (unsigned l = 0; l < kLanes; ++l) {
            bench.v(8, l) = low;
            bench.v(9, l) = high;
            bench.v(12, l) = offset;
        }
        bench.run();
        memory = bench.gpu.download<u32>(va, kDwords * kLanes);
    }
    [[nodiscard]] u32 dword(u32 k, u32 lane) const { return memory[k * kLanes + lane]; }
    Bench bench;
    std::vector<u32> memory;
};

TEST(Buffer, NegativeOffsetsOfPrivateMemoryWrapAround) {
    constexpr u32 offset = 0xffffffe4;  // 48 - 28 = 20: dword 5
    Private load(Op::buffer_load_dword, offset);
    Private wide(Op::buffer_load_dwordx2, offset);
    const Private store(Op::buffer_store_dword, offset, 7);
    const Private both(Op::buffer_store_dwordx2, offset, 7, 8);
    const Private byte(Op::buffer_store_byte, offset + 1, 0xab);
    const Private add(Op::buffer_atomic_add, offset, 1000);
    for (const u32 l : {0u, 63u}) {
        EXPECT_EQ(load.bench.v(8, l), 500 + l);
        EXPECT_EQ(wide.bench.v(8, l), 500 + l);
        EXPECT_EQ(wide.bench.v(9, l), 600 + l);
        EXPECT_EQ(store.dword(5, l), 7u);
        EXPECT_EQ(both.dword(5, l), 7u);
        EXPECT_EQ(both.dword(6, l), 8u);
        EXPECT_EQ(byte.dword(5, l), ((500 + l) & 0xffff00ffu) | 0xab00u);
        EXPECT_EQ(add.dword(5, l), 1500 + l);
        EXPECT_EQ(add.dword(6, l), 600 + l);
    }
}

TEST(Buffer, OffsetsOfOtherBuffersDoNotWrap) {
    Bench bench({enc::kMubuf | put(enc::kMubufOp, info(Op::buffer_load_dword).code) |
                     put(enc::kMubufOffen, 1) | 4,
                 put(enc::kMubufVaddr, 12) | put(enc::kMubufVdata, 8) | put(enc::kMubufSrsrc, 20) |
                     put(enc::kMubufSoffset, enc::kZero)});
    const u64 va = bench.gpu.upload(std::vector<u32>(64, 5));
    bench.s(80) = softgpu::low32(va);
    bench.s(81) = softgpu::high32(va);
    bench.s(82) = 256;
    bench.v(12, 0) = ~0u;  // out of bounds on purpose, as compilers put what must not be stored
    bench.v(12, 1) = 8;
    bench.run();
    EXPECT_EQ(bench.v(8, 0), 0u);
    EXPECT_EQ(bench.v(8, 1), 5u);
}

// ---- scalar memory

TEST(ScalarMemory, ScratchOffsetsInRegistersCount64Bytes) {
    Bench bench({enc::kSmem | put(enc::kSmemOp, info(Op::s_scratch_load_dword).code) |
                     put(enc::kSmemData, 88) | put(enc::kSmemBase, 40),
                 6});  // s_scratch_load_dword s88, s[80:81], s6
    std::vector<u32> values(64);
    values[32] = 77;
    const u64 va = bench.gpu.upload(values);
    bench.s(80) = softgpu::low32(va);
    bench.s(81) = softgpu::high32(va);
    bench.s(6) = 2;
    bench.run();
    EXPECT_EQ(bench.s(88), 77u);
}

TEST(ScalarMemory, BufferAtomicsStayInsideTheBuffer) {
    for (const bool inside : {true, false}) {
        Bench bench({enc::kSmem | put(enc::kSmemOp, info(Op::s_buffer_atomic_add).code) |
                         put(enc::kSmemData, 88) | put(enc::kSmemBase, 40) | put(enc::kSmemImm, 1) |
                         put(enc::kSmemGlc, 1),
                     inside ? 4u : 8u});
        const u64 va = bench.gpu.upload(std::vector<u32>{5, 6, 7});
        bench.s(80) = softgpu::low32(va);
        bench.s(81) = softgpu::high32(va);
        bench.s(82) = 8;
        bench.s(88) = 100;
        bench.run();
        EXPECT_EQ(bench.s(88), inside ? 6u : 0u);
        EXPECT_EQ(bench.gpu.download<u32>(va, 3),
                  (inside ? std::vector<u32>{5, 106, 7} : std::vector<u32>{5, 6, 7}));
    }
}

}  // namespace
}  // namespace vgpu::test
