// SPDX-License-Identifier: MIT
//
// PCI functions of a host as far as sharing a GPU depends on them, read through libpci: from the
// machine's sysfs, or from a dump in the format of `lspci -xxxx` (tests, bug reports of others).
// Used by the host collector.
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
    bool has_vf_bars = false;           ///< there is a VF BAR at all
    bool has_vf_bars_assigned = false;  ///< every one of them has an address
    bool is_ari_hierarchy = false;      ///< the PF may use function numbers above 7
};

/// Numbers as the configuration space has them. Optional members that are nothing were looked for
/// and are not there; without has_extended_config they could not be looked for.
struct PciFunction {
    std::string address;  ///< "0000:03:00.0"
    unsigned domain = 0, bus = 0, device = 0, function = 0;
    unsigned vendor_id = 0, device_id = 0;
    unsigned class_code = 0;  ///< class and subclass, 0x0380
    bool is_vf = false;       ///< of a PF of this host; known to sysfs alone
    bool is_bridge = false;
    unsigned secondary_bus = 0;        ///< of a bridge
    bool has_extended_config = false;  ///< false: reading it wants root
    std::optional<SriovFacts> sriov{};
    bool has_ari = false;                     ///< of an endpoint
    std::optional<bool> is_forwarding_ari{};  ///< of a port: nothing if it cannot
    std::optional<unsigned> acs_control{};    ///< nothing if there is no ACS
};

inline constexpr unsigned kAmd = 0x1002;

/// A display controller or processing accelerator of AMD; VFs are, too.
[[nodiscard]] bool is_amd_gpu(const PciFunction& function);

/// The bridge or port right above `function`; null if there is none (root complex).
/// Points into `all`.
[[nodiscard]] const PciFunction* port_above(const std::vector<PciFunction>& all,
                                            const PciFunction& function);

/// What was read, or why it could not be.
struct PciReading {
    std::vector<PciFunction> functions;
    std::string trouble;  ///< empty: none
};

/// `dump_file`: a dump of lspci -xxxx in place of this machine.
/// Sorted by address, `is_vf` not filled in. All or nothing: with a `trouble` there are no
/// functions.
[[nodiscard]] PciReading read_pci(const std::optional<std::string>& dump_file = {});

}  // namespace vgpu::cli
