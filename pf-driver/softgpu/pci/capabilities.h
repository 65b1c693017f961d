// SPDX-License-Identifier: MIT
//
// Builders of a configuration space: header, BARs and capabilities, each a packed structure in the
// layout of the PCI specifications with its writable bits. Offsets and bits are those of
// <linux/pci_regs.h>; hw/pci.h gives the place of each capability. Called by Function while it is
// built; nothing here has behaviour.
#pragma once

#include <cstdint>
#include <span>

#include "pf-driver/softgpu/pci/config_space.h"
#include "pf-driver/softgpu/pci/function_spec.h"

namespace vgpu::softgpu::pci {

/// PCIe 6.0, 7.5.3; version 2 of the structure.
struct PcieCapability {
    std::uint8_t id;
    std::uint8_t next;
    std::uint16_t flags;
    std::uint32_t device_capabilities;
    std::uint16_t device_control;
    std::uint16_t device_status;
    std::uint32_t link_capabilities;
    std::uint16_t link_control;
    std::uint16_t link_status;
    std::uint32_t slot_capabilities;
    std::uint16_t slot_control;
    std::uint16_t slot_status;
    std::uint16_t root_control;
    std::uint16_t root_capabilities;
    std::uint32_t root_status;
    std::uint32_t device_capabilities2;
    std::uint16_t device_control2;
    std::uint16_t device_status2;
    std::uint32_t link_capabilities2;
    std::uint16_t link_control2;
    std::uint16_t link_status2;
    std::uint32_t slot_capabilities2;
    std::uint16_t slot_control2;
    std::uint16_t slot_status2;
};
static_assert(sizeof(PcieCapability) == 60);

#pragma pack(push, 1)
/// PCIe 6.0, 7.7.1, the 64-bit form without masking.
struct MsiCapability {
    std::uint8_t id;
    std::uint8_t next;
    std::uint16_t control;
    std::uint32_t address_low;
    std::uint32_t address_high;
    std::uint16_t data;
};
#pragma pack(pop)
static_assert(sizeof(MsiCapability) == 14);

/// PCIe 6.0, 7.7.2; offsets hold the BAR's number in their low three bits.
struct MsixCapability {
    std::uint8_t id;
    std::uint8_t next;
    std::uint16_t control;
    std::uint32_t table;
    std::uint32_t pba;
};
static_assert(sizeof(MsixCapability) == 12);

/// PCIe 6.0, 9.3.3.
struct SriovCapability {
    std::uint32_t header;
    std::uint32_t capabilities;
    std::uint16_t control;
    std::uint16_t status;
    std::uint16_t initial_vfs;
    std::uint16_t total_vfs;
    std::uint16_t num_vfs;
    std::uint16_t dependency_link;
    std::uint16_t first_vf_offset;
    std::uint16_t vf_stride;
    std::uint16_t reserved;
    std::uint16_t vf_device;
    std::uint32_t supported_page_sizes;
    std::uint32_t system_page_size;
    std::uint32_t vf_bars[6];
    std::uint32_t migration_state;
};
static_assert(sizeof(SriovCapability) == 64);

/// PCIe 6.0, 7.8.8.
struct AriCapability {
    std::uint32_t header;
    std::uint16_t capability;
    std::uint16_t control;
};
static_assert(sizeof(AriCapability) == 8);

/// PCIe 6.0, 7.9.5: id, revision and length, header included.
struct VsecHeader {
    std::uint32_t header;
    std::uint32_t vendor_header;
};
static_assert(sizeof(VsecHeader) == 8);

/// Page sizes a PF supports for VF BARs: 4 KiB to 4 MiB, as hardware has them.
inline constexpr std::uint32_t kSupportedPageSizes = 0x553;

/// Base address registers from `first_register` on, of a function or of a PF's VFs.
void add_bars(ConfigSpace& config, std::uint32_t first_register, std::span<const BarSpec> bars);
[[nodiscard]] std::uint64_t bar_address(const ConfigSpace& config, std::uint32_t first_register,
                                        const BarSpec& bar);

/// Builds everything that the spec contains; the result is sealed as the state after power-on.
void build_config(ConfigSpace& config, const FunctionSpec& spec);

}  // namespace vgpu::softgpu::pci
