// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/mem/vf_vram.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <random>

#include "pf-driver/softgpu/base/bits.h"
#include "tests/unit/mem/memory_rig.h"

namespace vgpu::softgpu::mem {
namespace {

using test::contiguous_leaves;
using test::write_vf_page_table;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kRoot = 0x10000;
constexpr std::uint64_t kOtherRoot = 0x20000;

struct VfVramTest : testing::Test {
    std::unique_ptr<DeviceVram> device = std::move(*DeviceVram::create(64_MiB));
    VfVram vf1{*device, VfId{1}};
    VfVram vf2{*device, VfId{2}};

    Result<> commit(VfVram& vf, std::uint64_t root, const std::vector<std::uint64_t>& leaves) {
        write_vf_page_table(*device, root, leaves);
        return vf.commit(DeviceOffset{root}, Bytes{leaves.size() * DeviceVram::kLeafBytes});
    }
};

TEST_F(VfVramTest, ScatteredPagesAreOneMemfd) {
    std::vector<std::uint64_t> leaves = contiguous_leaves(16 * kMiB, 16_MiB);
    std::shuffle(leaves.begin(), leaves.end(), std::mt19937(1));
    ASSERT_TRUE(commit(vf1, kRoot, leaves));
    ASSERT_EQ(vf1.size(), 16_MiB);
    void* mapped = mmap(nullptr, 16 * kMiB, PROT_READ | PROT_WRITE, MAP_SHARED, vf1.memfd(), 0);
    ASSERT_NE(mapped, MAP_FAILED);
    const std::span<std::byte> bar(static_cast<std::byte*>(mapped), 16 * kMiB);
    for (std::uint64_t at = 0; at < 16 * kMiB; at += kMiB) store(bar, at, at ^ 0x5555);
    for (std::uint64_t at = 0; at < 16 * kMiB; at += kMiB) {
        EXPECT_EQ(shared_at<std::uint64_t>(vf1.host(VfOffset{at})).load(), at ^ 0x5555);
        const std::uint64_t leaf = leaves[at / DeviceVram::kLeafBytes];
        EXPECT_EQ(vf1.host(VfOffset{at}),
                  device->host(DeviceOffset{leaf + at % DeviceVram::kLeafBytes}));
    }
    munmap(mapped, 16 * kMiB);
}

TEST_F(VfVramTest, TheMemfdCannotBeResized) {
    ASSERT_TRUE(commit(vf1, kRoot, contiguous_leaves(16 * kMiB, 4_MiB)));
    EXPECT_NE(ftruncate(vf1.memfd(), 0), 0);
    EXPECT_NE(ftruncate(vf1.memfd(), 8 * kMiB), 0);
    EXPECT_NE(fcntl(vf1.memfd(), F_GET_SEALS) & F_SEAL_SHRINK, 0);
}

TEST_F(VfVramTest, AnOldMappingNeverReachesTheNextOwner) {
    ASSERT_TRUE(commit(vf1, kRoot, contiguous_leaves(16 * kMiB, 4_MiB)));
    void* mapped = mmap(nullptr, 4 * kMiB, PROT_READ | PROT_WRITE, MAP_SHARED, vf1.memfd(), 0);
    ASSERT_NE(mapped, MAP_FAILED);
    const std::span<std::byte> old_owner(static_cast<std::byte*>(mapped), 4 * kMiB);
    store(old_owner, 0, 0x1111u);
    vf1.release();
    EXPECT_TRUE(device->verify_zero(DeviceOffset{16 * kMiB}, 4_MiB));

    ASSERT_TRUE(commit(vf2, kOtherRoot, contiguous_leaves(16 * kMiB, 4_MiB)));
    const std::uint32_t secret = 0x2222;
    ASSERT_TRUE(vf2.write(VfOffset{0}, bytes_of(secret)));
    EXPECT_EQ(load<std::uint32_t>(old_owner), 0x1111u);
    store(old_owner, 0, 0x3333u);
    EXPECT_EQ(shared_at<std::uint32_t>(vf2.host(VfOffset{0})).load(), secret);
    munmap(mapped, 4 * kMiB);
}

TEST_F(VfVramTest, ANewCommitStartsFromZero) {
    ASSERT_TRUE(commit(vf1, kRoot, contiguous_leaves(16 * kMiB, 4_MiB)));
    const std::uint32_t value = 1;
    ASSERT_TRUE(vf1.write(VfOffset{64}, bytes_of(value)));
    ASSERT_TRUE(commit(vf1, kRoot, contiguous_leaves(16 * kMiB, 4_MiB)));
    EXPECT_TRUE(device->verify_zero(DeviceOffset{16 * kMiB}, 4_MiB));
}

TEST_F(VfVramTest, LeavesOfAnotherVfAreRefusedAndTheVfHasNoVram) {
    ASSERT_TRUE(commit(vf1, kRoot, contiguous_leaves(16 * kMiB, 8_MiB)));
    const std::uint32_t value = 0xabcd;
    ASSERT_TRUE(vf1.write(VfOffset{6 * kMiB}, bytes_of(value)));
    const Result<> stolen = commit(vf2, kOtherRoot, contiguous_leaves(22 * kMiB, 8_MiB));
    ASSERT_FALSE(stolen);
    EXPECT_EQ(stolen.error().code, EBUSY);
    EXPECT_EQ(vf2.size(), 0_B);
    EXPECT_EQ(vf2.host(VfOffset{0}), nullptr);
    EXPECT_EQ(vf2.memfd(), -1);
    EXPECT_EQ(shared_at<std::uint32_t>(vf1.host(VfOffset{6 * kMiB})).load(), value);
}

/// As if a release had forgotten the leaves.
TEST_F(VfVramTest, APageOfAnotherVfIsNotReached) {
#ifdef NDEBUG
    GTEST_SKIP() << "assertions are off in this build";
#else
    const auto leaves = contiguous_leaves(16 * kMiB, 4_MiB);
    ASSERT_TRUE(commit(vf1, kRoot, leaves));
    device->release_pages(VfId{1});
    ASSERT_TRUE(device->claim_pages(VfId{2}, leaves));
    EXPECT_DEATH((void)vf1.host(VfOffset{0}), "belongs to another VF");
#endif
}

TEST_F(VfVramTest, BadTablesAreRefused) {
    const auto good = contiguous_leaves(16 * kMiB, 4_MiB);
    write_vf_page_table(*device, kRoot, good);
    EXPECT_FALSE(vf1.commit(DeviceOffset{kRoot}, 6_MiB)) << "third leaf is not valid";
    EXPECT_FALSE(vf1.commit(DeviceOffset{kRoot}, 3_MiB)) << "size is not a number of leaves";
    EXPECT_FALSE(vf1.commit(DeviceOffset{kRoot}, 0_MiB));
    EXPECT_FALSE(vf1.commit(DeviceOffset{kRoot + 8}, 4_MiB)) << "root is not aligned";
    EXPECT_FALSE(vf1.commit(DeviceOffset{20 * kMiB}, 4_MiB)) << "root is not in the PF's VRAM";
    EXPECT_FALSE(vf1.commit(DeviceOffset{~0ull - 4095}, 4_MiB));
    EXPECT_FALSE(vf1.commit(DeviceOffset{kRoot}, 128_MiB)) << "more than the device has";
    EXPECT_FALSE(commit(vf1, kRoot, {16 * kMiB, 14 * kMiB})) << "the PF's own pages";
    EXPECT_FALSE(commit(vf1, kRoot, {16 * kMiB, 64 * kMiB})) << "beyond the device";
    EXPECT_FALSE(commit(vf1, kRoot, {16 * kMiB, 17 * kMiB})) << "leaf is not 2 MiB aligned";
    const std::uint64_t outside = (20 * kMiB) | VF_PAGE_TABLE_VALID;
    ASSERT_TRUE(device->write(DeviceOffset{kRoot}, bytes_of(outside)));
    EXPECT_FALSE(vf1.commit(DeviceOffset{kRoot}, 4_MiB)) << "leaf table in a VF's pages";
    EXPECT_TRUE(commit(vf1, kRoot, good));
}

TEST_F(VfVramTest, BeyondTheVramReadsAreOnesAndWritesVanish) {
    ASSERT_TRUE(commit(vf1, kRoot, contiguous_leaves(16 * kMiB, 4_MiB)));
    std::array<std::uint8_t, 16> out{};
    EXPECT_FALSE(vf1.read(VfOffset{4 * kMiB - 8}, std::as_writable_bytes(std::span(out))));
    EXPECT_EQ(out[7], 0u);
    EXPECT_EQ(out[8], 0xffu);
    EXPECT_FALSE(vf1.write(VfOffset{4 * kMiB - 8}, std::as_bytes(std::span(out))));
    EXPECT_TRUE(device->verify_zero(DeviceOffset{20 * kMiB}, 4_MiB));
}

TEST_F(VfVramTest, PagesAreUntranslatableBeforeTheRevocationAndReplacedAfter) {
    ASSERT_TRUE(commit(vf1, kRoot, contiguous_leaves(16 * kMiB, 4_MiB)));
    const std::uint32_t value = 77;
    ASSERT_TRUE(vf1.write(VfOffset{0}, bytes_of(value)));
    int calls = 0;
    vf1.set_revocation([&] {
        EXPECT_EQ(vf1.host(VfOffset{0}), nullptr);
        const auto at = DeviceOffset{16 * kMiB};
        EXPECT_EQ(shared_at<std::uint32_t>(device->host(at)).load(), value)
            << "an engine may still use the page";
        ++calls;
    });
    vf1.release();
    EXPECT_EQ(calls, 1);
    EXPECT_TRUE(device->verify_zero(DeviceOffset{16 * kMiB}, 4_MiB));
    vf1.set_revocation({});
}

}  // namespace
}  // namespace vgpu::softgpu::mem
