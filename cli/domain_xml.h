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

/// "name" or "profile", and which.
using WantedVf = std::pair<std::string, std::string>;

struct DomainFacts {
    std::string name;
    std::string uuid;           ///< empty: the domain is not defined yet
    std::vector<WantedVf> vfs;  ///< in their order; empty: it wants none
    std::string dac_label;      ///< "+64055:+64055" of a running one; empty: none
};

/// False only if the domain has nothing to do with us. Quick: it is asked for every VM of the host.
[[nodiscard]] bool mentions_vfs(std::string_view xml);

/// Throws XmlError with what is wrong and the line.
[[nodiscard]] DomainFacts read_domain(const std::string& xml);
[[nodiscard]] DomainFacts read_domain(const XmlDocument& document);

/// uid and gid of "+N:+N", "N:N" or names; nothing if there are no such.
[[nodiscard]] std::optional<std::pair<std::uint32_t, std::uint32_t>> ids_of_label(
    const std::string& dac_label);

}  // namespace vgpu::cli
