// SPDX-License-Identifier: MIT
//
// The facts of PCI functions that decide whether a GPU can be shared. libpci reads them from the
// machine's sysfs, or from a dump of `lspci -xxxx`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::cli {

/// The SR-IOV Extended Capability of a PF. Routing id of VF n (from 1), relative to that of the PF:
/// first_vf_offset + (n - 1) * vf_stride.
struct SriovFacts {
    unsigned total_vfs = 0;
    unsigned enabled_vfs = 0;
    unsigned first_vf_offset = 0;
    unsigned vf_stride = 0;
    bool has_vf_bars = false;           ///< true if there is a VF BAR
    bool has_vf_bars_assigned = false;  ///< true if every VF BAR has an address
    bool is_ari_hierarchy = false;      ///< "ARI Capable Hierarchy": VFs may be functions above 7
};

/// One PCI function. An empty optional means that the capability does not exist, or that it is
/// unreadable because has_extended_config is false.
struct PciFunction {
    std::string address;  ///< "0000:03:00.0"
    unsigned domain = 0, bus = 0, device = 0, function = 0;
    unsigned vendor_id = 0, device_id = 0;
    unsigned class_code = 0;  ///< class and subclass, such as 0x0380
    bool is_vf = false;       ///< true if the function is a VF of this host; HostCollector sets it
    bool is_bridge = false;
    unsigned secondary_bus = 0;        ///< of a bridge: the bus below it; 0 for other functions
    bool has_extended_config = false;  ///< true if bytes from 0x100 on are readable, as for root
    std::optional<SriovFacts> sriov{};
    bool has_ari = false;  ///< true for an endpoint with Alternative Routing-ID Interpretation
    /// Of a bridge: true if ARI forwarding is enabled; none if the bridge does not support it.
    std::optional<bool> is_forwarding_ari{};
    std::optional<unsigned> acs_control{};  ///< ACS Control Register; none without ACS
};

inline constexpr unsigned kAmd = 0x1002;  ///< vendor_id of AMD

/// True if a function is an AMD display controller or accelerator; true for VFs as well.
[[nodiscard]] bool is_amd_gpu(const PciFunction& function);

/// True if a function is a display controller or accelerator of any vendor.
[[nodiscard]] bool is_gpu(const PciFunction& function);

/// The bridge in `all` whose secondary bus has `function`; null if there is none, because the
/// function is in the root complex.
[[nodiscard]] const PciFunction* port_above(const std::vector<PciFunction>& all,
                                            const PciFunction& function);

/// Result of read_pci().
struct PciReading {
    std::vector<PciFunction> functions;
    std::string error;  ///< error text, or empty
};

/// Reads all functions, sorted by address. `dump_file`: an lspci -xxxx dump to read instead of this
/// machine. After an error, `functions` is empty. Leaves `is_vf` false.
[[nodiscard]] PciReading read_pci(const std::optional<std::string>& dump_file = {});

}  // namespace vgpu::cli
