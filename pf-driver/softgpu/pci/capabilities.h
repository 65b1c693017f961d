// SPDX-License-Identifier: MIT
//
// Builders of a configuration space: header, BARs and capabilities, as rows of registers with their
// writable bits. Offsets and bits are those of <linux/pci_regs.h>; hw/pci.h gives the offset of
// each capability. Called by the constructors of Function and of the host view's endpoint and root
// port. A register only stores values until the owner of the space adds a handler (ConfigSpace).
#pragma once

#include <cstdint>
#include <span>

#include "pf-driver/softgpu/pci/config_space.h"
#include "pf-driver/softgpu/pci/function_spec.h"

namespace vgpu::softgpu::pci {

/// Bytes of the MSI capability with 64-bit addresses and without masks (PCIe 6.0, 7.7.1).
inline constexpr std::uint32_t kMsiBytes = 14;
/// Page sizes that a PF supports for VF BARs, as on hardware: bit n stands for 4 KiB << n.
inline constexpr std::uint32_t kSupportedPageSizes = 0x553;

/// Adds base address registers from `first_register` on: the BARs of a function, or the VF BARs of
/// a PF's SR-IOV capability.
void add_bars(ConfigSpace& config, std::uint32_t first_register, std::span<const BarSpec> bars);
/// The address in the registers of a BAR, without the attribute bits.
[[nodiscard]] std::uint64_t bar_address(const ConfigSpace& config, std::uint32_t first_register,
                                        const BarSpec& bar);

/// Builds everything that the spec contains; the result is sealed as the state after power-on.
void build_config(ConfigSpace& config, const FunctionSpec& spec);

}  // namespace vgpu::softgpu::pci
