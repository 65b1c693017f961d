// SPDX-License-Identifier: MIT
// A function has one attachment at a time: who gets it, what ends it, whose memory it reaches.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/pci_regs.h>
#include <sys/mman.h>

#include <filesystem>
#include <vector>

#include "tests/unit/host_view/host_rig.h"

namespace vgpu::softgpu::host_view::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::uint16_t kMaster = PCI_COMMAND_MASTER;
constexpr std::uint32_t kNobody = ~0u;
constexpr std::uint32_t kDeviceControl = VGPU_CAP_PCIE + PCI_EXP_DEVCTL;

/// Attaches as a client of the function's own socket; errno, 0 if it got it.
int attach_client(pci::Function& function) {
    const auto attached = function.attach(std::make_shared<FakePeer>());
    return attached ? 0 : attached.error().code;
}

vfio_user::DmaRange range_at(std::uint64_t address) {
    return {.address = Iova{address},
            .size = 0x1000,
            .fd_offset = 0,
            .is_readable = true,
            .is_writeable = true};
}

std::size_t open_fds() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// VF1 with bus mastering on.
struct AttachedVf : HostRig {
    AttachedVf() {
        bring_up();
        enable_vfs(4);
        set_bus_master(1, kMaster);
        EXPECT_TRUE(is_bus_master(1));
        EXPECT_THAT(vf(1).owner.story, ElementsAre("attached"));
        vf(1).owner.story.clear();
    }
};

TEST(HostViewAttachment, PfIsAttachedWhileAVmIsThere) {
    HostRig rig;
    rig.attach();
    EXPECT_EQ(attach_client(rig.pf.function), EBUSY);
    rig.view.detach();
    EXPECT_EQ(attach_client(rig.pf.function), 0);
}

TEST(HostViewAttachment, PfThatAClientHasIsAbsentUntilItLeavesAndTheVmResets) {
    HostRig rig;
    ASSERT_EQ(attach_client(rig.pf.function), 0);
    rig.bring_up();
    EXPECT_EQ(rig.pf_config<std::uint32_t>(PCI_VENDOR_ID), kNobody);
    EXPECT_EQ(rig.memory<std::uint32_t>(HostRig::kPfRegisters), kNobody);
    EXPECT_EQ(rig.pf.function.config().get<std::uint32_t>(PCI_BASE_ADDRESS_5), 0u);
    rig.pf.function.detach();
    rig.view.reset();
    rig.set_port(PCI_PRIMARY_BUS, std::uint32_t{1u << 8 | 1u << 16});
    EXPECT_EQ(rig.pf_config<std::uint32_t>(PCI_VENDOR_ID), 0x68601002u);
}

TEST(HostViewAttachment, EnablingVfsAttachesNone) {
    HostRig rig;
    rig.bring_up();
    rig.enable_vfs(4);
    EXPECT_THAT(rig.vf(1).owner.story, IsEmpty());
}

// amdgpu shakes hands with the PF before it turns bus mastering on
TEST(HostViewAttachment, FirstAccessToABarOfAVfAttachesIt) {
    HostRig rig;
    rig.bring_up();
    rig.enable_vfs(2);
    rig.set_memory(HostRig::vf_registers(1) + 0x40, 5u);
    EXPECT_EQ(load<std::uint32_t>(rig.vf(1).registers.bytes, 0x40), 5u);
    EXPECT_THAT(rig.vf(1).owner.story, ElementsAre("attached"));
    EXPECT_THAT(rig.vf(2).owner.story, IsEmpty());
    EXPECT_EQ(attach_client(rig.vf(1).function), EBUSY);
    EXPECT_FALSE(rig.is_bus_master(1));
}

TEST(HostViewAttachment, OnlyTheEndOfBusMasteringDetachesAVf) {
    HostRig rig;
    rig.bring_up();
    rig.enable_vfs(1);
    EXPECT_EQ(rig.memory<std::uint32_t>(HostRig::vf_registers(1)), 0u);
    rig.set_bus_master(1, PCI_COMMAND_INTX_DISABLE);
    EXPECT_THAT(rig.vf(1).owner.story, ElementsAre("attached"));
    rig.set_bus_master(1, kMaster);
    EXPECT_TRUE(rig.is_bus_master(1));
    rig.set_bus_master(1, 0);
    EXPECT_THAT(rig.vf(1).owner.story, ElementsAre("attached", "unmap all", "detached"));
}

TEST(HostViewAttachment, FlrDetachesAVfThatWasNeverBusMaster) {
    HostRig rig;
    rig.bring_up();
    rig.enable_vfs(1);
    EXPECT_EQ(rig.memory<std::uint32_t>(HostRig::vf_registers(1)), 0u);
    rig.set_vf_config(1, VGPU_CAP_MSI + PCI_MSI_FLAGS, std::uint16_t{PCI_MSI_FLAGS_ENABLE});
    EXPECT_THAT(rig.vf(1).owner.story, ElementsAre("attached"));
    rig.set_vf_config(1, kDeviceControl, std::uint16_t{PCI_EXP_DEVCTL_BCR_FLR});
    EXPECT_THAT(rig.vf(1).owner.story, ElementsAre("attached", "flr", "unmap all", "detached"));
}

TEST(HostViewAttachment, ClientIsRefusedWhileTheHostViewHasTheVf) {
    AttachedVf rig;
    EXPECT_EQ(attach_client(rig.vf(1).function), EBUSY);
    EXPECT_EQ(attach_client(rig.vf(2).function), 0);
    rig.set_bus_master(1, 0);
    EXPECT_THAT(rig.vf(1).owner.story, Contains("detached"));
    EXPECT_EQ(attach_client(rig.vf(1).function), 0);
}

TEST(HostViewAttachment, BusMasterIsRefusedWhileAClientHasTheVf) {
    HostRig rig;
    rig.bring_up();
    rig.enable_vfs(1);
    ASSERT_EQ(attach_client(rig.vf(1).function), 0);
    rig.set_bus_master(1, kMaster);
    EXPECT_FALSE(rig.is_bus_master(1));
    rig.set_memory(HostRig::vf_registers(1), 5u);
    EXPECT_EQ(rig.memory<std::uint32_t>(HostRig::vf_registers(1)), kNobody);
    EXPECT_THAT(rig.vf(1).registers.story, IsEmpty());
    rig.vf(1).function.detach();
    rig.set_bus_master(1, kMaster);
    EXPECT_TRUE(rig.is_bus_master(1));
}

TEST(HostViewAttachment, VfOfAClientShowsItsIdentityAndTakesNoReset) {
    HostRig rig;
    rig.bring_up();
    rig.enable_vfs(1);
    ASSERT_EQ(attach_client(rig.vf(1).function), 0);
    const std::uint16_t secret = 0x1234;
    rig.vf(1).function.config().write(VGPU_CAP_MSI + PCI_MSI_DATA_64, bytes_of(secret));
    EXPECT_EQ(rig.vf_config<std::uint32_t>(1, PCI_CLASS_REVISION), 0x03800001u);
    EXPECT_EQ(rig.vf_config<std::uint16_t>(1, VGPU_CAP_MSI + PCI_MSI_DATA_64), 0u);
    rig.set_vf_config(1, kDeviceControl, std::uint16_t{PCI_EXP_DEVCTL_BCR_FLR});
    EXPECT_THAT(rig.vf(1).owner.story, ElementsAre("attached"));
}

TEST(HostViewAttachment, ClientFindsNothingOfWhatTheBusWrote) {
    HostRig rig;
    rig.bring_up();
    rig.enable_vfs(1);
    rig.set_vf_config(1, VGPU_CAP_MSI + PCI_MSI_ADDRESS_LO, std::uint32_t{0xfee00000});
    ASSERT_EQ(attach_client(rig.vf(1).function), 0);
    EXPECT_EQ(rig.vf(1).function.config().get<std::uint32_t>(VGPU_CAP_MSI + PCI_MSI_ADDRESS_LO),
              0u);
}

TEST(HostViewReset, FlrOfAVfResetsAndDetachesIt) {
    AttachedVf rig;
    rig.set_vf_config(1, kDeviceControl, std::uint16_t{PCI_EXP_DEVCTL_BCR_FLR});
    EXPECT_THAT(rig.vf(1).owner.story, ElementsAre("flr", "unmap all", "detached"));
    EXPECT_FALSE(rig.is_bus_master(1));
}

TEST(HostViewReset, FlrReachesAVfThatNobodyHas) {
    HostRig rig;
    rig.bring_up();
    rig.enable_vfs(1);
    rig.set_vf_config(1, kDeviceControl, std::uint16_t{PCI_EXP_DEVCTL_BCR_FLR});
    EXPECT_THAT(rig.vf(1).owner.story, ElementsAre("flr"));
}

TEST(HostViewReset, DisablingVfsDetachesThem) {
    AttachedVf rig;
    rig.enable_vfs(0);
    EXPECT_THAT(rig.vf(1).owner.story, ElementsAre("unmap all", "detached"));
}

TEST(HostViewReset, FlrOfThePfTakesTheVfsAway) {
    AttachedVf rig;
    rig.set_pf_config(kDeviceControl, std::uint16_t{PCI_EXP_DEVCTL_BCR_FLR});
    EXPECT_THAT(rig.vf(1).owner.story, Contains("detached"));
    EXPECT_THAT(rig.pf.owner.story, Contains("flr"));
    EXPECT_EQ(rig.vf_config<std::uint32_t>(1, PCI_CLASS_REVISION), kNobody);
    EXPECT_EQ(attach_client(rig.pf.function), EBUSY);
}

TEST(HostViewReset, SecondaryBusResetResetsThePfAndDetachesVfsOnce) {
    AttachedVf rig;
    rig.set_port(PCI_BRIDGE_CONTROL, std::uint16_t{PCI_BRIDGE_CTL_BUS_RESET});
    EXPECT_THAT(rig.vf(1).owner.story, Contains("detached"));
    EXPECT_EQ(rig.pf.owner.story.back(), "device reset");
    EXPECT_EQ(rig.pf_config<std::uint32_t>(PCI_VENDOR_ID), kNobody);  // while it lasts
    rig.pf.owner.story.clear();
    rig.set_port(PCI_BRIDGE_CONTROL, std::uint16_t{PCI_BRIDGE_CTL_BUS_RESET});
    rig.set_port(PCI_BRIDGE_CONTROL, std::uint16_t{0});
    EXPECT_THAT(rig.pf.owner.story, IsEmpty());
    EXPECT_EQ(rig.pf_config<std::uint16_t>(PCI_COMMAND), 0u);
}

TEST(HostViewReset, VfsOfClientsLiveThroughResetsOfTheBusAndTheEndOfTheVm) {
    AttachedVf rig;
    ASSERT_EQ(attach_client(rig.vf(2).function), 0);
    rig.set_port(PCI_BRIDGE_CONTROL, std::uint16_t{PCI_BRIDGE_CTL_BUS_RESET});
    rig.view.reset();
    rig.view.detach();
    EXPECT_THAT(rig.vf(2).owner.story, ElementsAre("attached"));
}

TEST(HostViewReset, PfOfAClientLivesThroughThem) {
    HostRig rig;
    ASSERT_EQ(attach_client(rig.pf.function), 0);
    rig.attach();
    rig.set_port(PCI_BRIDGE_CONTROL, std::uint16_t{PCI_BRIDGE_CTL_BUS_RESET});
    rig.view.reset();
    rig.view.detach();
    EXPECT_THAT(rig.pf.owner.story, ElementsAre("attached"));
}

TEST(HostViewReset, EndOfTheVmDetachesEverythingAndForgetsVfEnable) {
    AttachedVf rig;
    rig.view.detach();
    EXPECT_THAT(rig.vf(1).owner.story, Contains("detached"));
    EXPECT_EQ(rig.pf.owner.story.back(), "detached");
    EXPECT_FALSE(rig.pf.function.sriov().is_enabled);
}

TEST(HostViewDma, FunctionThatIsAttachedLaterGetsTheRangesMappedBefore) {
    HostRig rig;
    const OwnedFd memory(::memfd_create("guest", MFD_CLOEXEC));
    rig.bring_up();
    ASSERT_TRUE(rig.view.dma_map(range_at(0x1000), memory.get()));
    ASSERT_TRUE(rig.view.dma_map(range_at(0x8000), -1));
    rig.enable_vfs(1);
    rig.set_bus_master(1, kMaster);
    EXPECT_THAT(rig.pf.owner.story, Contains("map 0x1000+0x1000 fd"));
    EXPECT_THAT(rig.vf(1).owner.story,
                ElementsAre("attached", "map 0x1000+0x1000 fd", "map 0x8000+0x1000"));
}

TEST(HostViewDma, UnmappedRangeIsTakenFromAttachedFunctionsAndLaterOnes) {
    AttachedVf rig;
    ASSERT_TRUE(rig.view.dma_map(range_at(0x1000), -1));
    rig.view.dma_unmap(range_at(0x1000));
    EXPECT_THAT(rig.vf(1).owner.story, ElementsAre("map 0x1000+0x1000", "unmap 0x1000+0x1000"));
    rig.set_bus_master(2, kMaster);
    EXPECT_THAT(rig.vf(2).owner.story, ElementsAre("attached"));
}

TEST(HostViewDma, UnmappingTakesEveryMapInsideTheRange) {
    AttachedVf rig;
    for (const std::uint64_t address : {0x1000u, 0x3000u, 0x8000u})
        ASSERT_TRUE(rig.view.dma_map(range_at(address), -1));
    rig.vf(1).owner.story.clear();
    rig.view.dma_unmap({.address = Iova{0}, .size = 0x4000});
    EXPECT_THAT(rig.vf(1).owner.story, ElementsAre("unmap 0x0+0x4000"));
    rig.set_bus_master(2, kMaster);
    EXPECT_THAT(rig.vf(2).owner.story, ElementsAre("attached", "map 0x8000+0x1000"));
}

TEST(HostViewDma, ManyRangesOfOneFileCostOneDescriptor) {
    HostRig rig;
    OwnedFd memory(::memfd_create("guest", MFD_CLOEXEC));
    rig.attach();
    const std::size_t before = open_fds();
    for (std::uint64_t i = 0; i < 100; i++)
        ASSERT_TRUE(rig.view.dma_map(range_at(i << 12), memory.get()));
    EXPECT_EQ(open_fds(), before + 1);
    rig.view.dma_unmap_all();
    EXPECT_EQ(open_fds(), before);
}

TEST(HostViewDma, FilesOfTheVmsMemoryAreBounded) {
    constexpr std::uint64_t kFiles = 64;
    HostRig rig;
    rig.attach();
    std::vector<OwnedFd> memory;
    for (std::uint64_t i = 0; i <= kFiles; i++)
        memory.emplace_back(::memfd_create("guest", MFD_CLOEXEC));
    const std::size_t before = open_fds();
    for (std::uint64_t i = 0; i < kFiles; i++)
        ASSERT_TRUE(rig.view.dma_map(range_at(i << 12), memory[i].get())) << i;
    const auto refused = rig.view.dma_map(range_at(kFiles << 12), memory[kFiles].get());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ENOSPC);
    EXPECT_EQ(open_fds(), before + kFiles);
    EXPECT_TRUE(rig.view.dma_map(range_at(0x1000000), memory[0].get())) << "a file that it has";
    EXPECT_TRUE(rig.view.dma_map(range_at(0x2000000), -1)) << "by message";
    rig.view.dma_unmap(range_at(0x1000));
    EXPECT_TRUE(rig.view.dma_map(range_at(kFiles << 12), memory[kFiles].get()));
    rig.view.dma_unmap_all();
    EXPECT_EQ(open_fds(), before);
}

TEST(HostViewDma, RangeThatOneFunctionRefusesIsMappedInNone) {
    AttachedVf rig;
    rig.vf(1).owner.refuses_maps = true;
    EXPECT_FALSE(rig.view.dma_map(range_at(0x1000), -1));
    EXPECT_EQ(rig.pf.owner.story.back(), "unmap 0x1000+0x1000");
    rig.set_bus_master(2, kMaster);
    EXPECT_THAT(rig.vf(2).owner.story, Not(Contains("map 0x1000+0x1000")));
}

TEST(HostViewDma, FunctionThatCannotTakeTheRangesIsNotAttached) {
    HostRig rig;
    rig.bring_up();
    ASSERT_TRUE(rig.view.dma_map(range_at(0x1000), -1));
    rig.enable_vfs(1);
    rig.vf(1).owner.refuses_maps = true;
    rig.set_bus_master(1, kMaster);
    EXPECT_FALSE(rig.is_bus_master(1));
    EXPECT_THAT(rig.vf(1).owner.story, ElementsAre("attached", "unmap all", "detached"));
}

}  // namespace
}  // namespace vgpu::softgpu::host_view::test
