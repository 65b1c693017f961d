// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/mem/vram.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>

#include "pf-driver/softgpu/base/owned_fd.h"
#include "pf-driver/softgpu/mem/zero.h"

namespace vgpu::softgpu::mem {
namespace {

std::unique_ptr<DeviceVram> make_device() {
    return std::move(*DeviceVram::create(48_MiB));
}

constexpr std::uint64_t kMiB = 1 << 20;

TEST(DeviceVram, RefusesASizeThatIsNotAMultipleOf16MiB) {
    EXPECT_FALSE(DeviceVram::create(17_MiB));
    EXPECT_FALSE(DeviceVram::create(0_MiB));
    EXPECT_TRUE(DeviceVram::create(16_MiB));
}

TEST(DeviceVram, StartsAsZero) {
    EXPECT_TRUE(make_device()->verify_zero(DeviceOffset{0}, 48_MiB));
}

TEST(DeviceVram, VerifyNamesTheFirstByteThatIsNotZero) {
    const auto device = make_device();
    const std::byte one{1};
    ASSERT_TRUE(device->write(DeviceOffset{12345}, std::span(&one, 1)));
    const Result<> verified = device->verify_zero(DeviceOffset{0}, 1_MiB);
    ASSERT_FALSE(verified);
    EXPECT_NE(verified.error().message.find("0x3039"), std::string::npos);
}

TEST(DeviceVram, EveryBulkOperationRefusesARangeOutsideTheDevice) {
    const auto device = make_device();
    const DeviceOffset end{48 * kMiB};
    const DeviceOffset wrapping{~0ull - 15};
    EXPECT_FALSE(device->scrub(end, 1_B));
    EXPECT_FALSE(device->scrub(wrapping, 16_B));
    EXPECT_FALSE(device->verify_zero(wrapping, 32_B));
    std::array<std::byte, 8> bytes{};
    EXPECT_FALSE(device->read(DeviceOffset{48 * kMiB - 4}, bytes));
    EXPECT_FALSE(device->write(DeviceOffset{48 * kMiB - 4}, bytes));
}

/// A large range gets fresh pages, a small one is overwritten.
TEST(DeviceVram, ScrubMakesTheRangeZeroAndNothingElse) {
    for (const Bytes length : {4_MiB, 64_KiB, 100_B}) {
        const auto device = make_device();
        const std::span<std::byte> around(device->host(DeviceOffset{16 * kMiB}), 8 * kMiB);
        std::ranges::fill(around, std::byte{0xff});
        ASSERT_TRUE(device->scrub(DeviceOffset{18 * kMiB}, length));
        EXPECT_TRUE(device->verify_zero(DeviceOffset{18 * kMiB}, length));
        EXPECT_EQ(*device->host(DeviceOffset{18 * kMiB - 1}), std::byte{0xff});
        EXPECT_EQ(*device->host(DeviceOffset{18 * kMiB + length.count}), std::byte{0xff});
    }
}

TEST(DeviceVram, BackingOfAPageInUseIsNotReplacedButZeroed) {
    const auto device = make_device();
    const std::array<std::uint64_t, 1> leaves = {16 * kMiB};
    const OwnedFd memfd(memfd_create("backing", MFD_CLOEXEC));
    ASSERT_EQ(ftruncate(memfd.get(), 2 * kMiB), 0);
    ASSERT_TRUE(device->claim_pages(VfId{1}, leaves));
    ASSERT_TRUE(device->map_backing(DeviceOffset{16 * kMiB}, 2_MiB, memfd.get(), 0));
    std::ranges::fill(std::span(device->host(DeviceOffset{16 * kMiB}), 2 * kMiB), std::byte{7});
    EXPECT_TRUE(device->scrub(DeviceOffset{16 * kMiB}, 2_MiB));
    EXPECT_TRUE(device->verify_zero(DeviceOffset{16 * kMiB}, 2_MiB));
    std::byte in_file{1};
    ASSERT_EQ(pread(memfd.get(), &in_file, 1, kMiB), 1);
    EXPECT_EQ(in_file, std::byte{0});
}

TEST(DeviceVram, APageHasOneOwnerAtMost) {
    const auto device = make_device();
    const std::array<std::uint64_t, 2> mine = {16 * kMiB, 20 * kMiB};
    const std::array<std::uint64_t, 2> overlapping = {18 * kMiB, 20 * kMiB};
    ASSERT_TRUE(device->claim_pages(VfId{1}, mine));
    EXPECT_FALSE(device->claim_pages(VfId{2}, overlapping));
    const std::array<std::uint64_t, 1> untouched = {18 * kMiB};
    EXPECT_TRUE(device->claim_pages(VfId{3}, untouched)) << "a refused claim keeps nothing";
    device->release_pages(VfId{1});
    const std::array<std::uint64_t, 1> freed = {20 * kMiB};
    EXPECT_TRUE(device->claim_pages(VfId{2}, freed));
}

TEST(DeviceVram, ThePfsPartUnalignedPagesAndTheSamePageTwiceAreNotForVfs) {
    const auto device = make_device();
    const std::array<std::array<std::uint64_t, 2>, 4> bad = {{{14 * kMiB, 16 * kMiB},
                                                              {16 * kMiB, 17 * kMiB},
                                                              {16 * kMiB, 48 * kMiB},
                                                              {16 * kMiB, 16 * kMiB}}};
    for (const auto& leaves : bad) EXPECT_FALSE(device->claim_pages(VfId{1}, leaves));
}

TEST(Zero, ReachesEveryByteOfAnUnalignedRangeAndNoOther) {
    for (const std::size_t size : {0u, 1u, 63u, 64u, 65u, 200u, 4097u}) {
        for (const std::size_t start : {0u, 1u, 31u, 63u}) {
            std::vector<std::byte> bytes(start + size + 64, std::byte{0xaa});
            zero_non_temporal(std::span(bytes).subspan(start, size));
            const auto is_old = [](std::byte b) { return b == std::byte{0xaa}; };
            EXPECT_TRUE(
                std::all_of(bytes.begin(), bytes.begin() + static_cast<long>(start), is_old));
            EXPECT_EQ(find_non_zero(std::span(bytes).subspan(start, size)), size);
            EXPECT_TRUE(
                std::all_of(bytes.begin() + static_cast<long>(start + size), bytes.end(), is_old));
        }
    }
}

TEST(Zero, FindsASingleBitAnywhere) {
    for (const std::size_t at : {0u, 7u, 255u, 256u, 511u, 999u}) {
        std::vector<std::byte> bytes(1000);
        bytes[at] = std::byte{0x10};
        EXPECT_EQ(find_non_zero(bytes), at);
    }
}

}  // namespace
}  // namespace vgpu::softgpu::mem
