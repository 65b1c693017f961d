// SPDX-License-Identifier: MIT
//
// What a libvirt domain says about VFs: the elements of our namespace in its <metadata>
// (schemas/vgpu-domain.rng), and what a hook needs besides. Pure; used by the hook and attach-xml.
#pragma once

#include "cli/xml_document.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vgpu::cli {

/// Of <vgpu:vf> and <vgpu:vfs>; libvirt keeps one element of a namespace in <metadata>.
inline constexpr const char* kDomainNamespace = "urn:vgpu:libvirt:1";

/// Of what attach-xml writes besides, two names that nobody else uses.
/// The block node: QEMU's refusal to save or migrate names it; 31 characters at most.
inline constexpr const char* kNeverSaved = "vgpu-vf-is-never-saved";
/// Host devices; libvirt's aliases of users begin with "ua-".
inline constexpr const char* kHostDeviceAlias = "ua-vgpu";

/// "name" or "profile", and which.
/// A value has 1 to 63 bytes; vgpud, not this, knows whether there is such a VF or profile.
using WantedVf = std::pair<std::string, std::string>;

/// What the hook must know of a domain; everything else in it is libvirt's business.
struct DomainFacts {
    std::string name;
    std::string uuid;           ///< empty: the domain is not defined yet
    std::vector<WantedVf> vfs;  ///< in their order; empty: it wants none
    std::string dac_label;      ///< "+64055:+64055" of a running one; empty: none
};

/// False only if the domain has nothing to do with us. Quick: it is asked for every VM of the host.
/// Looks for names alone, without parsing: a comment is enough to be mentioned. Besides the
/// namespace, which may be taken out of a running domain, for what attach-xml writes elsewhere.
[[nodiscard]] bool mentions_vfs(std::string_view xml);

/// Throws XmlError with what is wrong and the line.
/// An element of our namespace that the schema does not have is refused, not ignored: a VM must
/// not start without the VF that a misspelt element was meant to ask for.
[[nodiscard]] DomainFacts read_domain(const std::string& xml);
[[nodiscard]] DomainFacts read_domain(const XmlDocument& document);
/// Name and UUID alone, whatever the metadata says. Throws XmlError.
[[nodiscard]] DomainFacts read_identity(const std::string& xml);

/// False for what no VF or profile can be called, as the schema and vgpud have it.
/// Names: 1 to 63 letters, digits, '-', '_', '.', first a letter, and no UUID; profiles may begin
/// with a digit and have 62 at most.
[[nodiscard]] bool can_be_wanted(const WantedVf& wanted);

/// uid and gid of "+N:+N", "N:N" or names; nothing if there are no such.
/// Names are looked up in the host's user and group databases, which may block on a directory
/// service; numbers are not.
[[nodiscard]] std::optional<std::pair<std::uint32_t, std::uint32_t>> ids_of_label(
    const std::string& dac_label);

}  // namespace vgpu::cli
