// SPDX-License-Identifier: MIT
//
// Endpoint: the PCI function that QEMU sees of the host view. It is a bridge to a PCI domain, with
// the class code of a RAID controller, like Intel's VMD (Volume Management Device). Its three BARs
// are the configuration window (ECAM) and the two memory windows of the domain. Part of HostView;
// io thread only.
#pragma once

#include <cstdint>
#include <vector>

#include "pf-driver/softgpu/pci/config_space.h"
#include "pf-driver/softgpu/pci/function_spec.h"

namespace vgpu::softgpu::host_view {

/// Selects the driver in the VM that opens the domain. The two kinds differ only in their PCI ids.
enum class EndpointKind : std::uint8_t {
    Bridge,  ///< tests/host/bridge
    Vmd,     ///< Linux' own vmd.ko
};

/// BARs and configuration register as Linux' vmd driver uses them (drivers/pci/controller/vmd.c).
class Endpoint {
public:
    /// `high_window` is a power of two.
    Endpoint(EndpointKind kind, Bytes high_window);

    [[nodiscard]] pci::ConfigSpace& config() { return config_; }
    /// Bytes of a BAR; 0 if there is no such BAR.
    [[nodiscard]] std::uint64_t bar_size(std::uint32_t bar) const;
    /// The address that the VM has set; 0 until then, so that the window decodes as if it began at
    /// 0.
    [[nodiscard]] std::uint64_t bar_address(std::uint32_t bar) const;
    void reset() { config_.reset(); }

private:
    [[nodiscard]] const pci::BarSpec* find(std::uint32_t bar) const;

    std::vector<pci::BarSpec> bars_;
    pci::ConfigSpace config_;
};

}  // namespace vgpu::softgpu::host_view
