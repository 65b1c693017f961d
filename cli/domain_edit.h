// SPDX-License-Identifier: MIT
//
// A libvirt domain with VFs in it: what `vgpuctl attach-xml` writes. Says what the domain wants
// (metadata), and how QEMU reaches it: memory that the device can share, a vfio-user-pci device per
// VF on a path that does not depend on which VF it is, a port for the agent; or a hostdev, where
// the VF is a PCI function of this host. Editing twice is editing once; the rest stays as it is.
// Pure.
#pragma once

#include "cli/domain_xml.h"

#include <optional>
#include <string>
#include <vector>

namespace vgpu::cli {

/// Of a function of this host, as <address> in libvirt's XML has it.
struct PciAddress {
    std::uint32_t domain = 0, bus = 0, slot = 0, function = 0;

    bool operator==(const PciAddress&) const = default;
};

/// "0000:03:00.1"
/// Nothing unless all four parts are there and hexadecimal; ranges are not checked.
[[nodiscard]] std::optional<PciAddress> parse_pci_address(const std::string& text);

/// A VF with the way in which the domain reaches it.
struct AttachedVf {
    WantedVf wanted;
    std::optional<PciAddress> host_device;  ///< a PCI function of this host; none: vfio-user
};

/// Where a domain finds the socket of its N-th VF, or `what` there is besides.
/// vgpud makes all that when the domain is prepared, so that the XML stays the same whichever VF a
/// profile gives it.
[[nodiscard]] std::string vm_path(const std::string& run_dir, const std::string& uuid,
                                  std::size_t n, const std::string& what = "sock");

/// `xml` with exactly `vfs`. A domain without a UUID gets one. Throws XmlError.
/// What was ours before is removed first, known by our namespace, ids, aliases and paths; memory
/// that is shared stays so without VFs, since it may be the administrator's wish. Also throws if
/// its UUID is none, or no slot of the root bus is free for a device.
[[nodiscard]] std::string with_vfs(const std::string& xml, const std::vector<AttachedVf>& vfs,
                                   const std::string& run_dir);

}  // namespace vgpu::cli
