// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>
#include <linux/pci_regs.h>

#include "tests/unit/host_view/host_rig.h"

namespace vgpu::softgpu::host_view::test {
namespace {

constexpr std::uint32_t kLowBar = PCI_BASE_ADDRESS_0 + 4 * VGPU_HOST_VIEW_BAR_LOW;
constexpr std::uint32_t kHighBar = PCI_BASE_ADDRESS_0 + 4 * VGPU_HOST_VIEW_BAR_HIGH;

TEST(HostViewEndpoint, HasOurIdsOrThoseOfVmd) {
    HostRig ours;
    EXPECT_EQ(ours.region<std::uint32_t>(HostRig::kConfig, PCI_VENDOR_ID), 0x0b1d5056u);
    HostRig vmd(EndpointKind::Vmd);
    EXPECT_EQ(vmd.region<std::uint32_t>(HostRig::kConfig, PCI_VENDOR_ID), 0x28c08086u);
}

TEST(HostViewEndpoint, RegionsAreItsBarsAndConfigSpaceAndNoneIsMappable) {
    HostRig rig;
    const std::uint64_t sizes[] = {(2_MiB).count, 0, (64_MiB).count, 0, (16384_MiB).count, 0, 0,
                                   4096,          0};
    for (std::uint32_t i = 0; i < vfio_user::kRegionCount; i++) {
        EXPECT_EQ(rig.view.region_size(i), sizes[i]) << i;
        EXPECT_EQ(rig.view.region(i).size, sizes[i]) << i;
        EXPECT_FALSE(rig.view.region(i).fd) << i;
    }
}

TEST(HostViewEndpoint, HighWindowHoldsAllBarsTwice) {
    Card pf(pci::pf_function(16384_MiB, 16, 2048_MiB));
    const HostView view(EndpointKind::Bridge, pf.function, {});
    EXPECT_EQ(view.region_size(VGPU_HOST_VIEW_BAR_HIGH), (131072_MiB).count);
}

TEST(HostViewEndpoint, SizingWritesGiveTheSizes) {
    HostRig rig;
    rig.set_region(HostRig::kConfig, kLowBar, ~std::uint32_t{0});
    EXPECT_EQ(rig.region<std::uint32_t>(HostRig::kConfig, kLowBar), 0xfc000000u);
    rig.set_region(HostRig::kConfig, kHighBar, ~std::uint32_t{0});
    rig.set_region(HostRig::kConfig, kHighBar + 4, ~std::uint32_t{0});
    EXPECT_EQ(rig.region<std::uint64_t>(HostRig::kConfig, kHighBar), 0xfffffffc0000000cull);
}

TEST(HostViewEndpoint, MessagesOfVmdMayBypassIt) {
    HostRig rig(EndpointKind::Vmd);
    rig.set_region(HostRig::kConfig, VGPU_HOST_VIEW_CONFIG, ~std::uint16_t{0});
    EXPECT_EQ(rig.region<std::uint16_t>(HostRig::kConfig, VGPU_HOST_VIEW_CONFIG),
              VGPU_HOST_VIEW_CONFIG_MASK);
}

TEST(HostViewEndpoint, HasNoInterruptsOfItsOwn) {
    HostRig rig;
    for (const auto index : {vfio_user::Irq::Intx, vfio_user::Irq::Msi, vfio_user::Irq::Msix})
        EXPECT_EQ(rig.view.irq(index).count, 0u);
}

TEST(HostViewEndpoint, ResetTakesEndpointAndPortBackToPowerOn) {
    HostRig rig;
    rig.bring_up();
    rig.view.reset();
    EXPECT_EQ(rig.region<std::uint32_t>(HostRig::kConfig, kLowBar), 0u);
    EXPECT_EQ(rig.port<std::uint8_t>(PCI_SECONDARY_BUS), 0);
    EXPECT_EQ(rig.pf_config<std::uint32_t>(PCI_VENDOR_ID), ~0u);
    EXPECT_EQ(rig.pf.owner.story.back(), "device reset");
}

}  // namespace
}  // namespace vgpu::softgpu::host_view::test
