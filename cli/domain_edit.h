// SPDX-License-Identifier: MIT
//
// Adds VFs to the XML of a libvirt domain, for `vgpuctl attach-xml`. It writes which VFs the domain
// requests (metadata), and how QEMU reaches them: shared memory, a vfio-user-pci device per VF on a
// path that does not depend on the VF, and a port for the agent; or a hostdev if the VF is a PCI
// function of this host. A second edit changes nothing; the rest of the XML stays. Pure.
#pragma once

#include "cli/domain_xml.h"

#include <optional>
#include <string>
#include <vector>

namespace vgpu::cli {

/// Address of a function of this host, as in libvirt's element <address>.
struct PciAddress {
    std::uint32_t domain = 0, bus = 0, slot = 0, function = 0;

    bool operator==(const PciAddress&) const = default;
};

/// "0000:03:00.1"
/// Empty unless all four parts are present and hexadecimal; ranges are not checked.
[[nodiscard]] std::optional<PciAddress> parse_pci_address(const std::string& text);

/// A VF and how the domain reaches it.
struct AttachedVf {
    WantedVf wanted;
    std::optional<PciAddress> host_device;  ///< a PCI function of this host; empty: vfio-user
};

/// Path of the socket of a domain's N-th VF, or of another file `what` of that VF.
/// vgpud makes these files when the domain is prepared, so that the XML does not depend on which VF
/// a profile gives it.
[[nodiscard]] std::string vm_path(const std::string& run_dir, const std::string& uuid,
                                  std::size_t n, const std::string& what = "sock");

/// `xml` with exactly `vfs`. A domain without a UUID gets one. Throws XmlError.
/// Removes earlier elements of ours first, found by our namespace, ids, aliases and paths. Shared
/// memory stays shared without VFs, since the administrator may want it. Also throws if the UUID is
/// invalid, or if no slot of the root bus is free for a device.
[[nodiscard]] std::string with_vfs(const std::string& xml, const std::vector<AttachedVf>& vfs,
                                   const std::string& run_dir);

}  // namespace vgpu::cli
