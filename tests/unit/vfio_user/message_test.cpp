// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "tests/unit/vfio_user/fake_device.h"

namespace vgpu::softgpu::vfio_user::test {
namespace {

constexpr std::uint32_t kMemory = FakeDevice::kMemory;
constexpr std::uint32_t kSmall = FakeDevice::kSmall;

Bytes pattern(std::size_t size) {
    Bytes bytes(size);
    for (std::size_t i = 0; i < size; i++) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
    return bytes;
}

Bytes data_of(const Incoming& reply) {
    return {reply.body.begin() + sizeof(RegionAccess), reply.body.end()};
}

TEST(VfioUserInfo, DeviceIsAPciFunctionThatCanReset) {
    Served served;
    TestClient client = served.connect();
    const auto reply = client.call(Command::DeviceGetInfo, as_bytes(DeviceInfo{}));
    EXPECT_EQ(reply.body.size(), sizeof(DeviceInfo));
    const auto info = reply.as<DeviceInfo>();
    EXPECT_EQ(info.argsz, sizeof(DeviceInfo));
    EXPECT_EQ(info.flags, kDeviceReset | kDevicePci);
    EXPECT_EQ(info.num_regions, 9u);
    EXPECT_EQ(info.num_irqs, 5u);
    EXPECT_EQ(client.error_of(Command::DeviceGetInfo, as_bytes(DeviceInfo{.argsz = 15})), EINVAL);
}

TEST(VfioUserInfo, TrappedRegionHasNoDescriptor) {
    Served served;
    TestClient client = served.connect();
    const auto reply =
        client.call(Command::DeviceGetRegionInfo, as_bytes(RegionInfo{.index = kSmall}));
    const auto info = reply.as<RegionInfo>();
    EXPECT_EQ(reply.body.size(), sizeof(RegionInfo));
    EXPECT_EQ(info.flags, kRegionRead | kRegionWrite);
    EXPECT_EQ(info.index, kSmall);
    EXPECT_EQ(info.size, 4096u);
    EXPECT_TRUE(reply.fds.empty());
}

TEST(VfioUserInfo, MissingRegionHasNoSize) {
    Served served;
    TestClient client = served.connect();
    const auto info = client.call(Command::DeviceGetRegionInfo, as_bytes(RegionInfo{.index = 6}))
                          .as<RegionInfo>();
    EXPECT_EQ(info.size, 0u);
    EXPECT_EQ(info.flags, 0u);
}

TEST(VfioUserInfo, WhollyMappableRegionComesWithItsDescriptor) {
    Served served;
    served.device.areas = {{0, 2u << 20}};
    TestClient client = served.connect();
    const auto reply =
        client.call(Command::DeviceGetRegionInfo, as_bytes(RegionInfo{.index = kMemory}));
    const auto info = reply.as<RegionInfo>();
    EXPECT_EQ(info.flags, kRegionRead | kRegionWrite | kRegionMmap);
    EXPECT_EQ(info.argsz, sizeof(RegionInfo));
    ASSERT_EQ(reply.fds.size(), 1u);
    void* mapped = ::mmap(nullptr, info.size, PROT_READ | PROT_WRITE, MAP_SHARED,
                          reply.fds[0].get(), static_cast<off_t>(info.offset));
    ASSERT_NE(mapped, MAP_FAILED);
    ::munmap(mapped, info.size);
}

TEST(VfioUserInfo, PartlyMappableRegionListsItsAreas) {
    Served served;
    served.device.areas = {{0x1000, 0x3000}, {0x100000, 0x1000}};
    TestClient client = served.connect();
    const auto reply = client.call(Command::DeviceGetRegionInfo,
                                   as_bytes(RegionInfo{.argsz = 4096, .index = kMemory}));
    const auto info = reply.as<RegionInfo>();
    EXPECT_EQ(info.flags, kRegionRead | kRegionWrite | kRegionMmap | kRegionCaps);
    EXPECT_EQ(info.cap_offset, sizeof(RegionInfo));
    ASSERT_EQ(info.argsz, sizeof(RegionInfo) + sizeof(SparseMmap) + 2 * sizeof(MmapArea));
    ASSERT_EQ(reply.body.size(), info.argsz);
    ASSERT_EQ(reply.fds.size(), 1u);
    const auto sparse = load<SparseMmap>(reply.body, info.cap_offset);
    EXPECT_EQ(sparse.id, kCapSparseMmap);
    EXPECT_EQ(sparse.version, 1u);
    EXPECT_EQ(sparse.next, 0u);
    ASSERT_EQ(sparse.area_count, 2u);
    const auto second = load<MmapArea>(reply.body, sizeof(RegionInfo) + sizeof(SparseMmap) + 16);
    EXPECT_EQ(second.offset, 0x100000u);
    EXPECT_EQ(second.size, 0x1000u);
}

TEST(VfioUserInfo, TooSmallABufferLearnsTheSizeAndGetsNoDescriptor) {
    Served served;
    served.device.areas = {{0x1000, 0x3000}};
    TestClient client = served.connect();
    const auto reply =
        client.call(Command::DeviceGetRegionInfo, as_bytes(RegionInfo{.index = kMemory}));
    const auto info = reply.as<RegionInfo>();
    EXPECT_EQ(reply.body.size(), sizeof(RegionInfo));
    EXPECT_EQ(info.argsz, sizeof(RegionInfo) + sizeof(SparseMmap) + sizeof(MmapArea));
    EXPECT_GE(info.cap_offset, sizeof(RegionInfo));  // QEMU checks before it asks again
    EXPECT_TRUE(reply.fds.empty());
}

TEST(VfioUserInfo, IndicesOutOfRangeAreRefused) {
    Served served;
    TestClient client = served.connect();
    EXPECT_EQ(client.error_of(Command::DeviceGetRegionInfo, as_bytes(RegionInfo{.index = 9})),
              EINVAL);
    EXPECT_EQ(client.error_of(Command::DeviceGetRegionInfo, as_bytes(RegionInfo{.argsz = 8})),
              EINVAL);
    EXPECT_EQ(client.error_of(Command::DeviceGetIrqInfo, as_bytes(IrqInfo{.index = 5})), EINVAL);
    EXPECT_EQ(client.error_of(Command::DeviceGetIrqInfo, as_bytes(IrqInfo{.argsz = 0})), EINVAL);
}

TEST(VfioUserInfo, IrqInfoTellsTheVectorCount) {
    Served served;
    TestClient client = served.connect();
    const auto info =
        client.call(Command::DeviceGetIrqInfo, as_bytes(IrqInfo{.index = 2})).as<IrqInfo>();
    EXPECT_EQ(info.argsz, sizeof(IrqInfo));
    EXPECT_EQ(info.flags, kIrqEventfd);
    EXPECT_EQ(info.index, 2u);
    EXPECT_EQ(info.count, FakeDevice::kVectors);
}

TEST(VfioUserMessages, WhatIsNotOfferedIsAnsweredSo) {
    Served served;
    TestClient client = served.connect();
    constexpr std::uint16_t kCommands[] = {0, 6, 11, 12, 14, 16, 17, 18, 19, 255, 65535};
    for (const std::uint16_t command : kCommands)
        EXPECT_EQ(client.error_of(Command{command}, as_bytes(std::uint64_t{0})), ENOTSUP)
            << command;
    client.sync();
}

TEST(VfioUserMessages, RequestsThatAreTooShortAreRefused) {
    Served served;
    TestClient client = served.connect();
    struct Row {
        std::uint16_t command;
        std::size_t bytes;
    };
    constexpr Row kRows[] = {
#define COMMAND(name, number, handler, body_bytes, max_fds, doc) {number, body_bytes},
#include "pf-driver/softgpu/vfio_user/protocol.def"
#undef COMMAND
    };
    for (const Row& row : kRows) {
        if (row.bytes == 0) continue;
        EXPECT_EQ(client.error_of(Command{row.command}, Bytes(row.bytes - 1)), EINVAL)
            << row.command;
    }
    client.sync();
}

TEST(VfioUserRegion, ReadsBackWhatWasWritten) {
    Served served;
    TestClient client = served.connect();
    for (const std::size_t size : {1u, 2u, 4u, 8u, 3u, 4096u, 1u << 20}) {
        EXPECT_EQ(client.write_region(kMemory, 5, pattern(size)), 0);
        const auto reply = client.read_region(kMemory, 5, static_cast<std::uint32_t>(size));
        EXPECT_EQ(reply.as<RegionAccess>().offset, 5u);
        EXPECT_EQ(reply.as<RegionAccess>().count, size);
        EXPECT_EQ(data_of(reply), pattern(size)) << size;
    }
}

TEST(VfioUserRegion, LastByteIsInsideAndTheNextIsNot) {
    Served served;
    TestClient client = served.connect();
    EXPECT_EQ(client.write_region(kSmall, 4095, pattern(1)), 0);
    EXPECT_EQ(client.write_region(kSmall, 4096, pattern(1)), EINVAL);
}

TEST(VfioUserRegion, AccessesOutsideAreRefused) {
    Served served;
    TestClient client = served.connect();
    const RegionAccess accesses[] = {
        {4096, kSmall, 1},  {4093, kSmall, 4},
        {~0ull, kSmall, 1}, {~0ull - 3, kSmall, 8},
        {0, kSmall, 4097},  {0, 6, 1},
        {0, 9, 1},          {0, ~0u, 1},
        {0, kSmall, 0},     {0, kMemory, (1u << 20) + 1},
        {0, kMemory, ~0u},
    };
    for (const RegionAccess& access : accesses)
        EXPECT_EQ(client.error_of(Command::RegionRead, as_bytes(access)), EINVAL)
            << access.offset << " region " << access.region << " count " << access.count;
}

TEST(VfioUserRegion, DataThatDoesNotMatchTheCountIsRefused) {
    Served served;
    TestClient client = served.connect();
    const Bytes head = as_bytes(RegionAccess{0, kSmall, 4});
    EXPECT_EQ(client.error_of(Command::RegionWrite, join(head, pattern(3))), EINVAL);
    EXPECT_EQ(client.error_of(Command::RegionWrite, join(head, pattern(5))), EINVAL);
    EXPECT_EQ(client.error_of(Command::RegionRead, join(head, pattern(4))), EINVAL);
    EXPECT_EQ(data_of(client.read_region(kSmall, 0, 4)), Bytes(4));
}

TEST(VfioUserRegion, PostedWritesAreNeitherAnsweredNorReordered) {
    Served served;
    TestClient client = served.connect();
    constexpr std::uint32_t kWrites = 20000;
    for (std::uint32_t i = 1; i <= kWrites; i++) client.post_write(kSmall, i % 8 * 4, as_bytes(i));
    const auto reply = client.read_region(kSmall, 0, 32);  // call() checks that it is the reply
    for (std::uint32_t slot = 0; slot < 8; slot++) {
        const std::uint32_t last = kWrites - (kWrites - slot) % 8;
        EXPECT_EQ(load<std::uint32_t>(data_of(reply), slot * 4), last);
    }
}

TEST(VfioUserRegion, PostedWriteThatFailsIsCountedAndSilent) {
    Served served;
    TestClient client = served.connect();
    client.post_write(kSmall, 4096, pattern(4));
    client.sync();
    EXPECT_EQ(served.counters().suppressed_errors, 1u);
}

TEST(VfioUserRegion, ReadThatWantsNoReplyIsRefusedAndReadsNothing) {
    Served served;
    std::atomic<int> reads{0};
    served.device.during_call = [&] { reads++; };
    TestClient client = served.connect();
    client.send(Command::RegionRead, as_bytes(RegionAccess{0, kSmall, 4}), kNoReply);
    client.sync();
    EXPECT_EQ(reads, 0);
    EXPECT_EQ(served.counters().suppressed_errors, 1u);
}

SingleWrite one_write(std::uint64_t offset, std::uint32_t count, std::uint64_t data) {
    return {.offset = offset, .region = kSmall, .count = count, .data = data};
}

TEST(VfioUserRegion, SeveralWritesInOneMessage) {
    Served served;
    TestClient client = served.connect();
    Bytes body = as_bytes(WriteMulti{.count = 3});
    body = join(body, as_bytes(one_write(0, 8, 0x1122334455667788)));
    body = join(body, as_bytes(one_write(8, 4, 0xaabbccdd)));
    body = join(body, as_bytes(one_write(9, 1, 0xee)));
    client.send(Command::RegionWriteMulti, body, kNoReply);
    const Bytes data = data_of(client.read_region(kSmall, 0, 16));
    EXPECT_EQ(load<std::uint64_t>(data, 0), 0x1122334455667788u);
    EXPECT_EQ(load<std::uint32_t>(data, 8), 0xaabbeeddu);
    EXPECT_EQ(client.call(Command::RegionWriteMulti, body).as<WriteMulti>().count, 3u);
}

TEST(VfioUserRegion, ABadWriteAmongSeveralStopsOnlyItself) {
    Served served;
    TestClient client = served.connect();
    Bytes body = as_bytes(WriteMulti{.count = 4});
    body = join(body, as_bytes(one_write(4096, 4, 1)));
    body = join(body, as_bytes(one_write(0, 9, 1)));
    body = join(body, as_bytes(one_write(0, 0, 1)));
    body = join(body, as_bytes(one_write(4, 4, 0x55)));
    EXPECT_EQ(client.error_of(Command::RegionWriteMulti, body), EINVAL);
    EXPECT_EQ(load<std::uint64_t>(data_of(client.read_region(kSmall, 0, 8))), 0x55ull << 32);
}

TEST(VfioUserRegion, WriteCountMustMatchTheMessage) {
    Served served;
    TestClient client = served.connect();
    const Bytes one = as_bytes(one_write(0, 4, 0x77));
    for (const std::uint64_t count : {0ull, 2ull, 0x0aaaaaaaaaaaaaabull, ~0ull})
        EXPECT_EQ(client.error_of(Command::RegionWriteMulti,
                                  join(as_bytes(WriteMulti{.count = count}), one)),
                  EINVAL);
    EXPECT_EQ(data_of(client.read_region(kSmall, 0, 4)), Bytes(4));
}

TEST(VfioUserRegion, AMessageMayHaveAsManyWritesAsQemuSendsAndNoMore) {
    Served served;
    TestClient client = served.connect();
    const auto writes_of = [](std::uint64_t count) {
        Bytes body = as_bytes(WriteMulti{.count = count});
        for (std::uint64_t i = 0; i < count; i++) body = join(body, as_bytes(one_write(0, 4, 7)));
        return body;
    };
    EXPECT_EQ(client.error_of(Command::RegionWriteMulti, writes_of(kMaxWrites + 1)), EINVAL);
    EXPECT_EQ(data_of(client.read_region(kSmall, 0, 4)), Bytes(4));
    EXPECT_EQ(client.error_of(Command::RegionWriteMulti, writes_of(kMaxWrites)), 0);
    EXPECT_EQ(load<std::uint32_t>(data_of(client.read_region(kSmall, 0, 4))), 7u);
}

TEST(VfioUserReset, ReachesTheDevice) {
    Served served;
    TestClient client = served.connect();
    const auto reply = client.call(Command::DeviceReset, {});
    EXPECT_FALSE(reply.is_error());
    EXPECT_TRUE(reply.body.empty());
    EXPECT_EQ(served.device.calls().resets, 1);
}

}  // namespace
}  // namespace vgpu::softgpu::vfio_user::test
