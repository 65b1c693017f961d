// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/host_view/endpoint.h"

#include <linux/pci_regs.h>

#include <algorithm>

#include "pf-driver/softgpu/pci/capabilities.h"

namespace vgpu::softgpu::host_view {
namespace {

using pci::BarKind;

constexpr Bytes kConfigWindow{std::uint64_t{VGPU_HOST_VIEW_BUSES} * VGPU_ECAM_BUS_BYTES};
/// Has room for the 32-bit BARs of root port, PF and VFs, which have less than 9 MiB. The window is
/// small, because it takes address space below 4 GiB.
constexpr Bytes kLowWindow = 64_MiB;
constexpr unsigned kPcieVersion2 = 2;
constexpr unsigned kPcieTypeShift = 4;
constexpr unsigned kClassShift = 8;

struct Id {
    std::uint16_t vendor;
    std::uint16_t device;
};
/// Indexed by EndpointKind.
constexpr Id kIds[] = {{VGPU_HOST_VIEW_VENDOR, VGPU_HOST_VIEW_DEVICE},
                       {VGPU_HOST_VIEW_VENDOR_VMD, VGPU_HOST_VIEW_DEVICE_VMD}};

}  // namespace

/// The endpoint has only the PCIe capability and no interrupts. All other capabilities belong to
/// functions in the PCI domain behind the endpoint.
Endpoint::Endpoint(EndpointKind kind, Bytes high_window)
    : bars_{{VGPU_HOST_VIEW_BAR_CONFIG, BarKind::Memory64Prefetchable, kConfigWindow},
            {VGPU_HOST_VIEW_BAR_LOW, BarKind::Memory32, kLowWindow},
            {VGPU_HOST_VIEW_BAR_HIGH, BarKind::Memory64Prefetchable, high_window}} {
    const Id& id = kIds[static_cast<std::size_t>(kind)];
    config_.add(
        0, {{PCI_VENDOR_ID, 2, id.vendor},
            {PCI_DEVICE_ID, 2, id.device},
            {PCI_COMMAND, 2, 0, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_INTX_DISABLE},
            {PCI_STATUS, 2, PCI_STATUS_CAP_LIST},
            {PCI_CLASS_REVISION, 4, VGPU_HOST_VIEW_CLASS << kClassShift},
            {PCI_SUBSYSTEM_VENDOR_ID, 2, id.vendor},
            {PCI_CAPABILITY_LIST, 1, VGPU_CAP_ENDPOINT_PCIE},
            {VGPU_HOST_VIEW_CONFIG, 2, 0, VGPU_HOST_VIEW_CONFIG_MASK}});
    pci::add_bars(config_, PCI_BASE_ADDRESS_0, bars_);
    config_.add(VGPU_CAP_ENDPOINT_PCIE,
                {{PCI_CAP_LIST_ID, 1, PCI_CAP_ID_EXP},
                 {PCI_EXP_FLAGS, 2, kPcieVersion2 | PCI_EXP_TYPE_RC_END << kPcieTypeShift},
                 {PCI_EXP_DEVCAP, 4, PCI_EXP_DEVCAP_RBER}});
    config_.seal();
}

const pci::BarSpec* Endpoint::find(std::uint32_t bar) const {
    const auto found = std::ranges::find(bars_, bar, &pci::BarSpec::index);
    return found == bars_.end() ? nullptr : &*found;
}

std::uint64_t Endpoint::bar_size(std::uint32_t bar) const {
    const pci::BarSpec* spec = find(bar);
    return spec == nullptr ? 0 : spec->size.count;
}

std::uint64_t Endpoint::bar_address(std::uint32_t bar) const {
    const pci::BarSpec* spec = find(bar);
    return spec == nullptr ? 0 : pci::bar_address(config_, PCI_BASE_ADDRESS_0, *spec);
}

}  // namespace vgpu::softgpu::host_view
