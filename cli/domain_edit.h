// SPDX-License-Identifier: MIT
//
// Adds VFs to the XML of a libvirt domain (`vgpuctl attach-xml`). Writes the requested VFs
// (metadata), and the elements by which QEMU reaches them. For VFs of softgpu these elements are
// shared memory, a vfio-user-pci device per VF on a path that does not depend on the VF, a block
// node that blocks migration, and a port for the agent; for a PCI function of this host, a
// <hostdev>. Other elements stay.
#pragma once

#include "cli/domain_xml.h"

#include <optional>
#include <string>
#include <vector>

namespace vgpu::cli {

/// As libvirt's <address>.
struct PciAddress {
    std::uint32_t domain = 0, bus = 0, slot = 0, function = 0;

    bool operator==(const PciAddress&) const = default;
};

/// Parses "0000:03:00.1". None unless all parts are hexadecimal; ranges are not checked.
[[nodiscard]] std::optional<PciAddress> parse_pci_address(const std::string& text);

struct AttachedVf {
    VfSelector selector;
    std::optional<PciAddress> host_device;  ///< a PCI function of this host; none: vfio-user
    /// True if vgpud binds the function to its driver, so that libvirt must not (managed='no').
    bool is_bound = false;
};

/// Path of a file that belongs to VF `n` of the domain, counted from 0: its socket, or its file
/// with the suffix `what`. vgpud creates the files when libvirt prepares the domain, so the XML
/// does not depend on the chosen VF.
[[nodiscard]] std::string vm_path(const std::string& run_dir, const std::string& uuid,
                                  std::size_t n, const std::string& what = "sock");

/// Returns `xml` with exactly `vfs`. Adds a UUID if there is none. First removes our earlier
/// elements (by namespace, ids, aliases, paths). Never ends the sharing of memory, because the
/// administrator may have requested it. XmlError, also for an invalid UUID or if no slot is free.
[[nodiscard]] std::string with_vfs(const std::string& xml, const std::vector<AttachedVf>& vfs,
                                   const std::string& run_dir);

}  // namespace vgpu::cli
