// SPDX-License-Identifier: MIT
// The IOMMU in the root port's BAR: what an attached function reaches through it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/pci_regs.h>

#include "tests/unit/host_view/host_rig.h"

namespace vgpu::softgpu::host_view::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t kRegisters = HostRig::kLow + (32_MiB).count;
constexpr std::uint32_t kDomain = 7;
constexpr std::uint32_t kVf1 = 1;

/// VF1 attached, 1 MiB of memory at 16 MiB, and the IOMMU's registers.
struct IommuRig : HostRig {
    IommuRig() {
        bring_up();
        enable_vfs(4);
        set_port(PCI_BASE_ADDRESS_0, static_cast<std::uint32_t>(kRegisters));
        EXPECT_TRUE(view.dma_map({.address = Iova{16u << 20},
                                  .size = 1u << 20,
                                  .fd_offset = 0x5000,
                                  .is_readable = true,
                                  .is_writeable = true},
                                 -1));
        set_bus_master(1, PCI_COMMAND_MASTER);
        forget();
    }
    void forget() {
        vf(1).owner.story.clear();
        pf.owner.story.clear();
    }
    /// The status: 0 is done.
    std::uint32_t command(vgpu_iommu_command what, std::uint32_t subject, std::uint64_t address,
                          std::uint64_t target, std::uint64_t size) {
        set_memory(kRegisters + VGPU_IOMMU_SUBJECT, subject);
        set_memory(kRegisters + VGPU_IOMMU_ADDRESS, address);
        set_memory(kRegisters + VGPU_IOMMU_TARGET, target);
        set_memory(kRegisters + VGPU_IOMMU_SIZE, size);
        set_memory(kRegisters + VGPU_IOMMU_COMMAND, static_cast<std::uint32_t>(what));
        return memory<std::uint32_t>(kRegisters + VGPU_IOMMU_STATUS);
    }
    std::uint32_t map(std::uint64_t address, std::uint64_t target, std::uint64_t size) {
        return command(VGPU_IOMMU_MAP, kDomain, address, target, size);
    }
    std::uint32_t unmap(std::uint64_t address, std::uint64_t size) {
        return command(VGPU_IOMMU_UNMAP, kDomain, address, 0, size);
    }
    std::uint32_t route(std::uint32_t function, std::uint32_t domain) {
        return command(VGPU_IOMMU_ROUTE, function, 0, domain, 0);
    }
    [[nodiscard]] const std::vector<std::string>& story() { return vf(1).owner.story; }
};

TEST(HostViewIommu, RoutedFunctionReachesOnlyWhatItsDomainMaps) {
    IommuRig rig;
    EXPECT_EQ(rig.map(0x40000000, 16u << 20, 0x3000), 0u);
    EXPECT_THAT(rig.story(), IsEmpty());
    EXPECT_EQ(rig.route(kVf1, kDomain), 0u);
    EXPECT_THAT(rig.story(), ElementsAre("unmap all", "map 0x40000000+0x3000"));
    EXPECT_THAT(rig.pf.owner.story, IsEmpty());
}

TEST(HostViewIommu, MappingsComeAndGoWhileTheFunctionIsAttached) {
    IommuRig rig;
    ASSERT_EQ(rig.route(kVf1, kDomain), 0u);
    rig.forget();
    ASSERT_EQ(rig.map(0x1000, 16u << 20, 0x1000), 0u);
    ASSERT_EQ(rig.unmap(0x1000, 0x1000), 0u);
    EXPECT_THAT(rig.story(), ElementsAre("map 0x1000+0x1000", "unmap 0x1000+0x1000"));
}

TEST(HostViewIommu, CutsDoNotAddMappingsBeyondTheLimit) {
    constexpr std::uint64_t kMany = 65536, kPage = 0x1000, kLarge = 4 * kPage;
    IommuRig rig;
    ASSERT_EQ(rig.map(0, 16u << 20, kLarge), 0u);
    for (std::uint64_t i = 0; i + 2 < kMany; ++i)
        ASSERT_EQ(rig.map(kLarge + i * kPage, 16u << 20, kPage), 0u) << i;
    EXPECT_EQ(rig.unmap(kPage, kPage), 0u) << "there is room for one more";
    ASSERT_EQ(rig.unmap(kLarge, kPage), 0u);
    ASSERT_EQ(rig.map(kMany * kPage * 2, 16u << 20, kLarge), 0u) << "the last one";
    EXPECT_NE(rig.unmap(kMany * kPage * 2 + kPage, kPage), 0u) << "would add one";
    EXPECT_EQ(rig.unmap(kMany * kPage * 2, kLarge), 0u) << "adds none";
}

TEST(HostViewIommu, MappingThatIsCutKeepsItsRests) {
    IommuRig rig;
    ASSERT_EQ(rig.map(0x10000, 16u << 20, 0x5000), 0u);
    ASSERT_EQ(rig.route(kVf1, kDomain), 0u);
    rig.forget();
    ASSERT_EQ(rig.unmap(0x12000, 0x1000), 0u);
    EXPECT_THAT(rig.story(),
                ElementsAre("unmap 0x10000+0x5000", "map 0x10000+0x2000", "map 0x13000+0x2000"));
}

TEST(HostViewIommu, FunctionThatIsAttachedLaterIsTranslatedToo) {
    IommuRig rig;
    ASSERT_EQ(rig.map(0x1000, 16u << 20, 0x1000), 0u);
    ASSERT_EQ(rig.route(2, kDomain), 0u);
    rig.set_bus_master(2, PCI_COMMAND_MASTER);
    EXPECT_THAT(rig.vf(2).owner.story, ElementsAre("attached", "map 0x1000+0x1000"));
}

TEST(HostViewIommu, OnlyMemoryOfTheVmCanBeReached) {
    IommuRig rig;
    ASSERT_EQ(rig.route(kVf1, kDomain), 0u);
    rig.forget();
    ASSERT_EQ(rig.map(0x1000, (17u << 20) - 0x1000, 0x3000), 0u);  // one page is there
    EXPECT_THAT(rig.story(), ElementsAre("map 0x1000+0x1000"));
}

TEST(HostViewIommu, BlockedOrFreedDomainReachesNothing) {
    IommuRig rig;
    ASSERT_EQ(rig.route(kVf1, VGPU_IOMMU_BLOCKED), 0u);
    EXPECT_THAT(rig.story(), ElementsAre("unmap all"));
    ASSERT_EQ(rig.map(0x1000, 16u << 20, 0x1000), 0u);
    ASSERT_EQ(rig.route(kVf1, kDomain), 0u);
    rig.forget();
    ASSERT_EQ(rig.command(VGPU_IOMMU_FREE, kDomain, 0, 0, 0), 0u);
    EXPECT_THAT(rig.story(), ElementsAre("unmap 0x1000+0x1000"));
    rig.view.dma_unmap({.address = Iova{16u << 20}, .size = 1u << 20});
    EXPECT_EQ(rig.story().back(), "unmap all");
}

TEST(HostViewIommu, IdentityIsWhereResetLeadsBack) {
    IommuRig rig;
    ASSERT_EQ(rig.route(0, VGPU_IOMMU_BLOCKED), 0u);
    rig.forget();
    rig.view.reset();
    EXPECT_THAT(rig.pf.owner.story,
                ElementsAre("sriov 0 vfs", "device reset", "unmap all", "map 0x1000000+0x100000"));
}

TEST(HostViewIommu, NonsenseIsRefused) {
    IommuRig rig;
    EXPECT_EQ(rig.map(0x1001, 0, 0x1000), 1u);
    EXPECT_EQ(rig.map(0x1000, 0, 0), 1u);
    EXPECT_EQ(rig.map(~0ull << 12, 0, 0x2000), 1u);
    EXPECT_EQ(rig.unmap(0, 0x1000), 1u);
    ASSERT_EQ(rig.map(0x1000, 0, 0x2000), 0u);
    EXPECT_EQ(rig.map(0x2000, 0, 0x1000), 1u);
    EXPECT_EQ(rig.command(VGPU_IOMMU_MAP, VGPU_IOMMU_IDENTITY, 0, 0, 0x1000), 1u);
    EXPECT_EQ(rig.route(1u << 16, kDomain), 1u);
    EXPECT_EQ(rig.command(static_cast<vgpu_iommu_command>(0), 0, 0, 0, 0), 1u);
}

TEST(HostViewIommu, KeepsNoMoreDomainsThanItsLimit) {
    IommuRig rig;
    std::uint32_t done = 0;
    for (std::uint32_t domain = 2; domain < 1000; domain++)
        done += rig.command(VGPU_IOMMU_MAP, domain, 0, 0, 0x1000) == 0;
    EXPECT_EQ(done, 64u);
}

}  // namespace
}  // namespace vgpu::softgpu::host_view::test
