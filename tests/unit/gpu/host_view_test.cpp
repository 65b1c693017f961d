// SPDX-License-Identifier: MIT
// The host view of a whole GPU, through its sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/pci_regs.h>

#include "pf-driver/hw/fields.h"
#include "tests/unit/gpu/gpu_rig.h"

namespace vgpu::softgpu::test {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::uint16_t kMaster = PCI_COMMAND_MASTER;

class GpuHostView : public GpuRig {
protected:
    [[nodiscard]] std::unique_ptr<HostClient> host() const {
        return std::make_unique<HostClient>(directory);
    }
    static bool is_attached(HostClient& host, unsigned vf) {
        const std::uint32_t number = REG_VGPU_VF0_STATUS + vf * HW_VGPU_BANK_STRIDE;
        return HW_GET(VGPU_STATUS, ATTACHED, host.pf_reg(number)) != 0;
    }
};

TEST_F(GpuHostView, RegistersAreThoseOfPfAndVfs) {
    const auto vm = host();
    EXPECT_EQ(vm->function_config<std::uint32_t>(0, 0), 0x68601002u);
    EXPECT_EQ(vm->pf_reg(REG_VGPU_TOTAL_VFS), 4u);
    vm->set_function_config(2, PCI_COMMAND, kMaster);
    EXPECT_EQ(vm->vf_reg(2, REG_NBIO_RCC_IOV_FUNC_IDENTIFIER), 0x80000001u);
}

TEST_F(GpuHostView, PfCoreSeesAttachmentOnTheBusAsThatOfAClient) {
    const auto vm = host();
    EXPECT_FALSE(is_attached(*vm, 1));
    vm->set_function_config(1, PCI_COMMAND, kMaster);
    EXPECT_TRUE(is_attached(*vm, 1));
    vm->set_function_config(1, PCI_COMMAND, std::uint16_t{0});
    EXPECT_FALSE(is_attached(*vm, 1));
}

TEST_F(GpuHostView, InterruptsOfThePfAreMessages) {
    const auto vm = host();
    vm->enable_messages();
    vm->set_function_config(0, unsigned{VGPU_ECAP_VSEC} + GPUIOV_INTR_ENABLE,
                            std::uint32_t{GPUIOV_INTR_VF_FLR});
    vm->post(VGPU_HOST_VIEW_BAR_CONFIG, HostClient::window(1) + PCI_COMMAND, kMaster);
    const auto write = vm->receive_write();
    EXPECT_EQ(write.address, 0xfee00000u);
    EXPECT_LT(write.data, std::uint32_t{GPUIOV_VECTOR_COUNT});
}

TEST_F(GpuHostView, FunctionsOfTheVmAreBusyForClients) {
    const auto vm = host();
    vm->set_function_config(1, PCI_COMMAND, kMaster);
    EXPECT_THAT([this] { (void)pf(); }, ThrowsMessage<std::runtime_error>(HasSubstr("errno 16")));
    EXPECT_THAT([this] { (void)vf(1); }, ThrowsMessage<std::runtime_error>(HasSubstr("errno 16")));
    const auto guest = vf(2);
    vm->set_function_config(2, PCI_COMMAND, kMaster);
    EXPECT_EQ(vm->function_config<std::uint16_t>(2, PCI_COMMAND), 0u);
    EXPECT_EQ(vm->vf_reg(2, REG_NBIO_RCC_IOV_FUNC_IDENTIFIER), ~0u);
}

TEST_F(GpuHostView, PfIsFreeForItsSocketWhenTheVmHasGone) {
    host()->close();
    EXPECT_TRUE(eventually([this] {
        try {
            return pf()->reg(REG_VGPU_TOTAL_VFS) == 4;
        } catch (const std::runtime_error&) {
            return false;
        }
    }));
}

}  // namespace
}  // namespace vgpu::softgpu::test
