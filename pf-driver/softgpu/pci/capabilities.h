// SPDX-License-Identifier: MIT
//
// Functions that fill in a configuration space: header, BARs and capabilities, as registers with
// their writable bits. Offsets and bits are those of <linux/pci_regs.h>; hw/pci.h gives the offset
// of each capability. Function's constructor calls build_config(); the constructors of the host
// view's endpoint and root port call add_bars(). A register only stores values, unless its bytes
// have handlers (ConfigSpace::claim()) or a callback (ConfigSpace::on_write()).
#pragma once

#include <cstdint>
#include <span>

#include "pf-driver/softgpu/pci/config_space.h"
#include "pf-driver/softgpu/pci/function_spec.h"

namespace vgpu::softgpu::pci {

/// Bytes of the MSI capability with 64-bit addresses and without masks (PCIe 6.0, 7.7.1).
inline constexpr std::uint32_t kMsiBytes = 14;
/// Page sizes for VF BARs: those that SR-IOV requires of every PF. Bit n stands for 4 KiB << n.
inline constexpr std::uint32_t kSupportedPageSizes = 0x553;

/// Adds the base address registers of `bars`. `first_register` is the offset of the function's
/// BAR0, or the offset of VF BAR0 in a PF's SR-IOV capability.
void add_bars(ConfigSpace& config, std::uint32_t first_register, std::span<const BarSpec> bars);
/// The address that the driver wrote into a BAR, without the attribute bits. `first_register` as in
/// add_bars().
[[nodiscard]] std::uint64_t bar_address(const ConfigSpace& config, std::uint32_t first_register,
                                        const BarSpec& bar);

/// Adds the header, BARs and capabilities of the spec, then calls ConfigSpace::seal(), so that
/// ConfigSpace::reset() restores this state.
void build_config(ConfigSpace& config, const FunctionSpec& spec);

}  // namespace vgpu::softgpu::pci
