// SPDX-License-Identifier: MIT
// Configuration window and memory windows: what answers where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/pci_regs.h>

#include <random>

#include "tests/unit/host_view/host_rig.h"

namespace vgpu::softgpu::host_view::test {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;

constexpr std::uint32_t kPfId = 0x68601002;
constexpr std::uint32_t kPortId = 0x0b1e5056;
constexpr std::uint32_t kNobody = ~0u;

TEST(HostViewConfig, RootPortIsAllThereIsOnBus0) {
    HostRig rig;
    rig.bring_up();
    EXPECT_EQ(rig.port<std::uint32_t>(PCI_VENDOR_ID), kPortId);
    for (std::uint32_t devfn = 1; devfn < 256; devfn++)
        EXPECT_EQ(rig.config<std::uint32_t>(0, devfn, PCI_VENDOR_ID), kNobody) << devfn;
}

TEST(HostViewConfig, PfAnswersOnceThePortHasItsBusNumbers) {
    HostRig rig;
    rig.attach();
    EXPECT_EQ(rig.pf_config<std::uint32_t>(PCI_VENDOR_ID), kNobody);
    rig.set_port(PCI_PRIMARY_BUS, std::uint32_t{1u << 8 | 1u << 16});
    EXPECT_EQ(rig.pf_config<std::uint32_t>(PCI_VENDOR_ID), kPfId);
    rig.set_port(PCI_PRIMARY_BUS, std::uint32_t{2u << 8 | 2u << 16});
    EXPECT_EQ(rig.pf_config<std::uint32_t>(PCI_VENDOR_ID), kNobody);
}

TEST(HostViewConfig, VfsAnswerFromVfEnableOnAsManyAsNumVfsSays) {
    HostRig rig;
    rig.bring_up();
    EXPECT_EQ(rig.vf_config<std::uint32_t>(1, PCI_CLASS_REVISION), kNobody);
    rig.enable_vfs(4);
    for (std::uint32_t vf = 1; vf <= 4; vf++)
        EXPECT_EQ(rig.vf_config<std::uint32_t>(vf, PCI_CLASS_REVISION), 0x03800001u) << vf;
    EXPECT_EQ(rig.vf_config<std::uint32_t>(5, PCI_CLASS_REVISION), kNobody);
    rig.enable_vfs(0);
    EXPECT_EQ(rig.vf_config<std::uint32_t>(1, PCI_CLASS_REVISION), kNobody);
}

TEST(HostViewConfig, AllSixteenVfsAreBehindOneBusWithAri) {
    HostRig rig;
    rig.bring_up();
    rig.enable_vfs(16);
    EXPECT_EQ(rig.vf_config<std::uint32_t>(16, PCI_CLASS_REVISION), 0x03800001u);
    rig.set_port(VGPU_CAP_ROOT_PORT_PCIE + PCI_EXP_DEVCTL2, std::uint16_t{0});
    EXPECT_EQ(rig.vf_config<std::uint32_t>(7, PCI_CLASS_REVISION), 0x03800001u);
    EXPECT_EQ(rig.vf_config<std::uint32_t>(8, PCI_CLASS_REVISION), kNobody);
}

TEST(HostViewConfig, VfShowsWhatTheSriovSpecificationLeavesToIt) {
    HostRig rig;
    rig.bring_up();
    rig.enable_vfs(1);
    EXPECT_EQ(rig.vf_config<std::uint32_t>(1, PCI_VENDOR_ID), kNobody);  // the PF's capability
    EXPECT_EQ(rig.vf_config<std::uint32_t>(1, PCI_SUBSYSTEM_VENDOR_ID), 0x0c351002u);
    for (std::uint32_t bar = PCI_BASE_ADDRESS_0; bar < PCI_CARDBUS_CIS; bar += 4) {
        rig.set_vf_config(1, bar, kNobody);
        EXPECT_EQ(rig.vf_config<std::uint32_t>(1, bar), 0u) << bar;
    }
    EXPECT_EQ(rig.vf_config<std::uint8_t>(1, PCI_CAPABILITY_LIST), VGPU_CAP_PCIE);
    EXPECT_NE(rig.vf_config<std::uint32_t>(1, VGPU_CAP_PCIE + PCI_EXP_DEVCAP) & PCI_EXP_DEVCAP_FLR,
              0u);
}

TEST(HostViewConfig, OfAVfsCommandOnlyBusMasterCanBeWritten) {
    HostRig rig;
    rig.bring_up();
    rig.enable_vfs(1);
    rig.set_bus_master(1, 0xffff);
    EXPECT_EQ(rig.vf_config<std::uint16_t>(1, PCI_COMMAND), PCI_COMMAND_MASTER);
}

TEST(HostViewConfig, TheWholeWindowCanBeReadAndWritten) {
    HostRig rig;
    rig.bring_up();
    rig.enable_vfs(16);
    std::vector<std::byte> all(rig.view.region_size(VGPU_HOST_VIEW_BAR_CONFIG));
    ASSERT_EQ(rig.view.read(VGPU_HOST_VIEW_BAR_CONFIG, 0, all), std::errc{});
    EXPECT_EQ(load<std::uint32_t>(all, HostRig::window(1, 0, 0)), kPfId);
    ASSERT_EQ(rig.view.write(VGPU_HOST_VIEW_BAR_CONFIG, 0, all), std::errc{});
}

TEST(HostViewMemory, PfBarsAnswerThroughThePortsWindows) {
    HostRig rig;
    rig.bring_up();
    rig.set_memory(HostRig::kPfRegisters + 0x3958, std::uint32_t{0xabcd1234});
    EXPECT_EQ(rig.memory<std::uint8_t>(HostRig::kPfRegisters + 0x3959), 0x12);
    rig.set_memory(HostRig::kPfVram + 8, std::uint64_t{42});
    EXPECT_EQ(rig.memory<std::uint64_t>(HostRig::kPfVram + 8), 42u);
}

TEST(HostViewMemory, NothingAnswersOutsideThePortsWindows) {
    HostRig rig;
    rig.bring_up();
    rig.set_port(PCI_MEMORY_BASE, std::uint32_t{0xf900 | 0xfb00u << 16});
    EXPECT_EQ(rig.memory<std::uint32_t>(HostRig::kPfRegisters), kNobody);
    EXPECT_EQ(rig.memory<std::uint32_t>(HostRig::kPfVram), 0u);
    rig.set_port(PCI_COMMAND, std::uint16_t{0});
    EXPECT_EQ(rig.memory<std::uint32_t>(HostRig::kPfVram), kNobody);
}

TEST(HostViewMemory, PfBarsNeedItsMemoryBit) {
    HostRig rig;
    rig.bring_up();
    rig.set_pf_config(PCI_COMMAND, std::uint16_t{PCI_COMMAND_MASTER});
    rig.set_memory(HostRig::kPfRegisters, 5u);
    EXPECT_EQ(rig.memory<std::uint32_t>(HostRig::kPfRegisters), kNobody);
    EXPECT_THAT(rig.pf.registers.story, IsEmpty());
}

TEST(HostViewMemory, PlaceInTheVfBarSelectsTheVf) {
    HostRig rig;
    rig.bring_up();
    rig.enable_vfs(4);
    for (std::uint32_t vf = 1; vf <= 4; vf++) {
        rig.set_bus_master(vf, PCI_COMMAND_MASTER);
        rig.set_memory(HostRig::vf_registers(vf) + 0x40, vf);
    }
    for (std::uint32_t vf = 1; vf <= 4; vf++)
        EXPECT_EQ(load<std::uint32_t>(rig.vf(vf).registers.bytes, 0x40), vf);
    EXPECT_EQ(rig.memory<std::uint32_t>(HostRig::vf_registers(5)), kNobody);
}

TEST(HostViewMemory, VfBarsNeedVfMemorySpaceEnable) {
    HostRig rig;
    rig.bring_up();
    rig.enable_vfs(1);
    rig.set_bus_master(1, PCI_COMMAND_MASTER);
    EXPECT_EQ(rig.memory<std::uint32_t>(HostRig::vf_registers(1)), 0u);
    rig.set_pf_config(VGPU_ECAP_SRIOV + PCI_SRIOV_CTRL, std::uint16_t{PCI_SRIOV_CTRL_VFE});
    EXPECT_EQ(rig.memory<std::uint32_t>(HostRig::vf_registers(1)), kNobody);
}

TEST(HostViewMemory, AccessAcrossTwoVfsIsCutBetweenThem) {
    HostRig rig;
    rig.bring_up();
    rig.enable_vfs(2);
    for (std::uint32_t vf = 1; vf <= 2; vf++) rig.set_bus_master(vf, PCI_COMMAND_MASTER);
    rig.set_memory(HostRig::vf_registers(2) - 2, std::uint32_t{0x44332211});
    EXPECT_EQ(load<std::uint16_t>(rig.vf(1).registers.bytes, (512_KiB).count - 2), 0x2211);
    EXPECT_EQ(load<std::uint16_t>(rig.vf(2).registers.bytes, 0), 0x4433);
}

TEST(HostViewMemory, WhereBarsOverlapThePfAnswers) {
    HostRig rig;
    rig.bring_up();
    rig.enable_vfs(1);
    rig.set_bus_master(1, PCI_COMMAND_MASTER);
    rig.set_pf_config(VGPU_ECAP_SRIOV + PCI_SRIOV_BAR + 4 * VGPU_BAR_REGISTERS,
                      static_cast<std::uint32_t>(HostRig::kPfRegisters));
    rig.set_memory(HostRig::kPfRegisters, 7u);
    EXPECT_EQ(load<std::uint32_t>(rig.pf.registers.bytes), 7u);
    EXPECT_THAT(rig.vf(1).registers.story, IsEmpty());
}

TEST(HostViewMemory, UndecodedMegabyteReadsAllOnes) {
    HostRig rig;
    rig.attach();
    std::vector<std::byte> data(1 << 20);
    ASSERT_EQ(rig.view.read(VGPU_HOST_VIEW_BAR_HIGH, 3, data), std::errc{});
    EXPECT_THAT(data, Each(std::byte{0xff}));
    ASSERT_EQ(rig.view.write(VGPU_HOST_VIEW_BAR_HIGH, 3, data), std::errc{});
}

TEST(HostViewMemory, BarsSizedWhileDecodingAreHarmless) {
    HostRig rig;
    rig.bring_up();
    rig.enable_vfs(16);
    for (std::uint32_t bar = 0; bar < 6; bar++) {
        rig.set_pf_config(PCI_BASE_ADDRESS_0 + 4 * bar, kNobody);
        rig.set_pf_config(VGPU_ECAP_SRIOV + PCI_SRIOV_BAR + 4 * bar, kNobody);
    }
    EXPECT_EQ(rig.memory<std::uint32_t>(HostRig::kPfRegisters), kNobody);
    EXPECT_EQ(rig.memory<std::uint64_t>(HostRig::kHigh + (16383_MiB).count), ~0ull);
}

// Whatever the order, size and place: no access leaves a handler's BAR (FakeBar checks), nothing
// stops the host view.
TEST(HostViewBus, RandomAccessesAreHarmless) {
    HostRig rig;
    rig.bring_up();
    std::mt19937 random(1);
    const auto below = [&random](std::uint64_t limit) { return random() % limit; };
    constexpr std::uint32_t kRegions[] = {HostRig::kConfig, VGPU_HOST_VIEW_BAR_CONFIG,
                                          VGPU_HOST_VIEW_BAR_LOW, VGPU_HOST_VIEW_BAR_HIGH};
    for (int i = 0; i < 20000; i++) {
        const std::uint32_t region = kRegions[below(std::size(kRegions))];
        // near the start, where things are
        const std::uint64_t reach =
            region == VGPU_HOST_VIEW_BAR_CONFIG
                ? HostRig::window(1, 18, 0)
                : std::min<std::uint64_t>(4096, rig.view.region_size(region));
        std::vector<std::byte> data(1 + below(9));
        const std::uint64_t offset = below(reach - data.size());
        for (std::byte& value : data) value = static_cast<std::byte>(random());
        if (below(2) == 0)
            ASSERT_EQ(rig.view.write(region, offset, data), std::errc{});
        else
            ASSERT_EQ(rig.view.read(region, offset, data), std::errc{});
        if (below(500) == 0) rig.view.reset();
    }
}

}  // namespace
}  // namespace vgpu::softgpu::host_view::test
