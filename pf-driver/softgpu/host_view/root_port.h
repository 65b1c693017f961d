// SPDX-License-Identifier: MIT
//
// RootPort: the PCIe root port 00:00.0 of the host view's PCI domain; PF and VFs are behind it. The
// port has bus numbers, memory windows, ARI forwarding, a secondary bus reset, and a BAR with the
// registers of the IOMMU. RootPort only decodes addresses; HostView does the accesses. Only the io
// thread uses a RootPort.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "pf-driver/softgpu/pci/config_space.h"

namespace vgpu::softgpu::host_view {

/// Has a type 1 header (PCIe 6.0, 7.5.1.3) and a PCIe capability of type root port.
class RootPort {
public:
    /// `secondary_reset` is called when the VM sets Secondary Bus Reset.
    explicit RootPort(std::function<void()> secondary_reset);

    [[nodiscard]] pci::ConfigSpace& config() { return config_; }
    /// Routing id of a function behind the port: (bus - secondary bus) * 256 + devfn. nullopt if
    /// the function is not behind the port or the bus is in reset. While ARI forwarding is off,
    /// also nullopt for devfn 8 and above on the secondary bus.
    [[nodiscard]] std::optional<std::uint32_t> routing_id_of(std::uint32_t bus,
                                                             std::uint32_t devfn) const;
    /// Number of bytes from `address` to the end of the memory window that forwards it. 0 if the
    /// address is in neither window, memory decoding is off or the bus is in reset.
    [[nodiscard]] std::uint64_t forwarded_bytes(std::uint64_t address) const;
    /// Offset of the address in the port's own BAR; nullopt if the address is not in the BAR or
    /// memory decoding is off.
    [[nodiscard]] std::optional<std::uint64_t> own_bar_offset(std::uint64_t address) const;
    void reset();

private:
    /// True if the memory bit of the command register is set.
    [[nodiscard]] bool decodes() const;
    void bridge_control_changed();

    const std::function<void()> secondary_reset_;
    pci::ConfigSpace config_;
    bool is_in_reset_ = false;
};

}  // namespace vgpu::softgpu::host_view
