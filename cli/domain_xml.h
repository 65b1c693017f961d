// SPDX-License-Identifier: MIT
//
// Reads the VFs that a libvirt domain requests, from our namespace in <metadata>
// (schemas/vgpu-domain.rng), and other facts for hooks. Pure, except ids_of_label().
#pragma once

#include "cli/xml_document.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vgpu::cli {

/// Namespace of <vgpu:vf> and <vgpu:vfs>. libvirt keeps one element per namespace.
inline constexpr const char* kDomainNamespace = "urn:vgpu:libvirt:1";

/// Name of the block node that attach-xml adds. QEMU prints it when it refuses to save the VM. At
/// most 31 characters. Only attach-xml writes this name and kHostDeviceAlias.
inline constexpr const char* kMigrationBlocker = "vgpu-vf-is-never-saved";
/// Alias of host devices. libvirt requires that users' aliases begin with "ua-".
inline constexpr const char* kHostDeviceAlias = "ua-vgpu";

/// "name" or "profile", and a value of 1 to 63 bytes. The VF or profile need not exist.
using VfSelector = std::pair<std::string, std::string>;

struct DomainFacts {
    std::string name;
    std::string uuid;             ///< empty: the domain is not defined yet
    std::vector<VfSelector> vfs;  ///< in order; may be empty
    std::string dac_label;        ///< "+64055:+64055" while the domain runs; else empty
    /// PCI functions of this host in <hostdev>, as "0000:03:00.1".
    std::vector<std::string> functions{};
};

/// False only if the domain certainly has no VFs. Fast, because it is called for every VM. Searches
/// the text for the namespace and for names that attach-xml writes elsewhere, because metadata can
/// be removed from a running domain.
[[nodiscard]] bool mentions_vfs(std::string_view xml);

/// True if the domain may have PCI functions of this host.
[[nodiscard]] bool mentions_functions(std::string_view xml);

/// Reads a domain. XmlError with the line. Refuses unknown elements of our namespace, so that a VM
/// does not start without the VF that a misspelt element requests.
[[nodiscard]] DomainFacts read_domain(const std::string& xml);
[[nodiscard]] DomainFacts read_domain(const XmlDocument& document);
/// Reads only name and UUID. XmlError.
[[nodiscard]] DomainFacts read_identity(const std::string& xml);

/// True if a VF or profile can have this name. VFs: 1 to 63 letters, digits, '-', '_', '.'; the
/// first is a letter; not a UUID. Profiles: may begin with a digit; at most 62.
[[nodiscard]] bool is_valid_selector(const VfSelector& selector);

/// uid and gid of "+N:+N", "N:N" or names; none if unknown. May block on a directory service.
[[nodiscard]] std::optional<std::pair<std::uint32_t, std::uint32_t>> ids_of_label(
    const std::string& dac_label);

}  // namespace vgpu::cli
