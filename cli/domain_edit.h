// SPDX-License-Identifier: MIT
//
// Adds VFs to the XML of a libvirt domain (`vgpuctl attach-xml`): the requested VFs (metadata), and
// how QEMU reaches them: shared memory, a vfio-user-pci device per VF on a path independent of the
// VF, a port for the agent; or a hostdev for a PCI function of this host. Keeps the rest.
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

/// "0000:03:00.1"; none unless all parts are hexadecimal; ranges are not checked.
[[nodiscard]] std::optional<PciAddress> parse_pci_address(const std::string& text);

struct AttachedVf {
    WantedVf wanted;
    std::optional<PciAddress> host_device;  ///< a PCI function of this host; none: vfio-user
};

/// Path of a domain's N-th VF's socket, or other file `what`. vgpud makes the files when the domain
/// is prepared, so the XML does not depend on the chosen VF.
[[nodiscard]] std::string vm_path(const std::string& run_dir, const std::string& uuid,
                                  std::size_t n, const std::string& what = "sock");

/// `xml` with exactly `vfs`. Adds a UUID if there is none. First removes earlier elements of ours
/// (namespace, ids, aliases, paths). Keeps memory shared, because the administrator may want that.
/// XmlError, also for an invalid UUID or no free slot.
[[nodiscard]] std::string with_vfs(const std::string& xml, const std::vector<AttachedVf>& vfs,
                                   const std::string& run_dir);

}  // namespace vgpu::cli
