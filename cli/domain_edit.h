// SPDX-License-Identifier: MIT
//
// Adds VFs to the XML of a libvirt domain (`vgpuctl attach-xml`). Writes the requested VFs into the
// metadata, and the elements by which QEMU reaches the VFs:
//   - for VFs of softgpu: shared memory, a vfio-user-pci device for each VF, a block node that
//     blocks migration, and a port for the agent;
//   - for a VF that is a PCI function of this host: a <hostdev>.
// Keeps all other elements.
#pragma once

#include "cli/domain_xml.h"

#include <optional>
#include <string>
#include <vector>

namespace vgpu::cli {

/// A PCI address, in the parts of libvirt's <address>. `slot`: the device number.
struct PciAddress {
    std::uint32_t domain = 0, bus = 0, slot = 0, function = 0;

    bool operator==(const PciAddress&) const = default;
};

/// Parses "0000:03:00.1". None unless all four parts are hexadecimal. Does not check ranges.
[[nodiscard]] std::optional<PciAddress> parse_pci_address(const std::string& text);

/// A VF to add to a domain.
struct AttachedVf {
    VfSelector selector;
    std::optional<PciAddress> host_device;  ///< the VF's PCI function; none for a VF of softgpu
    /// True if vgpud binds the function to vfio-pci. libvirt must then not bind the function
    /// (managed='no').
    bool is_bound = false;
};

/// RUN_DIR/vm/UUID/N.WHAT: the path of a file for VF `n` (from 0) of the domain with this UUID.
/// With the `what` "sock", the file is the VF's socket. The path does not name the GPU or its VF,
/// because vgpud chooses the VF, and creates the file, only when libvirt prepares the domain.
[[nodiscard]] std::string vm_path(const std::string& run_dir, const std::string& uuid,
                                  std::size_t n, const std::string& what = "sock");

/// Returns the domain `xml` with `vfs` as its only VFs. Adds a UUID if the domain has none. Removes
/// the elements that attach-xml wrote earlier (recognised by namespaces, ids, aliases and paths),
/// except shared memory, which the administrator may have requested. Throws XmlError for bad XML,
/// for an invalid UUID, or if no PCI slot is free.
[[nodiscard]] std::string with_vfs(const std::string& xml, const std::vector<AttachedVf>& vfs,
                                   const std::string& run_dir);

}  // namespace vgpu::cli
