// SPDX-License-Identifier: MIT
//
// RootPort: the bridge 00:00.0 above the PF in the host view's domain. It has bus numbers, memory
// windows, ARI forwarding, a secondary bus reset, and a BAR with the registers of the IOMMU. It
// only decodes addresses; HostView does the accesses. Io thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "pf-driver/softgpu/pci/config_space.h"

namespace vgpu::softgpu::host_view {

/// Type 1 header (PCIe 6.0, 7.5.1.3) with a PCIe capability of type root port.
class RootPort {
public:
    /// `secondary_reset` runs when the driver asserts the reset of the bus behind the port.
    explicit RootPort(std::function<void()> secondary_reset);

    [[nodiscard]] pci::ConfigSpace& config() { return config_; }
    /// Routing id of a function behind the port. Each bus has 256 routing ids; the first bus behind
    /// the port has 0 to 255. None if the function is not behind the port, while the bus is in
    /// reset, and for function 8 and above of the first bus while ARI forwarding is off.
    [[nodiscard]] std::optional<std::uint32_t> function_behind(std::uint32_t bus,
                                                               std::uint32_t devfn) const;
    /// Number of bytes from `address` on that a memory window forwards. 0 if the address is in
    /// neither window, and while the bus is in reset or decoding is off.
    [[nodiscard]] std::uint64_t forwarded_bytes(std::uint64_t address) const;
    /// Offset of the address in the port's own BAR; none if the address is not in the BAR.
    [[nodiscard]] std::optional<std::uint64_t> own_bar_offset(std::uint64_t address) const;
    void reset();

private:
    [[nodiscard]] bool decodes() const;
    void bridge_control_changed();

    const std::function<void()> secondary_reset_;
    pci::ConfigSpace config_;
    bool is_in_reset_ = false;
};

}  // namespace vgpu::softgpu::host_view
