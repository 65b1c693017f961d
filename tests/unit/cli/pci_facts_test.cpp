// SPDX-License-Identifier: MIT
//
// What is read from configuration spaces, on dumps written by hand in the format of lspci -xxxx.
#include "cli/pci_facts.h"

#include <gmock/gmock.h>

namespace vgpu::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

PciReading read(const std::string& name) {
    return read_pci(std::string(VGPU_SOURCE_DIR) + "/tests/unit/cli/pci/" + name);
}

const PciFunction& at(const PciReading& reading, const std::string& address) {
    for (const PciFunction& one : reading.functions)
        if (one.address == address) return one;
    throw std::runtime_error("no function " + address);
}

TEST(PciFacts, APfWithSriovIsReadWithItsVfsAndTheirBars) {
    const PciReading reading = read("sriov_ready.txt");
    EXPECT_THAT(reading.error, IsEmpty());
    const PciFunction& gpu = at(reading, "0000:03:00.0");
    EXPECT_TRUE(is_amd_gpu(gpu));
    EXPECT_EQ(gpu.device_id, 0x6860u);
    EXPECT_FALSE(gpu.is_bridge);
    EXPECT_TRUE(gpu.has_extended_config);
    EXPECT_TRUE(gpu.has_ari);
    ASSERT_TRUE(gpu.sriov);
    EXPECT_EQ(gpu.sriov->total_vfs, 16u);
    EXPECT_EQ(gpu.sriov->enabled_vfs, 0u);
    EXPECT_EQ(gpu.sriov->first_vf_offset, 1u);
    EXPECT_EQ(gpu.sriov->vf_stride, 1u);
    EXPECT_TRUE(gpu.sriov->is_ari_hierarchy);
    EXPECT_TRUE(gpu.sriov->has_vf_bars_assigned);
}

TEST(PciFacts, ThePortAboveIsFoundByItsBus) {
    const PciReading reading = read("sriov_ready.txt");
    const PciFunction* port = port_above(reading.functions, at(reading, "0000:03:00.0"));
    ASSERT_NE(port, nullptr);
    EXPECT_EQ(port->address, "0000:00:01.0");
    EXPECT_EQ(port->is_forwarding_ari, std::optional(true));
    EXPECT_EQ(port->acs_control, std::optional(0x1du));
    EXPECT_FALSE(is_amd_gpu(*port));
    EXPECT_EQ(port_above(reading.functions, *port), nullptr);
}

TEST(PciFacts, WhatIsOffOrMissingIsNotified) {
    const PciReading reading = read("sriov_unready.txt");
    const PciFunction& gpu = at(reading, "0000:03:00.0");
    EXPECT_TRUE(gpu.sriov->has_vf_bars);
    EXPECT_FALSE(gpu.sriov->has_vf_bars_assigned);
    EXPECT_FALSE(gpu.sriov->is_ari_hierarchy);
    EXPECT_EQ(at(reading, "0000:00:01.0").is_forwarding_ari, std::optional(false));
    EXPECT_EQ(at(reading, "0000:00:01.0").acs_control, std::nullopt);
    EXPECT_EQ(at(reading, "0000:00:02.0").is_forwarding_ari, std::nullopt);
    EXPECT_TRUE(is_amd_gpu(at(reading, "0000:04:00.0"))) << "a processing accelerator";
}

TEST(PciFacts, AFunctionWithoutSriovAndOneThatIsCutOff) {
    const PciReading reading = read("no_sriov.txt");
    EXPECT_FALSE(at(reading, "0000:03:00.0").sriov);
    EXPECT_TRUE(at(reading, "0000:03:00.0").has_extended_config);
    EXPECT_FALSE(at(reading, "0000:05:00.0").has_extended_config);
}

TEST(PciFacts, WhatCannotBeReadIsAConditionAndNoEndOfTheProcess) {
    const PciReading reading = read("not_there.txt");
    EXPECT_THAT(reading.functions, IsEmpty());
    EXPECT_THAT(reading.error, HasSubstr("not_there.txt"));
}

}  // namespace
}  // namespace vgpu::cli
