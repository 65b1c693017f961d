// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/pci_regs.h>

#include "tests/unit/host_view/host_rig.h"

namespace vgpu::softgpu::host_view::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t kEntry1 =
    HostRig::kPfRegisters + VGPU_MSIX_TABLE_OFFSET + PCI_MSIX_ENTRY_SIZE;
constexpr std::uint64_t kPending = HostRig::kPfRegisters + VGPU_MSIX_PBA_OFFSET;

/// The PF's driver has programmed vector 1.
HostRig& with_msix(HostRig& rig) {
    rig.bring_up();
    rig.set_memory(kEntry1 + PCI_MSIX_ENTRY_LOWER_ADDR, std::uint32_t{0xfee01000});
    rig.set_memory(kEntry1 + PCI_MSIX_ENTRY_UPPER_ADDR, std::uint32_t{0});
    rig.set_memory(kEntry1 + PCI_MSIX_ENTRY_DATA, std::uint32_t{0x41});
    rig.set_memory(kEntry1 + PCI_MSIX_ENTRY_VECTOR_CTRL, std::uint32_t{0});
    rig.set_pf_config(VGPU_CAP_MSIX + PCI_MSIX_FLAGS, std::uint16_t{PCI_MSIX_FLAGS_ENABLE});
    return rig;
}

TEST(HostViewMsix, RaisedVectorIsAPostedWriteOfItsMessage) {
    HostRig rig;
    with_msix(rig).pf.function.raise(1);
    EXPECT_THAT(rig.peer->story, ElementsAre("0xfee01000 <- 0x41"));
}

TEST(HostViewMsix, VectorNobodyProgrammedIsMasked) {
    HostRig rig;
    with_msix(rig).pf.function.raise(0);
    EXPECT_THAT(rig.peer->story, IsEmpty());
    EXPECT_EQ(rig.memory<std::uint64_t>(kPending), 1u);
}

TEST(HostViewMsix, MaskedVectorIsPendingUntilItsMaskGoes) {
    HostRig rig;
    with_msix(rig);
    rig.set_memory(kEntry1 + PCI_MSIX_ENTRY_VECTOR_CTRL,
                   std::uint32_t{PCI_MSIX_ENTRY_CTRL_MASKBIT});
    rig.pf.function.raise(1);
    EXPECT_THAT(rig.peer->story, IsEmpty());
    EXPECT_EQ(rig.memory<std::uint64_t>(kPending), 2u);
    rig.set_memory(kEntry1 + PCI_MSIX_ENTRY_VECTOR_CTRL, std::uint32_t{0});
    EXPECT_THAT(rig.peer->story, ElementsAre("0xfee01000 <- 0x41"));
    EXPECT_EQ(rig.memory<std::uint64_t>(kPending), 0u);
}

TEST(HostViewMsix, FunctionMaskHoldsAllVectors) {
    HostRig rig;
    with_msix(rig);
    rig.set_pf_config(VGPU_CAP_MSIX + PCI_MSIX_FLAGS,
                      std::uint16_t{PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL});
    rig.pf.function.raise(1);
    EXPECT_THAT(rig.peer->story, IsEmpty());
    rig.set_pf_config(VGPU_CAP_MSIX + PCI_MSIX_FLAGS, std::uint16_t{PCI_MSIX_FLAGS_ENABLE});
    EXPECT_THAT(rig.peer->story, ElementsAre("0xfee01000 <- 0x41"));
}

TEST(HostViewMsix, NeedsBusMastering) {
    HostRig rig;
    with_msix(rig).set_pf_config(PCI_COMMAND, std::uint16_t{PCI_COMMAND_MEMORY});
    rig.pf.function.raise(1);
    EXPECT_THAT(rig.peer->story, IsEmpty());
}

TEST(HostViewMsix, NothingIsSentToAVmThatHasGone) {
    HostRig rig;
    with_msix(rig).view.detach();
    rig.pf.function.raise(1);
    EXPECT_THAT(rig.peer->story, IsEmpty());
}

TEST(HostViewMsi, VfSendsTheMessageOfItsCapability) {
    HostRig rig;
    rig.bring_up();
    rig.enable_vfs(2);
    rig.set_bus_master(2, PCI_COMMAND_MASTER);
    rig.set_vf_config(2, VGPU_CAP_MSI + PCI_MSI_ADDRESS_LO, std::uint32_t{0xfee00000});
    rig.set_vf_config(2, VGPU_CAP_MSI + PCI_MSI_ADDRESS_HI, std::uint32_t{1});
    rig.set_vf_config(2, VGPU_CAP_MSI + PCI_MSI_DATA_64, std::uint16_t{0x4022});
    rig.set_vf_config(2, VGPU_CAP_MSI + PCI_MSI_FLAGS, std::uint16_t{PCI_MSI_FLAGS_ENABLE});
    rig.vf(2).function.raise(0);
    EXPECT_THAT(rig.peer->story, ElementsAre("0x1fee00000 <- 0x4022"));
}

TEST(HostViewMsi, MessageSetUpBeforeOrDuringBusMasteringStays) {
    HostRig rig;
    rig.bring_up();
    rig.enable_vfs(1);
    rig.set_vf_config(1, VGPU_CAP_MSI + PCI_MSI_ADDRESS_LO, std::uint32_t{0xfee00000});
    rig.set_vf_config(1, VGPU_CAP_MSI + PCI_MSI_DATA_64, std::uint16_t{0x33});
    rig.set_vf_config(1, VGPU_CAP_MSI + PCI_MSI_FLAGS, std::uint16_t{PCI_MSI_FLAGS_ENABLE});
    for (int i = 0; i < 2; i++) {
        rig.set_bus_master(1, 0);
        rig.vf(1).function.raise(0);
        rig.set_bus_master(1, PCI_COMMAND_MASTER);
        rig.vf(1).function.raise(0);
    }
    EXPECT_THAT(rig.peer->story, ElementsAre("0xfee00000 <- 0x33", "0xfee00000 <- 0x33"));
}

}  // namespace
}  // namespace vgpu::softgpu::host_view::test
