// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/host_view/bus_vf.h"

#include <linux/pci_regs.h>

#include <array>

#include "pf-driver/softgpu/base/log.h"
#include "pf-driver/softgpu/pci/capabilities.h"

namespace vgpu::softgpu::host_view {
namespace {

constexpr std::byte kMaster{PCI_COMMAND_MASTER};

/// Header bytes that read as (byte & kept) | set on the bus, where `byte` is the value in the
/// function's own configuration space.
struct Overlay {
    std::uint32_t first;
    std::uint32_t count;
    std::byte kept;
    std::byte set;
};
constexpr Overlay kOverlays[] = {
    {PCI_VENDOR_ID, 4, std::byte{0}, std::byte{0xff}},  // vendor and device
    {PCI_COMMAND, 1, kMaster, std::byte{0}},
    {PCI_COMMAND + 1, 1, std::byte{0}, std::byte{0}},
    {PCI_BASE_ADDRESS_0, PCI_CARDBUS_CIS - PCI_BASE_ADDRESS_0, std::byte{0}, std::byte{0}},
    {PCI_INTERRUPT_LINE, 2, std::byte{0}, std::byte{0}},  // and pin
};

std::byte overlaid(std::uint32_t at, std::byte value) {
    for (const Overlay& overlay : kOverlays)
        if (at >= overlay.first && at - overlay.first < overlay.count)
            return (value & overlay.kept) | overlay.set;
    return value;
}

/// True if the write sets the FLR bit, which is in the upper byte of Device Control.
bool is_flr(std::uint32_t offset, std::span<const std::byte> data) {
    constexpr std::uint32_t kAt = VGPU_CAP_PCIE + PCI_EXP_DEVCTL + 1;
    constexpr std::byte kFlr{PCI_EXP_DEVCTL_BCR_FLR >> 8};
    return offset <= kAt && kAt - offset < data.size() &&
           (data[kAt - offset] & kFlr) != std::byte{0};
}

}  // namespace

void BusVf::config_read(std::uint32_t offset, std::span<std::byte> out) const {
    if (function_.reach() == pci::Reach::Socket)
        function_.config().read_power_on(offset, out);
    else
        function_.config().read(offset, out);
    for (std::byte& value : out) value = overlaid(offset++, value);
}

void BusVf::config_write(std::uint32_t offset, std::span<const std::byte> data) {
    if (function_.reach() == pci::Reach::Socket) return;
    if (offset <= PCI_COMMAND && PCI_COMMAND - offset < data.size()) {
        const bool is_set = (data[PCI_COMMAND - offset] & kMaster) != std::byte{0};
        return is_set ? set_bus_master() : clear_bus_master();
    }
    if (offset < PCI_STD_HEADER_SIZEOF) return;
    const bool is_reset = is_flr(offset, data);
    function_.config().write(offset, data);
    if (is_reset) detach();
}

pci::Function* BusVf::attached_function() {
    if (function_.reach() == pci::Reach::Socket) return nullptr;
    return attach() ? &function_ : nullptr;
}

bool BusVf::attach() {
    if (is_attached()) return true;
    const Result<> attached = attachments_.attach(function_, routing_id_);
    if (!attached) log::warn("{}: host view: {}", function_.name(), attached.error().message);
    return attached.has_value();
}

void BusVf::set_bus_master() {
    if (!attach()) return;
    constexpr std::uint16_t kCommand = PCI_COMMAND_MASTER;
    function_.config().write(PCI_COMMAND, bytes_of(kCommand));
}

/// As in hardware, the driver's MSI setup survives the end of bus mastering: detach() resets the
/// setup, so this function restores it.
void BusVf::clear_bus_master() {
    if (!function_.is_bus_master()) return;
    const auto msi = function_.config().get<std::array<std::byte, pci::kMsiBytes>>(VGPU_CAP_MSI);
    detach();
    function_.config().write(VGPU_CAP_MSI, msi);
}

}  // namespace vgpu::softgpu::host_view
