// SPDX-License-Identifier: MIT
//
// Facts of PCI functions that matter for sharing a GPU, from libpci: the machine's sysfs, or a dump
// of `lspci -xxxx`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::cli {

/// SR-IOV Extended Capability of a PF. Offset and stride count routing ids.
struct SriovFacts {
    unsigned total_vfs = 0;
    unsigned enabled_vfs = 0;
    unsigned first_vf_offset = 0;
    unsigned vf_stride = 0;
    bool has_vf_bars = false;           ///< true if there is a VF BAR
    bool has_vf_bars_assigned = false;  ///< true if every VF BAR has an address
    bool is_ari_hierarchy = false;      ///< true if VFs may have function numbers above 7
};

/// One PCI function. An empty optional means that the capability does not exist, or is not readable
/// (has_extended_config).
struct PciFunction {
    std::string address;  ///< "0000:03:00.0"
    unsigned domain = 0, bus = 0, device = 0, function = 0;
    unsigned vendor_id = 0, device_id = 0;
    unsigned class_code = 0;  ///< class and subclass, 0x0380
    bool is_vf = false;       ///< true for a VF of a PF of this host; only sysfs knows that
    bool is_bridge = false;
    unsigned secondary_bus = 0;        ///< of a bridge
    bool has_extended_config = false;  ///< true if readable (bytes from 0x100 on), as root
    std::optional<SriovFacts> sriov{};
    bool has_ari = false;  ///< of an endpoint: true if it has Alternative Routing-ID Interpretation
    std::optional<bool> is_forwarding_ari{};  ///< of a port; none if it cannot forward ARI
    std::optional<unsigned> acs_control{};    ///< none without Access Control Services
};

inline constexpr unsigned kAmd = 0x1002;

/// True if a function is an AMD display controller or accelerator; true for VFs as well.
[[nodiscard]] bool is_amd_gpu(const PciFunction& function);

/// True if a function is a display controller or accelerator of any vendor.
[[nodiscard]] bool is_gpu(const PciFunction& function);

/// The port directly above, in `all`; null at the root complex.
[[nodiscard]] const PciFunction* port_above(const std::vector<PciFunction>& all,
                                            const PciFunction& function);

struct PciReading {
    std::vector<PciFunction> functions;
    std::string error;  ///< error text, or empty
};

/// Reads all functions, sorted. `dump_file`: an lspci -xxxx dump instead of this machine. Does not
/// fill in `is_vf`.
[[nodiscard]] PciReading read_pci(const std::optional<std::string>& dump_file = {});

}  // namespace vgpu::cli
