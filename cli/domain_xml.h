// SPDX-License-Identifier: MIT
//
// Reads which VFs a libvirt domain requests: the elements of our namespace in its <metadata>
// (schemas/vgpu-domain.rng). Also reads the other facts that a hook needs. Pure, except
// ids_of_label(); used by the hook and attach-xml.
#pragma once

#include "cli/xml_document.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vgpu::cli {

/// Namespace of <vgpu:vf> and <vgpu:vfs>; libvirt keeps one element per namespace in <metadata>.
inline constexpr const char* kDomainNamespace = "urn:vgpu:libvirt:1";

/// Two names that attach-xml writes elsewhere and that no other program uses.
/// The block node: QEMU's refusal to save or migrate names it; 31 characters at most.
inline constexpr const char* kNeverSaved = "vgpu-vf-is-never-saved";
/// Host devices; libvirt's aliases of users begin with "ua-".
inline constexpr const char* kHostDeviceAlias = "ua-vgpu";

/// "name" or "profile", and its value.
/// A value has 1 to 63 bytes; only vgpud knows whether that VF or profile exists.
using WantedVf = std::pair<std::string, std::string>;

/// The facts about a domain that the hook needs.
struct DomainFacts {
    std::string name;
    std::string uuid;           ///< empty: the domain is not defined yet
    std::vector<WantedVf> vfs;  ///< in their order; empty: it requests none
    std::string dac_label;      ///< "+64055:+64055" if the domain runs; else empty
};

/// False only if the domain has nothing to do with VFs. Fast, since it is called for every VM of
/// the host: it searches for names without parsing, so a name in a comment counts. It searches for
/// the namespace and, since that can be removed from a running domain, for the names that
/// attach-xml writes elsewhere.
[[nodiscard]] bool mentions_vfs(std::string_view xml);

/// Throws XmlError with the mistake and its line.
/// Refuses an unknown element of our namespace: a VM must not start without the VF that a misspelt
/// element was meant to request.
[[nodiscard]] DomainFacts read_domain(const std::string& xml);
[[nodiscard]] DomainFacts read_domain(const XmlDocument& document);
/// Only name and UUID; ignores the metadata. Throws XmlError.
[[nodiscard]] DomainFacts read_identity(const std::string& xml);

/// False if no VF or profile can have this name, by the rules of the schema and of vgpud.
/// Names: 1 to 63 letters, digits, '-', '_', '.', first a letter, and not a UUID; profiles may
/// begin with a digit and have at most 62.
[[nodiscard]] bool can_be_wanted(const WantedVf& wanted);

/// uid and gid of "+N:+N", "N:N" or names; empty if they do not exist.
/// Looks up names in the host's user and group databases, which may block on a directory service.
[[nodiscard]] std::optional<std::pair<std::uint32_t, std::uint32_t>> ids_of_label(
    const std::string& dac_label);

}  // namespace vgpu::cli
