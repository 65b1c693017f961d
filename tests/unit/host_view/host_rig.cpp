// SPDX-License-Identifier: MIT
#include "tests/unit/host_view/host_rig.h"

#include <linux/pci_regs.h>

#include "pf-driver/hw/regs.h"

namespace vgpu::softgpu::host_view::test {
namespace {

constexpr std::uint32_t kBarBytes = 4;

std::uint32_t bar_register(std::uint32_t bar) {
    return PCI_BASE_ADDRESS_0 + bar * kBarBytes;
}

std::uint32_t vf_bar_register(std::uint32_t bar) {
    return VGPU_ECAP_SRIOV + PCI_SRIOV_BAR + bar * kBarBytes;
}

}  // namespace

Card::Card(pci::FunctionSpec spec)
    : registers(HW_REG_BAR_BYTES), vram(4096), function(std::move(spec), owner, owner) {
    function.set_bar(VGPU_BAR_REGISTERS, registers.handler());
    function.set_bar(VGPU_BAR_VRAM, vram.handler());
}

HostRig::HostRig(EndpointKind kind)
    : pf(pci::pf_function(pci::test::kVram, kVfs, pci::test::kAperture)),
      vfs(make_vfs()),
      view(kind, pf.function, functions_of(vfs)) {}

std::vector<std::unique_ptr<Card>> HostRig::make_vfs() {
    std::vector<std::unique_ptr<Card>> vfs;
    for (std::uint8_t number = 1; number <= kVfs; number++)
        vfs.push_back(std::make_unique<Card>(pci::vf_function(VfId{number}, pci::test::kAperture)));
    return vfs;
}

std::vector<pci::Function*> HostRig::functions_of(const std::vector<std::unique_ptr<Card>>& vfs) {
    std::vector<pci::Function*> functions;
    for (const auto& each : vfs) functions.push_back(&each->function);
    return functions;
}

void HostRig::bring_up() {
    attach();
    set_region(kConfig, bar_register(VGPU_HOST_VIEW_BAR_LOW), static_cast<std::uint32_t>(kLow));
    set_region(kConfig, bar_register(VGPU_HOST_VIEW_BAR_HIGH), kHigh);
    set_region(kConfig, PCI_COMMAND, std::uint16_t{PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER});

    set_port(PCI_PRIMARY_BUS, std::uint32_t{kPfBus << 8 | kPfBus << 16});
    set_port(PCI_MEMORY_BASE, std::uint32_t{0xf800 | 0xfb00u << 16});
    set_port(PCI_PREF_MEMORY_BASE, std::uint32_t{0x0000 | 0x7ff0u << 16});
    set_port(PCI_PREF_BASE_UPPER32, std::uint32_t{0xf8});
    set_port(PCI_PREF_LIMIT_UPPER32, std::uint32_t{0xf8});
    set_port(PCI_COMMAND, std::uint16_t{PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER});
    set_port(VGPU_CAP_ROOT_PORT_PCIE + PCI_EXP_DEVCTL2, std::uint16_t{PCI_EXP_DEVCTL2_ARI});

    set_pf_config(bar_register(VGPU_BAR_VRAM), kPfVram & 0xffffffff);
    set_pf_config(bar_register(VGPU_BAR_VRAM) + kBarBytes, high32(kPfVram));
    set_pf_config(bar_register(VGPU_BAR_REGISTERS), static_cast<std::uint32_t>(kPfRegisters));
    set_pf_config(vf_bar_register(VGPU_BAR_VRAM), kVfVram);
    set_pf_config(vf_bar_register(VGPU_BAR_REGISTERS), static_cast<std::uint32_t>(kVfRegisters));
    set_pf_config(PCI_COMMAND, std::uint16_t{PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER});
}

void HostRig::enable_vfs(std::uint16_t count) {
    set_pf_config(VGPU_ECAP_SRIOV + PCI_SRIOV_NUM_VF, count);
    const std::uint16_t control = count == 0 ? 0 : PCI_SRIOV_CTRL_VFE | PCI_SRIOV_CTRL_MSE;
    set_pf_config(VGPU_ECAP_SRIOV + PCI_SRIOV_CTRL, control);
}

void HostRig::set_bus_master(std::uint32_t vf, std::uint16_t value) {
    set_vf_config(vf, PCI_COMMAND, value);
}

bool HostRig::is_bus_master(std::uint32_t vf) {
    return vf_config<std::uint16_t>(vf, PCI_COMMAND) == PCI_COMMAND_MASTER;
}

}  // namespace vgpu::softgpu::host_view::test
