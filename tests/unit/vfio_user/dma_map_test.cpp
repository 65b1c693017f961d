// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "tests/unit/vfio_user/fake_device.h"

namespace vgpu::softgpu::vfio_user::test {
namespace {

constexpr std::uint32_t kBoth = kDmaMapRead | kDmaMapWrite;
constexpr std::uint64_t kPage = 4096;

Bytes map_of(std::uint64_t address, std::uint64_t size, std::uint32_t flags = kBoth) {
    return as_bytes(DmaMap{.flags = flags, .address = address, .size = size});
}
Bytes unmap_of(std::uint64_t address, std::uint64_t size, std::uint32_t flags = 0) {
    return as_bytes(DmaUnmap{.flags = flags, .address = address, .size = size});
}

TEST(VfioUserDmaMap, ReachesTheDeviceWithItsDescriptor) {
    Served served;
    TestClient client = served.connect();
    const OwnedFd memory(::memfd_create("guest", MFD_CLOEXEC));
    const int fds[] = {memory.get()};
    const DmaMap map{.flags = kDmaMapRead, .offset = 0x3000, .address = 0x10000, .size = 0x2000};
    EXPECT_EQ(client.error_of(Command::DmaMap, as_bytes(map), fds), 0);
    EXPECT_EQ(client.error_of(Command::DmaMap, map_of(0x20000, kPage)), 0);
    const auto calls = served.device.calls();
    ASSERT_EQ(calls.mapped.size(), 2u);
    EXPECT_EQ(raw(calls.mapped[0].address), 0x10000u);
    EXPECT_EQ(calls.mapped[0].size, 0x2000u);
    EXPECT_EQ(calls.mapped[0].fd_offset, 0x3000u);
    EXPECT_TRUE(calls.mapped[0].is_readable);
    EXPECT_FALSE(calls.mapped[0].is_writeable);
    EXPECT_TRUE(calls.had_fd[0]);
    EXPECT_FALSE(calls.had_fd[1]);
}

TEST(VfioUserDmaMap, MalformedMapsAreRefused) {
    Served served;
    TestClient client = served.connect();
    const DmaMap maps[] = {
        {.argsz = 31, .flags = kBoth, .size = kPage},
        {.flags = 0, .size = kPage},
        {.flags = kBoth | 1u << 2, .size = kPage},
        {.flags = kBoth, .size = 0},
        {.flags = kBoth, .size = 100},
        {.flags = kBoth, .address = 1, .size = kPage},
        {.flags = kBoth, .offset = 1, .size = kPage},
        {.flags = kBoth, .address = ~0ull - kPage + 1, .size = 2 * kPage},
        {.flags = kBoth, .offset = ~0ull - kPage + 1, .size = 2 * kPage},
    };
    for (std::size_t i = 0; i < std::size(maps); i++)
        EXPECT_EQ(client.error_of(Command::DmaMap, as_bytes(maps[i])), EINVAL) << "map " << i;
    EXPECT_TRUE(served.device.calls().mapped.empty());
}

TEST(VfioUserDmaMap, OverlapsAreRefused) {
    Served served;
    TestClient client = served.connect();
    EXPECT_EQ(client.error_of(Command::DmaMap, map_of(4 * kPage, 4 * kPage)), 0);
    for (const auto& [page, pages] : {std::pair{4, 4}, {3, 2}, {7, 1}, {5, 1}, {0, 100}, {7, 9}})
        EXPECT_EQ(client.error_of(Command::DmaMap, map_of(std::uint64_t(page) * kPage,
                                                          std::uint64_t(pages) * kPage)),
                  EEXIST)
            << page;
    EXPECT_EQ(client.error_of(Command::DmaMap, map_of(3 * kPage, kPage)), 0);
    EXPECT_EQ(client.error_of(Command::DmaMap, map_of(8 * kPage, kPage)), 0);
}

TEST(VfioUserDmaMap, DeviceMayRefuseAndTheRangeStaysFree) {
    Served served;
    served.device.map_error = {ENOMEM, "no address space"};
    TestClient client = served.connect();
    EXPECT_EQ(client.error_of(Command::DmaMap, map_of(0, kPage)), ENOMEM);
    EXPECT_EQ(client.error_of(Command::DmaUnmap, unmap_of(0, kPage)), ENOENT);
}

TEST(VfioUserDmaMap, NumberOfMapsIsBounded) {
    Served served;
    TestClient client = served.connect();
    for (std::uint64_t i = 0; i < kMaxDmaMaps; i++)
        client.send(Command::DmaMap, map_of(i * 2 * kPage, kPage), kNoReply);
    EXPECT_EQ(client.error_of(Command::DmaMap, map_of(1ull << 40, kPage)), ENOSPC);
    EXPECT_EQ(client.error_of(Command::DmaUnmap, unmap_of(0, kPage)), 0);
    EXPECT_EQ(client.error_of(Command::DmaMap, map_of(1ull << 40, kPage)), 0);
}

TEST(VfioUserDmaUnmap, RemovesEveryMapInsideTheRangeAtOnce) {
    Served served;
    TestClient client = served.connect();
    for (const std::uint64_t page : {1ull, 2ull, 5ull})
        EXPECT_EQ(client.error_of(Command::DmaMap, map_of(page * kPage, kPage)), 0);
    const auto reply = client.call(Command::DmaUnmap, unmap_of(0, 4 * kPage));
    EXPECT_EQ(reply.body, unmap_of(0, 4 * kPage));
    const auto calls = served.device.calls();
    ASSERT_EQ(calls.unmapped.size(), 1u) << "each waits for the engine";
    EXPECT_EQ(raw(calls.unmapped[0].address), 0u);
    EXPECT_EQ(calls.unmapped[0].size, 4 * kPage);
    EXPECT_EQ(client.error_of(Command::DmaUnmap, unmap_of(kPage, kPage)), ENOENT);
    EXPECT_EQ(client.error_of(Command::DmaUnmap, unmap_of(5 * kPage, kPage)), 0);
}

TEST(VfioUserDmaUnmap, NothingIsCutInTwo) {
    Served served;
    TestClient client = served.connect();
    EXPECT_EQ(client.error_of(Command::DmaMap, map_of(4 * kPage, 4 * kPage)), 0);
    EXPECT_EQ(client.error_of(Command::DmaUnmap, unmap_of(4 * kPage, 2 * kPage)), EINVAL);
    EXPECT_EQ(client.error_of(Command::DmaUnmap, unmap_of(5 * kPage, 3 * kPage)), EINVAL);
    EXPECT_EQ(client.error_of(Command::DmaUnmap, unmap_of(5 * kPage, 90 * kPage)), EINVAL);
    EXPECT_TRUE(served.device.calls().unmapped.empty());
}

TEST(VfioUserDmaUnmap, UnknownAndMalformedRangesAreRefused) {
    Served served;
    TestClient client = served.connect();
    EXPECT_EQ(client.error_of(Command::DmaMap, map_of(4 * kPage, kPage)), 0);
    EXPECT_EQ(client.error_of(Command::DmaUnmap, unmap_of(0, kPage)), ENOENT);
    EXPECT_EQ(client.error_of(Command::DmaUnmap, unmap_of(4 * kPage, 0)), EINVAL);
    EXPECT_EQ(client.error_of(Command::DmaUnmap, unmap_of(4 * kPage - 1, 2 * kPage)), EINVAL);
    EXPECT_EQ(client.error_of(Command::DmaUnmap, unmap_of(4 * kPage, kPage + 1)), EINVAL);
    EXPECT_EQ(client.error_of(Command::DmaUnmap, unmap_of(4 * kPage, ~0ull)), EINVAL);
    EXPECT_EQ(client.error_of(Command::DmaUnmap, unmap_of(4 * kPage, kPage, 1u << 5)), EINVAL);
    EXPECT_EQ(client.error_of(Command::DmaUnmap, as_bytes(DmaUnmap{.argsz = 8, .size = kPage})),
              EINVAL);
    EXPECT_EQ(client.error_of(Command::DmaUnmap, unmap_of(4 * kPage, kPage, kDmaUnmapDirtyBitmap)),
              ENOTSUP);
    EXPECT_TRUE(served.device.calls().unmapped.empty());
}

TEST(VfioUserDmaUnmap, AllMeansAll) {
    Served served;
    TestClient client = served.connect();
    EXPECT_EQ(client.error_of(Command::DmaMap, map_of(4 * kPage, kPage)), 0);
    EXPECT_EQ(client.error_of(Command::DmaUnmap, unmap_of(0, kPage, kDmaUnmapAll)), EINVAL);
    EXPECT_EQ(client.error_of(Command::DmaUnmap, unmap_of(0, 0, kDmaUnmapAll)), 0);
    EXPECT_EQ(served.device.calls().unmapped_all, 1);
    EXPECT_EQ(client.error_of(Command::DmaMap, map_of(4 * kPage, kPage)), 0);
}

}  // namespace
}  // namespace vgpu::softgpu::vfio_user::test
