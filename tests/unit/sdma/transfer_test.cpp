// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tests/unit/sdma/sdma_rig.h"

namespace vgpu::softgpu::sdma {
namespace {

using namespace test;
using softgpu::mem::kFbBase;

constexpr std::uint64_t kData = kUserBase;
constexpr std::uint64_t kDataBytes = 0x80000;

struct SdmaTransfer : testing::Test {
    SdmaRig rig;
    std::mt19937_64 random{7};
    SdmaTransfer() {
        EXPECT_TRUE(rig.map_user());
        std::vector<std::uint8_t> bytes(kDataBytes);
        for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
        EXPECT_TRUE(rig.mem.vram->write(VfOffset{kUserVram}, std::as_bytes(std::span(bytes))));
    }
    std::vector<std::uint8_t> memory() const {
        std::vector<std::uint8_t> bytes(kDataBytes);
        EXPECT_TRUE(
            rig.mem.vram->read(VfOffset{kUserVram}, std::as_writable_bytes(std::span(bytes))));
        return bytes;
    }
};

TEST_F(SdmaTransfer, LinearCopiesOfEverySizeAndAlignmentTouchNothingElse) {
    for (const std::uint64_t size : {1ull, 3ull, 4ull, 4095ull, 4096ull, 4097ull, 70000ull}) {
        for (const std::uint64_t skew : {0ull, 1ull, 4090ull}) {
            std::vector<std::uint8_t> expected = memory();
            const std::uint64_t from = 100 + skew;
            const std::uint64_t to = 0x40000 + 3 * skew;
            std::copy_n(expected.begin() + static_cast<long>(from), size,
                        expected.begin() + static_cast<long>(to));
            rig.submit_user(copy_linear(kData + to, kData + from, size));
            ASSERT_EQ(rig.run(), StepResult::Idle);
            ASSERT_EQ(memory(), expected) << size << " bytes, skew " << skew;
        }
    }
}

TEST_F(SdmaTransfer, BroadcastsCopyToTwoPlacesAndGoOnBehindThem) {
    for (const std::uint64_t size : {1ull, 5000ull, 0x18000ull}) {
        constexpr std::uint64_t first = 0x20001, second = 0x40ff0, word = 0x7f000;
        std::vector<std::uint8_t> expected = memory();
        std::copy_n(expected.begin() + 100, size, expected.begin() + long{first});
        std::copy_n(expected.begin() + 100, size, expected.begin() + long{second});
        for (std::size_t i = 0; i < 4; ++i) expected[word + i] = 0x77;
        Dwords packet = copy_linear(kData + first, kData + 100, size);
        packet[0] |= HW_PREP(SDMA_COPY, BROADCAST, 1);
        rig.submit_user(packet + Dwords{low32(kData + second), high32(kData + second)} +
                        fence(kData + word, 0x77777777));
        ASSERT_EQ(rig.run(), StepResult::Idle);
        ASSERT_EQ(memory(), expected) << size << " bytes";
    }
    EXPECT_EQ(rig.engine->state().packets, 6u);
    EXPECT_EQ(rig.engine->state().bad_packets, 0u);
}

TEST_F(SdmaTransfer, ABroadcastGoesOnInItsSecondCopyAfterASwitch) {
    Dwords packet = copy_linear(kData + 0x20000, kData, 0x18000);
    packet[0] |= HW_PREP(SDMA_COPY, BROADCAST, 1);
    std::vector<std::uint8_t> expected = memory();
    std::copy_n(expected.begin(), 0x18000, expected.begin() + 0x20000);
    std::copy_n(expected.begin(), 0x18000, expected.begin() + 0x40000);
    rig.submit_user(packet + Dwords{low32(kData + 0x40000), high32(kData + 0x40000)});
    EXPECT_EQ(rig.engine->step(), StepResult::Progress);
    EXPECT_EQ(rig.engine->step(), StepResult::Progress);  // 32 KiB into the second
    EXPECT_EQ(rig.engine->state().packets, 0u);
    EXPECT_NE(memory(), expected);
    std::vector<std::byte> stream;
    Writer out(stream);
    rig.engine->save(out);
    rig.engine->reset();
    Reader in(stream);
    ASSERT_TRUE(rig.engine->load(in));
    ASSERT_EQ(rig.run(), StepResult::Idle);
    EXPECT_EQ(memory(), expected);
}

TEST_F(SdmaTransfer, OneStepCopiesNoMoreThanItsBudget) {
    rig.submit_user(copy_linear(kData + 0x40000, kData, 0x30000));
    EXPECT_EQ(rig.engine->step({64u << 10, 16}), StepResult::Progress);
    EXPECT_EQ(rig.engine->state().bytes, 64u << 10);
    EXPECT_EQ(rig.engine->state().packets, 0u);
    EXPECT_EQ(rig.engine->step(), StepResult::Progress);
    EXPECT_EQ(rig.engine->step(), StepResult::Progress);
    EXPECT_EQ(rig.engine->state().bytes, 0x30000u);
    EXPECT_EQ(rig.engine->state().packets, 1u);
    EXPECT_EQ(rig.engine->step(), StepResult::Idle);
}

TEST_F(SdmaTransfer, CopiesReachSystemMemoryAndBack) {
    rig.mem.map_page(rig.user_root, kData + kUserBytes, kBusBase | kRwx | GPUVM_PTE_SYSTEM);
    rig.submit_user(copy_linear(kData + kUserBytes, kData, 4096) +
                    copy_linear(kData + 0x10000, kData + kUserBytes, 4096));
    rig.run();
    const std::vector<std::uint8_t> bytes = memory();
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + 4096, bytes.begin() + 0x10000));
    EXPECT_EQ(rig.mem.get_bus<std::uint8_t>(kBusBase + 77), bytes[77]);
}

TEST_F(SdmaTransfer, MemoryWithoutHostAddressIsCopiedByMessage) {
    struct Messages final : Peer {
        std::errc dma_read(Iova address, std::span<std::byte> out) override {
            std::copy_n(memory.begin() + static_cast<long>(raw(address)), out.size(), out.begin());
            return {};
        }
        std::errc dma_write(Iova address, std::span<const std::byte> data) override {
            std::copy(data.begin(), data.end(), memory.begin() + static_cast<long>(raw(address)));
            return {};
        }
        std::errc dma_post(Iova, std::span<const std::byte>) override { return {}; }
        std::vector<std::byte> memory = std::vector<std::byte>(8192);
    };
    const auto messages = std::make_shared<Messages>();
    rig.mem.system.set_peer(messages);
    ASSERT_TRUE(rig.mem.system.map({Iova{0}, 8_KiB, -1, 0, kBusReadWrite}));
    for (std::uint64_t at = 0; at < 8192; at += 4096)
        rig.mem.map_page(rig.user_root, kData + kUserBytes + at, at | kRwx | GPUVM_PTE_SYSTEM);
    rig.submit_user(copy_linear(kData + kUserBytes + 10, kData, 6000) +
                    fence(kData + kUserBytes + 8000, 0x1234) +
                    copy_linear(kData + 0x20000, kData + kUserBytes + 10, 6000));
    EXPECT_EQ(rig.run(), StepResult::Idle);
    const std::vector<std::uint8_t> bytes = memory();
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + 6000, bytes.begin() + 0x20000));
    EXPECT_EQ(load<std::uint32_t>(messages->memory, 8000), 0x1234u);
}

/// The sub-window copy element by element, straight from the fact sheet.
struct Window {
    std::uint32_t element_log2;
    std::array<std::uint32_t, 3> from, to;  // x, y, z in elements
    std::uint32_t from_pitch, to_pitch;     // elements of a row
    std::uint32_t from_slice, to_slice;     // elements of a slice
    std::uint32_t width, height, depth;

    Dwords packet(std::uint64_t from_va, std::uint64_t to_va) const {
        return {header(SDMA_OP_COPY, SDMA_SUB_OP_COPY_SUBWIN) |
                    HW_PREP(SDMA_SUBWIN, ELEMENT_SIZE, element_log2),
                low32(from_va),
                high32(from_va),
                from[0] | from[1] << 16,
                from[2] | (from_pitch - 1) << 13,
                from_slice - 1,
                low32(to_va),
                high32(to_va),
                to[0] | to[1] << 16,
                to[2] | (to_pitch - 1) << 13,
                to_slice - 1,
                (width - 1) | (height - 1) << 16,
                depth - 1};
    }
    void apply(std::vector<std::uint8_t>& bytes, std::uint64_t from_at, std::uint64_t to_at) const {
        const std::uint64_t size = 1ull << element_log2;
        const std::vector<std::uint8_t> old = bytes;
        for (std::uint64_t z = 0; z < depth; ++z)
            for (std::uint64_t y = 0; y < height; ++y)
                for (std::uint64_t i = 0; i < width * size; ++i) {
                    const std::uint64_t source =
                        ((from[2] + z) * from_slice + (from[1] + y) * from_pitch + from[0]) * size;
                    const std::uint64_t target =
                        ((to[2] + z) * to_slice + (to[1] + y) * to_pitch + to[0]) * size;
                    bytes.at(to_at + target + i) = old.at(from_at + source + i);
                }
    }
};

TEST_F(SdmaTransfer, SubWindowsAreCopiedElementByElement) {
    const Window windows[] = {
        {0, {1, 2, 0}, {5, 0, 0}, 100, 64, 1, 1, 37, 11, 1},
        {2, {3, 1, 1}, {0, 2, 0}, 50, 40, 1000, 600, 30, 9, 3},
        {4, {0, 0, 0}, {1, 1, 1}, 256, 300, 2048, 3000, 256, 4, 2},
        {3, {0, 0, 0}, {0, 0, 0}, 1, 1, 1, 1, 1, 1, 1},
    };
    for (const Window& window : windows) {
        for (const std::uint32_t budget : {64u << 10, 4096u, 100u}) {
            std::vector<std::uint8_t> expected = memory();
            window.apply(expected, 0, 0x40000);
            rig.submit_user(window.packet(kData, kData + 0x40000));
            ASSERT_EQ(rig.run({budget, 16}), StepResult::Idle);
            ASSERT_EQ(memory(), expected) << "element size " << window.element_log2;
        }
    }
}

TEST_F(SdmaTransfer, ASubWindowOfOversizedElementsIsBad) {
    Window window{4, {}, {}, 1, 1, 1, 1, 1, 1, 1};
    window.element_log2 = 5;
    rig.submit_user(window.packet(kData, kData + 0x40000));
    rig.run();
    EXPECT_EQ(rig.engine->state().bad_packets, 1u);
}

TEST_F(SdmaTransfer, WriteLinearStoresItsData) {
    Dwords data(50);
    std::iota(data.begin(), data.end(), 0x1000u);
    rig.submit_user(write_linear(kData + 0xffe, data));
    rig.run();
    for (std::size_t i = 0; i < data.size(); ++i) {
        std::uint32_t value = 0;
        const VfOffset at{kUserVram + 0xffe + 4 * i};
        ASSERT_TRUE(rig.mem.vram->read(at, bytes_of(value)));
        EXPECT_EQ(value, data[i]);
    }
}

TEST_F(SdmaTransfer, AWriteThatCouldNeverFitItsRingIsBad) {
    rig.submit_user({header(SDMA_OP_WRITE), low32(kData), high32(kData), 0xfffff});
    rig.run();
    EXPECT_EQ(rig.engine->state().bad_packets, 1u);
}

TEST_F(SdmaTransfer, FillWithDwordsFollowsRocrsCount) {
    std::vector<std::uint8_t> expected = memory();
    constexpr std::uint32_t kDwords = 1000;
    for (std::size_t i = 0; i < kDwords; ++i)
        store(std::as_writable_bytes(std::span(expected)), 0x100 + 4 * i, 0xdeadbeefu);
    rig.submit_user(fill(kData + 0x100, 0xdeadbeef, 2, (kDwords - 1) * 4));
    rig.run({100, 16});
    EXPECT_EQ(memory(), expected);
}

TEST_F(SdmaTransfer, FillWithBytesFollowsTheKernelsCount) {
    std::vector<std::uint8_t> expected = memory();
    for (std::size_t i = 0; i < 4099; ++i)
        expected[0x101 + i] = static_cast<std::uint8_t>(0x44332211u >> (8 * (i % 4)));
    rig.submit_user(fill(kData + 0x101, 0x44332211, 0, 4098));
    rig.run({7, 16});
    EXPECT_EQ(memory(), expected);
}

TEST_F(SdmaTransfer, PtepdeGeneratesEntries) {
    rig.enable_kernel_ring();
    constexpr std::uint64_t kTable = 0x180000;
    constexpr std::uint64_t kFlags = kRwx | GPUVM_PTE_SYSTEM;
    constexpr std::uint32_t kCount = 700;
    const std::uint64_t table = kFbBase + kTable;
    rig.submit({header(SDMA_OP_PTEPDE), low32(table), high32(table), low32(kFlags), 0,
                low32(kBusBase), 0, 0x1000, 0, kCount - 1});
    rig.run({1000, 16});
    for (std::uint64_t i = 0; i < kCount; ++i)
        ASSERT_EQ(rig.mem.get<std::uint64_t>(kTable + 8 * i), kFlags | (kBusBase + 0x1000 * i));
    EXPECT_EQ(rig.mem.get<std::uint64_t>(kTable + 8 * kCount), 0u);
}

TEST_F(SdmaTransfer, AFaultHaltsTheQueueAtThePageAndReportsIt) {
    rig.mem.map_page(rig.user_root, kData + 0x3000, 0);
    rig.submit_user(copy_linear(kData + 0x40000, kData + 0x1000, 0x4000) +
                    fence(kData + 0x50000, 1));
    const std::vector<std::uint8_t> before = memory();
    rig.run();
    ASSERT_EQ(rig.faults.size(), 1u);
    EXPECT_EQ(rig.faults[0].hub, softgpu::mem::Hub::Mm);
    EXPECT_EQ(rig.faults[0].vmid, kUserVmid);
    EXPECT_EQ(rig.faults[0].pasid, kUserPasid);
    EXPECT_EQ(rig.faults[0].fault.kind, softgpu::mem::FaultKind::NotPresent);
    EXPECT_EQ(rig.faults[0].fault.va, GpuVa{kData + 0x3000});
    const std::vector<std::uint8_t> after = memory();
    EXPECT_TRUE(
        std::equal(after.begin() + 0x40000, after.begin() + 0x42000, before.begin() + 0x1000))
        << "what came before the fault is there";
    EXPECT_EQ(after[0x50000], before[0x50000]) << "nothing after the fault runs";
    EXPECT_FALSE(rig.engine->has_work());
    EXPECT_TRUE(rig.engine->unmap(SdmaRig::doorbell_of(0))) << "a halted queue can be unmapped";
}

TEST_F(SdmaTransfer, ANeighboursVramCannotBeNamed) {
    const std::uint64_t outside = kVfBytes.count;
    rig.mem.map_page(rig.user_root, kData + kUserBytes, outside | kRwx);
    rig.submit_user(copy_linear(kData, kData + kUserBytes, 64));
    rig.run();
    ASSERT_EQ(rig.faults.size(), 1u);
    EXPECT_EQ(rig.faults[0].fault.kind, softgpu::mem::FaultKind::OutOfRange);
    const DeviceOffset neighbour{softgpu::mem::DeviceVram::kPfBytes.count + outside};
    EXPECT_TRUE(rig.mem.device->verify_zero(neighbour, kVfBytes));
}

}  // namespace
}  // namespace vgpu::softgpu::sdma
