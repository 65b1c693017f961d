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

/// Of <vgpu:vf> and <vgpu:vfs>; libvirt keeps one element per namespace.
inline constexpr const char* kDomainNamespace = "urn:vgpu:libvirt:1";

/// Names of attach-xml that no other program uses. The block node that QEMU names when it refuses
/// to save; at most 31 characters.
inline constexpr const char* kNeverSaved = "vgpu-vf-is-never-saved";
/// libvirt's user aliases begin with "ua-".
inline constexpr const char* kHostDeviceAlias = "ua-vgpu";

/// "name" or "profile", and a value of 1 to 63 bytes, which may not exist.
using WantedVf = std::pair<std::string, std::string>;

struct DomainFacts {
    std::string name;
    std::string uuid;           ///< empty: the domain is not defined yet
    std::vector<WantedVf> vfs;  ///< in order; may be empty
    std::string dac_label;      ///< "+64055:+64055" while the domain runs; else empty
};

/// False only if the domain has nothing to do with VFs. Fast, because it is called for every VM:
/// searches the text for the namespace and for names that attach-xml writes elsewhere, because
/// metadata can be removed from a running domain.
[[nodiscard]] bool mentions_vfs(std::string_view xml);

/// XmlError with the line. Refuses unknown elements of our namespace: a VM must not start without
/// the VF that a misspelt element requests.
[[nodiscard]] DomainFacts read_domain(const std::string& xml);
[[nodiscard]] DomainFacts read_domain(const XmlDocument& document);
/// Name and UUID only. XmlError.
[[nodiscard]] DomainFacts read_identity(const std::string& xml);

/// Whether a VF or profile can have this name: 1 to 63 letters, digits, '-', '_', '.', first a
/// letter, no UUID; profiles may begin with a digit and have at most 62.
[[nodiscard]] bool can_be_wanted(const WantedVf& wanted);

/// uid and gid of "+N:+N", "N:N" or names; none if unknown. May block on a directory service.
[[nodiscard]] std::optional<std::pair<std::uint32_t, std::uint32_t>> ids_of_label(
    const std::string& dac_label);

}  // namespace vgpu::cli
