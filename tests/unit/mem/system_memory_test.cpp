// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/mem/system_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <cstring>
#include <thread>

#include "pf-driver/softgpu/base/bits.h"
#include "tests/unit/mem/memory_rig.h"

namespace vgpu::softgpu::mem {
namespace {

using test::kBusReadWrite;
using test::make_memfd;
using test::Seal;

constexpr std::uint8_t kReadOnly = static_cast<std::uint8_t>(Access::Read);
constexpr Iova kBase{0x10000};

/// A client that keeps its memory to itself and answers messages.
class Client final : public Peer {
public:
    std::errc dma_read(Iova address, std::span<std::byte> out) override {
        ++messages;
        std::memcpy(out.data(), memory.data() + (raw(address) - raw(kBase)), out.size());
        return is_alive ? std::errc{} : std::errc::not_connected;
    }
    std::errc dma_write(Iova address, std::span<const std::byte> data) override {
        ++messages;
        std::memcpy(memory.data() + (raw(address) - raw(kBase)), data.data(), data.size());
        return is_alive ? std::errc{} : std::errc::not_connected;
    }
    std::errc dma_post(Iova, std::span<const std::byte>) override { return {}; }
    std::vector<std::byte> memory = std::vector<std::byte>(1 << 20);
    std::atomic<int> messages{0};
    bool is_alive = true;
};

struct SystemMemoryTest : testing::Test {
    SystemMemory system;
    OwnedFd fd = make_memfd(1_MiB);

    Result<> map(std::uint64_t address, Bytes size, std::uint64_t offset = 0,
                 std::uint8_t access = kBusReadWrite) {
        return system.map({Iova{address}, size, fd.get(), offset, access});
    }
};

TEST_F(SystemMemoryTest, ASealedMemfdIsReachedDirectly) {
    ASSERT_TRUE(map(0x10000, 64_KiB, 0x4000));
    const std::uint32_t value = 0xdecaf;
    ASSERT_TRUE(system.write(Iova{0x10010}, bytes_of(value)));
    std::uint32_t in_file = 0;
    ASSERT_EQ(pread(fd.get(), &in_file, 4, 0x4010), 4);
    EXPECT_EQ(in_file, value);
    const SystemMemory::Page page = system.find(Iova{0x10fff});
    ASSERT_NE(page.host, nullptr);
    EXPECT_EQ(shared_at<std::uint32_t>(page.host + 0x10).load(), value);
}

TEST_F(SystemMemoryTest, AnUnsealedMemfdIsReachedByMessage) {
    const OwnedFd open_file = make_memfd(1_MiB, Seal::None);
    const auto client = std::make_shared<Client>();
    system.set_peer(client);
    ASSERT_TRUE(system.map({kBase, 64_KiB, open_file.get(), 0, kBusReadWrite}));
    EXPECT_EQ(system.find(kBase).host, nullptr);
    EXPECT_TRUE(system.find(kBase).is_mapped);
    const std::uint32_t value = 5;
    ASSERT_TRUE(system.write(kBase, bytes_of(value)));
    std::uint32_t back = 0;
    ASSERT_TRUE(system.read(kBase, bytes_of(back)));
    EXPECT_EQ(back, value);
    EXPECT_EQ(client->messages, 2);
}

/// Its pages may not be there when they are touched, and it is mapped by whole huge pages only.
TEST_F(SystemMemoryTest, ASealedMemfdOfHugePagesIsReachedByMessage) {
    const OwnedFd huge(memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
    if (!huge) GTEST_SKIP() << "no memfd of huge pages: " << std::strerror(errno);
    struct stat info {};
    ASSERT_EQ(fstat(huge.get(), &info), 0);
    ASSERT_EQ(ftruncate(huge.get(), info.st_blksize), 0);
    ASSERT_EQ(fcntl(huge.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
    ASSERT_TRUE(system.map({kBase, 4_KiB, huge.get(), 0, kBusReadWrite}));
    EXPECT_EQ(system.mapping_count(), 1u);
    EXPECT_TRUE(system.find(kBase).is_mapped);
    EXPECT_EQ(system.find(kBase).host, nullptr);
    EXPECT_TRUE(system.unmap(kBase, 4_KiB));
}

TEST_F(SystemMemoryTest, AFileShorterThanTheMappingIsReachedByMessage) {
    ASSERT_TRUE(map(0x10000, 1_MiB, 0x1000));
    EXPECT_EQ(system.find(kBase).host, nullptr);
    EXPECT_TRUE(system.find(kBase).is_mapped);
}

TEST_F(SystemMemoryTest, ADeadOrMissingClientFailsTheAccessAndNothingElse) {
    ASSERT_TRUE(system.map({kBase, 64_KiB, -1, 0, kBusReadWrite}));
    std::uint32_t value = 0;
    EXPECT_FALSE(system.read(kBase, bytes_of(value)));
    const auto client = std::make_shared<Client>();
    client->is_alive = false;
    system.set_peer(client);
    EXPECT_FALSE(system.write(kBase, bytes_of(value)));
}

TEST_F(SystemMemoryTest, MappingsMayNotOverlapWrapOrBeUnaligned) {
    ASSERT_TRUE(map(0x10000, 64_KiB));
    EXPECT_EQ(map(0x1f000, 8_KiB).error().code, EEXIST);
    EXPECT_EQ(map(0xf000, 8_KiB).error().code, EEXIST);
    EXPECT_EQ(map(0x10000, 4_KiB).error().code, EEXIST);
    EXPECT_EQ(map(0x8000, 256_KiB).error().code, EEXIST);
    EXPECT_TRUE(map(0x20000, 64_KiB));
    EXPECT_EQ(map(0x30010, 4_KiB).error().code, EINVAL);
    EXPECT_EQ(map(0x30000, 100_B).error().code, EINVAL);
    EXPECT_EQ(map(0x30000, 0_B).error().code, EINVAL);
    EXPECT_EQ(map(~0ull - 4095, 8_KiB).error().code, EINVAL);
    EXPECT_EQ(map(0x30000, 4_KiB, 0, 0).error().code, EINVAL);
    EXPECT_TRUE(map(~0ull - 4095, 4_KiB)) << "the last page of the address space";
    EXPECT_TRUE(system.find(Iova{~0ull}).is_mapped);
}

TEST_F(SystemMemoryTest, TheVerySameMappingAgainChangesNothing) {
    ASSERT_TRUE(map(0x10000, 64_KiB));
    EXPECT_TRUE(map(0x10000, 64_KiB));
    EXPECT_EQ(system.mapping_count(), 1u);
    EXPECT_FALSE(map(0x10000, 64_KiB, 0x1000)) << "another part of the file";
}

TEST_F(SystemMemoryTest, UnmapTakesWholeMappingsOnly) {
    ASSERT_TRUE(map(0x10000, 64_KiB));
    ASSERT_TRUE(map(0x20000, 64_KiB));
    EXPECT_EQ(system.unmap(Iova{0x10000}, 32_KiB).error().code, EINVAL);
    EXPECT_EQ(system.unmap(Iova{0x18000}, 32_KiB).error().code, EINVAL);
    EXPECT_EQ(system.unmap(Iova{0x10000}, 96_KiB).error().code, EINVAL);
    EXPECT_EQ(system.unmap(Iova{0x90000}, 64_KiB).error().code, ENOENT);
    EXPECT_EQ(system.mapping_count(), 2u);
    EXPECT_TRUE(system.unmap(Iova{0x10000}, 64_KiB));
    EXPECT_FALSE(system.find(Iova{0x10000}).is_mapped);
    EXPECT_TRUE(system.find(Iova{0x20000}).is_mapped);
    EXPECT_TRUE(system.unmap(Iova{0}, 1_MiB)) << "a range that contains mappings";
    EXPECT_EQ(system.mapping_count(), 0u);
}

TEST_F(SystemMemoryTest, AccessesMayCrossMappingsButNotHoles) {
    ASSERT_TRUE(map(0x10000, 4_KiB));
    ASSERT_TRUE(map(0x11000, 4_KiB, 0x8000));
    std::array<std::byte, 16> bytes{};
    EXPECT_TRUE(system.write(Iova{0x10ff8}, bytes));
    EXPECT_FALSE(system.write(Iova{0x11ff8}, bytes));
    EXPECT_FALSE(system.read(Iova{~0ull - 3}, bytes)) << "wraps to address 0";
}

TEST_F(SystemMemoryTest, ReadOnlyMappingsRefuseWrites) {
    ASSERT_TRUE(map(0x10000, 4_KiB, 0, kReadOnly));
    std::uint32_t value = 1;
    EXPECT_FALSE(system.write(kBase, bytes_of(value)));
    EXPECT_TRUE(system.read(kBase, bytes_of(value)));
}

/// All of the same page of a file, so that the kernel cannot join them.
TEST_F(SystemMemoryTest, TheNumberOfMappingsIsBounded) {
    for (std::uint64_t i = 0; i < SystemMemory::kMaxMappings; ++i)
        ASSERT_TRUE(map(i * 8192, 4_KiB)) << i;
    EXPECT_EQ(map(1ull << 40, 4_KiB).error().code, ENOSPC);
    EXPECT_NE(system.find(Iova{0}).host, nullptr);
    const Iova last{(SystemMemory::kMaxMappings - 1) * 8192};
    EXPECT_TRUE(system.find(last).is_mapped);
    EXPECT_EQ(system.find(last).host, nullptr);
    SystemMemory neighbour;
    ASSERT_TRUE(neighbour.map({kBase, 64_KiB, fd.get(), 0, kBusReadWrite}));
    EXPECT_NE(neighbour.find(kBase).host, nullptr);
}

TEST_F(SystemMemoryTest, AllClientsTogetherLeaveTheProcessMostOfItsMappings) {
    constexpr std::uint64_t kClients = 17;  // VFs and the PF
    constexpr std::uint64_t kLinuxDefault = 65530;
    EXPECT_LE(SystemMemory::share_of(kLinuxDefault).mappings * kClients, kLinuxDefault / 4);
    EXPECT_GT(SystemMemory::share_of(kLinuxDefault).mappings, 200u) << "what QEMU needs";
    EXPECT_EQ(SystemMemory::share_of(1u << 20).mappings, 1024u);
    EXPECT_EQ(SystemMemory::share_of(0).mappings, 64u);
    EXPECT_LE(SystemMemory::share_of(0).size * kClients, 65536_GiB) << "half of 47 bits";
}

TEST_F(SystemMemoryTest, MappingsBeyondTheShareAreReachedByMessage) {
    SystemMemory small(SystemMemory::Share{.mappings = 2, .size = 1_MiB});
    const auto is_direct = [&](Iova address) {
        EXPECT_TRUE(small.map({address, 4_KiB, fd.get(), 0, kBusReadWrite}));
        return small.find(address).host != nullptr;
    };
    EXPECT_TRUE(is_direct(Iova{0x10000}));
    EXPECT_TRUE(is_direct(Iova{0x20000}));
    EXPECT_FALSE(is_direct(Iova{0x30000}));
    ASSERT_TRUE(small.unmap(Iova{0x30000}, 4_KiB));
    EXPECT_FALSE(is_direct(Iova{0x40000})) << "that one had nothing of the share";
    ASSERT_TRUE(small.unmap(Iova{0x10000}, 4_KiB));
    EXPECT_TRUE(is_direct(Iova{0x50000}));
}

TEST_F(SystemMemoryTest, BytesBeyondTheShareAreReachedByMessage) {
    SystemMemory small(SystemMemory::Share{.mappings = 8, .size = 256_KiB});
    const auto is_direct = [&](Iova address, Bytes size) {
        EXPECT_TRUE(small.map({address, size, fd.get(), 0, kBusReadWrite}));
        return small.find(address).host != nullptr;
    };
    EXPECT_FALSE(is_direct(Iova{0x100000}, 512_KiB));
    EXPECT_TRUE(is_direct(Iova{0x200000}, 192_KiB));
    EXPECT_FALSE(is_direct(Iova{0x300000}, 128_KiB));
    EXPECT_TRUE(is_direct(Iova{0x400000}, 64_KiB));
    small.unmap_all();
    EXPECT_TRUE(is_direct(Iova{0x500000}, 256_KiB));
}

TEST_F(SystemMemoryTest, AClientThatShrinksItsFileLaterHarmsNobody) {
    const OwnedFd open_file = make_memfd(1_MiB, Seal::None);
    ASSERT_TRUE(system.map({kBase, 1_MiB, open_file.get(), 0, kBusReadWrite}));
    ASSERT_EQ(ftruncate(open_file.get(), 0), 0);
    std::uint32_t value = 0;
    EXPECT_FALSE(system.read(kBase, bytes_of(value)));
}

TEST_F(SystemMemoryTest, UnmapRevokesBeforeTheMemoryGoes) {
    ASSERT_TRUE(map(0x10000, 4_KiB));
    std::byte* const host = system.find(kBase).host;
    int calls = 0;
    system.set_revocation([&] {
        EXPECT_FALSE(system.find(kBase).is_mapped);
        shared_at<std::uint32_t>(host).store(1);  // still there
        ++calls;
    });
    ASSERT_TRUE(system.unmap(kBase, 4_KiB));
    EXPECT_EQ(calls, 1);
    system.set_revocation({});
}

/// Readers use pages between stop points; unmap() must wait for them.
TEST_F(SystemMemoryTest, UnmapWaitsForReadersThatHoldAPage) {
    constexpr std::size_t kReaders = 2;
    constexpr int kRounds = 30;
    std::array<std::atomic<std::uint64_t>, kReaders> stop_points{};
    std::array<std::atomic<bool>, kReaders> has_ended{};
    std::atomic<bool> is_over{false};
    system.set_revocation([&] {
        for (std::size_t i = 0; i < kReaders; ++i) {
            const std::uint64_t seen = stop_points[i];
            while (stop_points[i] == seen && !has_ended[i]) std::this_thread::yield();
        }
    });
    std::vector<std::thread> readers;
    for (std::size_t i = 0; i < kReaders; ++i) {
        readers.emplace_back([&, i] {
            std::uint64_t sum = 0;
            while (!is_over) {
                const SystemMemory::Page page = system.find(kBase);
                if (page.host != nullptr) sum += shared_at<std::uint32_t>(page.host).load();
                std::uint32_t value = 0;
                if (system.read(Iova{raw(kBase) + 4096}, bytes_of(value))) sum += value;
                ++stop_points[i];
            }
            has_ended[i] = true;
            EXPECT_GE(sum, 0u);
        });
    }
    for (int round = 0; round < kRounds; ++round) {
        ASSERT_TRUE(map(raw(kBase), 64_KiB));
        ASSERT_TRUE(system.unmap(kBase, 64_KiB));
    }
    is_over = true;
    for (std::thread& reader : readers) reader.join();
    system.set_revocation({});
}

}  // namespace
}  // namespace vgpu::softgpu::mem
