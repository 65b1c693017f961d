// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/pci/capabilities.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/pci_regs.h>

#include "tests/unit/pci/fake_owner.h"

namespace vgpu::softgpu::pci::test {
namespace {

using ::testing::ElementsAre;

constexpr std::uint32_t kBar0 = PCI_BASE_ADDRESS_0;

/// Ids in the order of the capability list.
std::vector<int> capability_list(Rig& rig) {
    std::vector<int> ids;
    for (std::uint8_t at = rig.config<std::uint8_t>(PCI_CAPABILITY_LIST); at != 0;
         at = rig.config<std::uint8_t>(at + 1u))
        ids.push_back(rig.config<std::uint8_t>(at));
    return ids;
}

std::vector<int> extended_list(Rig& rig) {
    std::vector<int> ids;
    for (std::uint32_t at = PCI_CFG_SPACE_SIZE; at != 0;) {
        const auto header = rig.config<std::uint32_t>(at);
        ids.push_back(PCI_EXT_CAP_ID(header));
        at = PCI_EXT_CAP_NEXT(header);
    }
    return ids;
}

TEST(PciIdentity, VfIsWhatTheStockDriverMatches) {
    Rig rig = Rig::vf();
    EXPECT_EQ(rig.config<std::uint32_t>(PCI_VENDOR_ID), 0x686c1002u);
    EXPECT_EQ(rig.config<std::uint32_t>(PCI_CLASS_REVISION), 0x03800001u);
    EXPECT_EQ(rig.config<std::uint32_t>(PCI_SUBSYSTEM_VENDOR_ID), 0x0c351002u);
    EXPECT_EQ(rig.config<std::uint16_t>(PCI_STATUS), PCI_STATUS_CAP_LIST);
    EXPECT_EQ(rig.config<std::uint8_t>(PCI_INTERRUPT_PIN), 0);
}

TEST(PciIdentity, PfIsRecognisedByItsSubsystem) {
    Rig rig = Rig::pf();
    EXPECT_EQ(rig.config<std::uint32_t>(PCI_VENDOR_ID), 0x68601002u);
    EXPECT_EQ(rig.config<std::uint32_t>(PCI_SUBSYSTEM_VENDOR_ID), 0x50475647u);
}

TEST(PciCapabilities, VfHasPcieAndMsi) {
    Rig rig = Rig::vf();
    EXPECT_THAT(capability_list(rig), ElementsAre(PCI_CAP_ID_EXP, PCI_CAP_ID_MSI));
    EXPECT_THAT(extended_list(rig), ElementsAre(0, PCI_EXT_CAP_ID_ARI));
}

TEST(PciCapabilities, PfHasMsixSriovAriAndVsec) {
    Rig rig = Rig::pf();
    EXPECT_THAT(capability_list(rig), ElementsAre(PCI_CAP_ID_EXP, PCI_CAP_ID_MSIX));
    EXPECT_THAT(extended_list(rig),
                ElementsAre(PCI_EXT_CAP_ID_SRIOV, PCI_EXT_CAP_ID_ARI, PCI_EXT_CAP_ID_VNDR));
}

TEST(PciCapabilities, FunctionLevelResetIsOffered) {
    Rig pf = Rig::pf();
    Rig vf = Rig::vf();
    for (Rig* rig : {&pf, &vf})
        EXPECT_NE(rig->config<std::uint32_t>(VGPU_CAP_PCIE + PCI_EXP_DEVCAP) & PCI_EXP_DEVCAP_FLR,
                  0u);
}

TEST(PciCapabilities, VsecCarriesTheGpuIovId) {
    Rig rig = Rig::pf();
    EXPECT_EQ(rig.config<std::uint32_t>(VGPU_ECAP_VSEC + PCI_VNDR_HEADER), 0x0f010002u);
}

/// What a driver learns by writing all ones to a BAR.
std::uint64_t probed_size(Rig& rig, std::uint32_t at) {
    rig.set_config(at, ~0u);
    const auto low = rig.config<std::uint32_t>(at);
    if ((low & PCI_BASE_ADDRESS_MEM_TYPE_MASK) != PCI_BASE_ADDRESS_MEM_TYPE_64)
        return std::uint32_t{~(low & ~0xfu) + 1};
    rig.set_config(at + 4, ~0u);
    return ~join(low & ~0xfu, rig.config<std::uint32_t>(at + 4)) + 1;
}

TEST(PciBars, SizesAreFoundByProbing) {
    Rig rig = Rig::vf();
    EXPECT_EQ(probed_size(rig, kBar0), (16_MiB).count);
    EXPECT_EQ(probed_size(rig, kBar0 + 8), (2_MiB).count);
    EXPECT_EQ(probed_size(rig, kBar0 + 20), (512_KiB).count);
    EXPECT_EQ(rig.config<std::uint32_t>(kBar0) & 0xf, 0xcu);
    EXPECT_EQ(rig.config<std::uint32_t>(kBar0 + 20) & 0xf, 0u);
    EXPECT_EQ(rig.config<std::uint32_t>(PCI_ROM_ADDRESS), 0u);
}

TEST(PciBars, BeyondFourGigabytesUseTheUpperRegister) {
    Rig rig(pf_function(6_GiB, 16, 16_MiB));
    EXPECT_EQ(probed_size(rig, kBar0), (8_GiB).count);
    EXPECT_EQ(rig.function.region_size(0), (8_GiB).count);
}

TEST(PciBars, UnusedBarsReadZero) {
    Rig rig = Rig::vf();
    rig.set_config(kBar0 + 16, ~0u);
    EXPECT_EQ(rig.config<std::uint32_t>(kBar0 + 16), 0u);
}

TEST(PciSriov, DescribesTheVfs) {
    Rig rig = Rig::pf();
    constexpr std::uint32_t kSriov = VGPU_ECAP_SRIOV;
    EXPECT_EQ(rig.config<std::uint16_t>(kSriov + PCI_SRIOV_TOTAL_VF), 16);
    EXPECT_EQ(rig.config<std::uint16_t>(kSriov + PCI_SRIOV_INITIAL_VF), 16);
    EXPECT_EQ(rig.config<std::uint16_t>(kSriov + PCI_SRIOV_VF_OFFSET), 1);
    EXPECT_EQ(rig.config<std::uint16_t>(kSriov + PCI_SRIOV_VF_STRIDE), 1);
    EXPECT_EQ(rig.config<std::uint16_t>(kSriov + PCI_SRIOV_VF_DID), 0x686c);
    EXPECT_EQ(probed_size(rig, kSriov + PCI_SRIOV_BAR), kAperture.count);
    EXPECT_EQ(probed_size(rig, kSriov + PCI_SRIOV_BAR + 20), (512_KiB).count);
}

TEST(PciSriov, OwnerLearnsWhatTheDriverEnables) {
    Rig rig = Rig::pf();
    rig.set_config(VGPU_ECAP_SRIOV + PCI_SRIOV_NUM_VF, std::uint16_t{16});
    rig.set_config(VGPU_ECAP_SRIOV + PCI_SRIOV_CTRL,
                   std::uint16_t{PCI_SRIOV_CTRL_VFE | PCI_SRIOV_CTRL_MSE});
    rig.set_config(VGPU_ECAP_SRIOV + PCI_SRIOV_CTRL, std::uint16_t{0});
    EXPECT_THAT(rig.owner.story,
                ElementsAre("sriov 16 vfs", "sriov 16 vfs enabled memory", "sriov 16 vfs"));
}

TEST(PciSriov, ImpossibleValuesAreIgnored) {
    Rig rig = Rig::pf();
    constexpr std::uint32_t kNumVfs = VGPU_ECAP_SRIOV + PCI_SRIOV_NUM_VF;
    rig.set_config(kNumVfs, std::uint16_t{17});
    EXPECT_EQ(rig.config<std::uint16_t>(kNumVfs), 0);
    rig.set_config(kNumVfs, std::uint16_t{4});
    rig.set_config(VGPU_ECAP_SRIOV + PCI_SRIOV_CTRL, std::uint16_t{PCI_SRIOV_CTRL_VFE});
    rig.set_config(kNumVfs, std::uint16_t{8});  // not while VFs are enabled
    EXPECT_EQ(rig.config<std::uint16_t>(kNumVfs), 4);
    rig.set_config(VGPU_ECAP_SRIOV + PCI_SRIOV_SYS_PGSIZE, std::uint32_t{3});
    EXPECT_EQ(rig.config<std::uint32_t>(VGPU_ECAP_SRIOV + PCI_SRIOV_SYS_PGSIZE), 1u);
    EXPECT_THAT(rig.owner.story, ElementsAre("sriov 4 vfs", "sriov 4 vfs enabled"));
}

}  // namespace
}  // namespace vgpu::softgpu::pci::test
