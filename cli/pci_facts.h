// SPDX-License-Identifier: MIT
//
// The facts about a host's PCI functions on which sharing a GPU depends. They are read through
// libpci, from the machine's sysfs or from a dump in the format of `lspci -xxxx` (tests, bug
// reports). Used by the host collector.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::cli {

/// The SR-IOV capability of a PF.
/// Offset and stride count routing ids; PCIe Base Specification, SR-IOV Extended Capability.
struct SriovFacts {
    unsigned total_vfs = 0;
    unsigned enabled_vfs = 0;
    unsigned first_vf_offset = 0;
    unsigned vf_stride = 0;
    bool has_vf_bars = false;           ///< at least one VF BAR exists
    bool has_vf_bars_assigned = false;  ///< every VF BAR has an address
    bool is_ari_hierarchy = false;      ///< the PF may use function numbers above 7
};

/// Numbers as in the configuration space. An empty optional member means that the capability does
/// not exist or, without has_extended_config, could not be read.
struct PciFunction {
    std::string address;  ///< "0000:03:00.0"
    unsigned domain = 0, bus = 0, device = 0, function = 0;
    unsigned vendor_id = 0, device_id = 0;
    unsigned class_code = 0;  ///< class and subclass, 0x0380
    bool is_vf = false;       ///< of a PF of this host; only sysfs knows
    bool is_bridge = false;
    unsigned secondary_bus = 0;        ///< of a bridge
    bool has_extended_config = false;  ///< false: reading it requires root
    std::optional<SriovFacts> sriov{};
    bool has_ari = false;                     ///< of an endpoint
    std::optional<bool> is_forwarding_ari{};  ///< of a port; empty if it cannot
    std::optional<unsigned> acs_control{};    ///< empty if there is no ACS
};

inline constexpr unsigned kAmd = 0x1002;

/// True for a display controller or processing accelerator of AMD, including VFs.
[[nodiscard]] bool is_amd_gpu(const PciFunction& function);

/// The bridge or port directly above `function`; null if none (root complex).
/// Points into `all`.
[[nodiscard]] const PciFunction* port_above(const std::vector<PciFunction>& all,
                                            const PciFunction& function);

/// The functions, or why they could not be read.
struct PciReading {
    std::vector<PciFunction> functions;
    std::string trouble;  ///< error text; empty if none
};

/// `dump_file`: a dump of lspci -xxxx in place of this machine.
/// Sorted by address; `is_vf` is not filled in. With a `trouble` there are no functions.
[[nodiscard]] PciReading read_pci(const std::optional<std::string>& dump_file = {});

}  // namespace vgpu::cli
