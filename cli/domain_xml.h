// SPDX-License-Identifier: MIT
//
// Reads from the XML of a libvirt domain which VFs the domain requests, and other facts for the
// hook. A request is an element of kDomainNamespace in <metadata> (schemas/vgpu-domain.rng). Pure,
// except ids_of_label().
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

/// Name of the block node that attach-xml adds. QEMU prints this name when it refuses to save the
/// VM. QEMU allows at most 31 characters.
inline constexpr const char* kMigrationBlocker = "vgpu-vf-is-never-saved";
/// Start of the aliases that attach-xml gives to host devices; a number follows. libvirt requires
/// that users' aliases begin with "ua-".
inline constexpr const char* kHostDeviceAlias = "ua-vgpu";

/// One VF that a domain requests: {"name", name of the VF} or {"profile", name of a profile}. The
/// VF or profile need not exist.
using VfSelector = std::pair<std::string, std::string>;

/// Facts in the XML of a domain.
struct DomainFacts {
    std::string name;
    std::string uuid;             ///< empty if the XML has no UUID
    std::vector<VfSelector> vfs;  ///< requested VFs, in the order of the XML
    /// User and group of QEMU's process, as "+64055:+64055", while the domain runs; else empty.
    std::string dac_label;
    /// PCI functions of this host in <hostdev>, as "0000:03:00.1".
    std::vector<std::string> functions{};
};

/// True if the domain may have VFs: `xml` contains a text that attach-xml writes. Does not parse,
/// because the hook checks every VM and must be fast. The namespace alone is not enough, because
/// metadata can be removed from a running domain.
[[nodiscard]] bool mentions_vfs(std::string_view xml);

/// True if the domain may have PCI functions of this host: `xml` contains "<hostdev".
[[nodiscard]] bool mentions_functions(std::string_view xml);

/// The root element of the XML of a domain. Throws XmlError if it is not a <domain>, or if an
/// element that is read or edited, such as <metadata>, occurs twice.
[[nodiscard]] xmlNode* domain_of(const XmlDocument& document);

/// Reads a domain. Throws XmlError with the line, also for an unknown element of kDomainNamespace,
/// so that a VM does not start without the VF that a misspelt element requests.
[[nodiscard]] DomainFacts read_domain(const std::string& xml);
[[nodiscard]] DomainFacts read_domain(const XmlDocument& document);
/// Reads only name and UUID; the other facts are empty. Throws XmlError.
[[nodiscard]] DomainFacts read_identity(const std::string& xml);

/// True if a VF or profile can have the selector's value as its name. A VF's name has 1 to 63
/// characters (letters, digits, '-', '_', '.'), begins with a letter, and is not a UUID. A
/// profile's name has 1 to 62 of these characters, and begins with a letter or digit.
[[nodiscard]] bool is_valid_selector(const VfSelector& selector);

/// uid and gid of a label "+UID:+GID", "UID:GID" or "USER:GROUP"; none for other labels and unknown
/// names. May block on a directory service.
[[nodiscard]] std::optional<std::pair<std::uint32_t, std::uint32_t>> ids_of_label(
    const std::string& dac_label);

}  // namespace vgpu::cli
