// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/pci/function.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/pci_regs.h>

#include <array>

#include "tests/unit/pci/fake_owner.h"

namespace vgpu::softgpu::pci::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using vfio_user::Irq;

constexpr std::uint32_t kRegisters = VGPU_BAR_REGISTERS;
constexpr std::uint32_t kDeviceControl = VGPU_CAP_PCIE + PCI_EXP_DEVCTL;

TEST(PciFunction, RegionsFollowTheBars) {
    Rig rig = Rig::vf();
    const std::uint64_t sizes[] = {kAperture.count, 0, (2_MiB).count, 0, 0,
                                   (512_KiB).count, 0, 4096,          0};
    for (std::uint32_t i = 0; i < vfio_user::kRegionCount; i++) {
        EXPECT_EQ(rig.function.region_size(i), sizes[i]) << i;
        EXPECT_EQ(rig.function.region(i).size, sizes[i]) << i;
        EXPECT_EQ(rig.function.region(i).flags, sizes[i] == 0 ? 0u : 3u) << i;
    }
}

TEST(PciFunction, MappableMemoryMayChangeBetweenQuestions) {
    Rig rig = Rig::vf();
    EXPECT_FALSE(rig.function.region(VGPU_BAR_VRAM).fd);
    rig.vram.areas = {{0, (1_MiB).count}};
    const auto region = rig.function.region(VGPU_BAR_VRAM);
    EXPECT_TRUE(region.fd);
    ASSERT_EQ(region.areas.size(), 1u);
    EXPECT_EQ(region.areas[0].size, (1_MiB).count);
}

TEST(PciFunction, InterruptTypesOfVfAndPf) {
    Rig vf = Rig::vf();
    EXPECT_EQ(vf.function.irq(Irq::Intx).count, 0u);
    EXPECT_EQ(vf.function.irq(Irq::Msi).count, 1u);
    EXPECT_EQ(vf.function.irq(Irq::Msix).count, 0u);
    Rig pf = Rig::pf();
    EXPECT_EQ(pf.function.irq(Irq::Msi).count, 0u);
    EXPECT_EQ(pf.function.irq(Irq::Msix).count, 2u);
}

TEST(PciFunction, BarAccessesReachTheirHandler) {
    Rig rig = Rig::vf();
    rig.set_bar(kRegisters, 0x3958, std::uint32_t{0xabcd1234});
    EXPECT_EQ(rig.bar<std::uint8_t>(kRegisters, 0x3959), 0x12);
    EXPECT_THAT(rig.registers.story, ElementsAre("write 0x3958+4", "read 0x3959+1"));
}

TEST(PciFunction, BarWithoutHandlerReadsAllOnes) {
    Rig rig = Rig::vf();
    rig.set_bar(VGPU_BAR_DOORBELL, 0, 0u);
    EXPECT_EQ(rig.bar<std::uint32_t>(VGPU_BAR_DOORBELL, 0), ~0u);
}

TEST(PciFunction, BarsAnswerOnlyWhileMemoryDecodingIsOn) {
    Rig rig = Rig::vf();
    rig.set_bar(kRegisters, 0, 5u);
    rig.set_config(PCI_COMMAND, std::uint16_t{0});
    rig.set_bar(kRegisters, 0, 6u);
    EXPECT_EQ(rig.bar<std::uint32_t>(kRegisters, 0), ~0u);
    rig.set_config(PCI_COMMAND, std::uint16_t{PCI_COMMAND_MEMORY});
    EXPECT_EQ(rig.bar<std::uint32_t>(kRegisters, 0), 5u);
}

TEST(PciFunction, OwnerLearnsWhereABarAnswers) {
    Rig rig = Rig::vf();
    rig.set_config(PCI_BASE_ADDRESS_2, std::uint32_t{0xfe200000});
    rig.set_config(PCI_BASE_ADDRESS_3, std::uint32_t{0x38});
    const auto place = [&] { return rig.function.bar_address(VGPU_BAR_DOORBELL); };
    EXPECT_EQ(place(), Iova{0x38'fe200000});
    unsigned seen = rig.owner.bar_moves;
    rig.set_config(PCI_BASE_ADDRESS_3, std::uint32_t{0});
    EXPECT_EQ(place(), Iova{0xfe200000});
    EXPECT_EQ(rig.owner.bar_moves, seen + 1);
    rig.set_config(PCI_COMMAND, std::uint16_t{PCI_COMMAND_MASTER});
    EXPECT_EQ(place(), std::nullopt);
    EXPECT_EQ(rig.owner.bar_moves, seen + 2);
    rig.set_config(PCI_COMMAND, std::uint16_t{PCI_COMMAND_MEMORY});
    seen = rig.owner.bar_moves;
    rig.function.reset();
    EXPECT_EQ(place(), std::nullopt);
    EXPECT_GT(rig.owner.bar_moves, seen);
}

TEST(PciFunction, AccessAcrossTheMsixTableIsCutAtItsEdges) {
    Rig rig = Rig::pf();
    std::array<std::byte, 0x1000 + 64> data{};
    ASSERT_EQ(rig.function.write(kRegisters, VGPU_MSIX_TABLE_OFFSET - 16, data), std::errc{});
    ASSERT_EQ(rig.function.read(kRegisters, VGPU_MSIX_TABLE_OFFSET - 16, data), std::errc{});
    // 2 entries of 16 bytes, then registers up to the pending bits, 8 of them, then registers.
    EXPECT_THAT(rig.registers.story,
                ElementsAre("write 0x7dff0+16", "write 0x7e020+4064", "write 0x7f008+40",
                            "read 0x7dff0+16", "read 0x7e020+4064", "read 0x7f008+40"));
}

TEST(PciFunction, LongAccessReachesItsHandlerPageByPage) {
    Rig rig = Rig::vf();
    std::array<std::byte, 0x2008> data{};
    ASSERT_EQ(rig.function.write(kRegisters, 0xffc, data), std::errc{});
    ASSERT_EQ(rig.function.read(kRegisters, 0xffc, data), std::errc{});
    EXPECT_THAT(
        rig.registers.story,
        ElementsAre("write 0xffc+4", "write 0x1000+4096", "write 0x2000+4096", "write 0x3000+4",
                    "read 0xffc+4", "read 0x1000+4096", "read 0x2000+4096", "read 0x3000+4"));
}

TEST(PciFunction, VfHasNoMsixTableInItsRegisters) {
    Rig rig = Rig::vf();
    rig.set_bar(kRegisters, VGPU_MSIX_TABLE_OFFSET, 1u);
    EXPECT_THAT(rig.registers.story, ElementsAre("write 0x7e000+4"));
}

TEST(PciFunction, FunctionLevelResetClearsTheConfigurationAndReadsZero) {
    Rig rig = Rig::vf();
    rig.set_config(PCI_BASE_ADDRESS_0, ~0u);
    rig.set_config(kDeviceControl, std::uint16_t{PCI_EXP_DEVCTL_BCR_FLR});
    EXPECT_THAT(rig.owner.story, ElementsAre("flr"));
    EXPECT_EQ(rig.config<std::uint16_t>(kDeviceControl) & PCI_EXP_DEVCTL_BCR_FLR, 0);
    EXPECT_EQ(rig.config<std::uint16_t>(PCI_COMMAND), 0);
    EXPECT_EQ(rig.config<std::uint32_t>(PCI_BASE_ADDRESS_0), 0xcu);
    EXPECT_FALSE(rig.function.is_bus_master());
}

TEST(PciFunction, ResetsThatItsClientAsksForAreCounted) {
    Rig rig = Rig::vf();
    rig.set_config(kDeviceControl, std::uint16_t{PCI_EXP_DEVCTL_BCR_FLR});
    rig.set_config(kDeviceControl, std::uint16_t{PCI_EXP_DEVCTL_RELAX_EN});
    EXPECT_EQ(rig.function.resets(), 1u);
    rig.function.reset();
    EXPECT_EQ(rig.function.resets(), 2u);
}

TEST(PciFunction, ResetEndsInterruptsUntilTheDriverIsBack) {
    Rig rig = Rig::vf();
    const OwnedFd event = new_eventfd();
    rig.assign(0, event.get());
    rig.function.reset();
    EXPECT_THAT(rig.owner.story, ElementsAre("device reset"));
    rig.function.raise(0);
    EXPECT_EQ(signals(event), 0u);
    rig.set_config(PCI_COMMAND, std::uint16_t{PCI_COMMAND_MASTER});
    rig.set_config(VGPU_CAP_MSI + PCI_MSI_FLAGS, std::uint16_t{PCI_MSI_FLAGS_ENABLE});
    rig.function.raise(0);
    EXPECT_EQ(signals(event), 1u);
}

TEST(PciFunction, PfResetDisablesItsVfs) {
    Rig rig = Rig::pf();
    rig.set_config(VGPU_ECAP_SRIOV + PCI_SRIOV_NUM_VF, std::uint16_t{2});
    rig.set_config(VGPU_ECAP_SRIOV + PCI_SRIOV_CTRL, std::uint16_t{PCI_SRIOV_CTRL_VFE});
    rig.function.reset();
    EXPECT_THAT(rig.owner.story,
                ElementsAre("sriov 2 vfs", "sriov 2 vfs enabled", "sriov 0 vfs", "device reset"));
}

TEST(PciFunction, OwnerHearsOfItsClient) {
    Rig rig = Rig::vf();
    ASSERT_TRUE(rig.function.attach(std::make_shared<FakePeer>()));
    EXPECT_EQ(rig.function.reach(), Reach::Socket);
    rig.function.detach();
    EXPECT_FALSE(rig.function.reach());
    EXPECT_THAT(rig.owner.story, ElementsAre("attached", "detached"));
}

TEST(PciFunction, RefusedClientLeavesNothing) {
    Rig rig = Rig::vf();
    rig.owner.refuses = true;
    const auto refused = rig.function.attach(std::make_shared<FakePeer>());
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, EBUSY);
    EXPECT_FALSE(rig.function.reach());
}

TEST(PciFunction, NextClientOfAVfFindsAFreshFunction) {
    Rig rig = Rig::vf();
    const OwnedFd event = new_eventfd();
    ASSERT_TRUE(rig.function.attach(std::make_shared<FakePeer>()));
    rig.assign(0, event.get());
    rig.function.detach();
    EXPECT_EQ(rig.config<std::uint16_t>(PCI_COMMAND), 0);
    ASSERT_TRUE(rig.function.attach(std::make_shared<FakePeer>()));
    rig.set_config(PCI_COMMAND, std::uint16_t{PCI_COMMAND_MASTER});
    rig.set_config(VGPU_CAP_MSI + PCI_MSI_FLAGS, std::uint16_t{PCI_MSI_FLAGS_ENABLE});
    rig.function.raise(0);
    EXPECT_EQ(signals(event), 0u);  // the eventfd went with the first client
}

TEST(PciFunction, VfsStayEnabledWhileThePfDriverIsRestarted) {
    Rig rig = Rig::pf();
    const OwnedFd event = new_eventfd();
    ASSERT_TRUE(rig.function.attach(std::make_shared<FakePeer>()));
    rig.set_config(VGPU_ECAP_SRIOV + PCI_SRIOV_NUM_VF, std::uint16_t{2});
    rig.set_config(VGPU_ECAP_SRIOV + PCI_SRIOV_CTRL, std::uint16_t{PCI_SRIOV_CTRL_VFE});
    rig.assign(0, event.get());
    rig.owner.story.clear();
    rig.function.detach();
    EXPECT_THAT(rig.owner.story, ElementsAre("detached"));
    EXPECT_EQ(rig.config<std::uint16_t>(VGPU_ECAP_SRIOV + PCI_SRIOV_NUM_VF), 2);
    rig.function.raise(0);
    EXPECT_EQ(signals(event), 0u);
}

TEST(PciFunction, ClientMemoryGoesToTheSink) {
    Rig rig = Rig::vf();
    const vfio_user::DmaRange range{.address = Iova{0x1000}, .size = 0x2000};
    ASSERT_TRUE(rig.function.dma_map(range, -1));
    rig.function.dma_unmap(range);
    rig.function.dma_unmap_all();
    EXPECT_THAT(rig.owner.story,
                ElementsAre("map 0x1000+0x2000", "unmap 0x1000+0x2000", "unmap all"));
}

TEST(PciFunction, ErrorAndRequestInterruptsAreAcceptedAndUnused) {
    Rig rig = Rig::vf();
    OwnedFd event = new_eventfd();
    const auto assigned = rig.function.set_irqs({.index = Irq::Request,
                                                 .action = vfio_user::IrqAction::Trigger,
                                                 .start = 0,
                                                 .count = 1,
                                                 .is_assignment = true,
                                                 .fds = {&event, 1},
                                                 .is_selected = {}});
    EXPECT_TRUE(assigned.has_value());
    EXPECT_EQ(rig.config<std::uint16_t>(VGPU_CAP_MSI + PCI_MSI_FLAGS) & PCI_MSI_FLAGS_ENABLE, 0);
    EXPECT_THAT(rig.owner.story, IsEmpty());
}

}  // namespace
}  // namespace vgpu::softgpu::pci::test
