// SPDX-License-Identifier: MIT
//
// Endpoint: the PCI function that represents the host view in the VM. Like Intel's VMD (Volume
// Management Device), the endpoint is a bridge to a PCI domain, but has the class code of a RAID
// controller. Its three BARs are windows into the domain: the configuration space of all functions
// (ECAM), 32-bit memory and 64-bit memory. Endpoint is part of HostView; only the io thread uses
// it.
#pragma once

#include <cstdint>
#include <vector>

#include "pf-driver/softgpu/pci/config_space.h"
#include "pf-driver/softgpu/pci/function_spec.h"

namespace vgpu::softgpu::host_view {

/// Selects the VM's driver for the endpoint. The two kinds differ only in their PCI ids.
enum class EndpointKind : std::uint8_t {
    Bridge,  ///< tests/host/bridge
    Vmd,     ///< Linux's vmd.ko
};

/// Has the BARs and the configuration register that Linux's vmd driver uses
/// (drivers/pci/controller/vmd.c).
class Endpoint {
public:
    /// `high_window` is the size of the window into 64-bit memory, a power of two.
    Endpoint(EndpointKind kind, Bytes high_window);

    [[nodiscard]] pci::ConfigSpace& config() { return config_; }
    /// Size of a BAR in bytes; 0 if the endpoint has no such BAR.
    [[nodiscard]] std::uint64_t bar_size(std::uint32_t bar) const;
    /// The address that the VM has written to a BAR; 0 before that, or if the endpoint has no such
    /// BAR.
    [[nodiscard]] std::uint64_t bar_address(std::uint32_t bar) const;
    void reset() { config_.reset(); }

private:
    [[nodiscard]] const pci::BarSpec* find(std::uint32_t bar) const;

    std::vector<pci::BarSpec> bars_;
    pci::ConfigSpace config_;
};

}  // namespace vgpu::softgpu::host_view
