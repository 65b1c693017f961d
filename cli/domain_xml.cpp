// SPDX-License-Identifier: MIT
#include "cli/domain_xml.h"

#include "text/number.h"
#include "text/uuid.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

namespace vgpu::cli {

namespace {

/// Every domain to which attach-xml added a VF contains at least one of these texts. The last text
/// is the start of paths in vgpud's default run_dir.
constexpr std::array<std::string_view, 4> kMentions{kDomainNamespace, kMigrationBlocker,
                                                    kHostDeviceAlias, "/run/vgpu/vm/"};

/// Children of <domain> that this file reads or domain_edit.cpp edits, and that a domain has at
/// most once. If an element occurs twice, libvirt uses the first or both, depending on the element,
/// so domain_of() refuses the second.
constexpr std::array<const char*, 6> kSingleChildren{"name",          "uuid", "metadata",
                                                     "memoryBacking", "os",   "devices"};

/// The most bytes that vgpud allows in the value of a selector.
std::size_t longest_value(std::string_view attribute) {
    constexpr std::size_t kName = 63, kProfile = 62;
    return attribute == "name" ? kName : kProfile;
}

/// Throws XmlError with the number of the node's line. In a hook, this is a line of the XML that
/// libvirt passes, not of the user's file.
[[noreturn]] void refuse(const xmlNode* node, const std::string& why) {
    throw XmlError(fmt::format("line {}: {}", xmlGetLineNo(node), why));
}

/// Reads <vgpu:vf> (schemas/vgpu-domain.rng). Throws XmlError, which says how to correct the
/// element.
VfSelector vf_selector(const xmlNode* node) {
    const auto attributes = attributes_of(node);
    const bool has_one_selector =
        attributes.size() == 1 && (attributes.front() == "name" || attributes.front() == "profile");
    if (!has_one_selector)
        refuse(node,
               fmt::format("<vgpu:vf> has the attributes [{}]; it needs name='…' or profile='…'",
                           fmt::join(attributes, ", ")));
    const std::string value = attribute_of(node, attributes.front());
    const std::size_t longest = longest_value(attributes.front());
    if (value.empty() || value.size() > longest)
        refuse(node, fmt::format("the {} in <vgpu:vf> has {} bytes; 1 to {} are allowed",
                                 attributes.front(), value.size(), longest));
    return {attributes.front(), value};
}

/// Reads the requested VFs. Ignores elements of other namespaces in <metadata>, but refuses them
/// inside <vgpu:vfs>.
std::vector<VfSelector> selected_vfs(const xmlNode* metadata) {
    std::vector<VfSelector> selectors;
    for (const xmlNode* node : children_of(metadata)) {
        if (namespace_of(node) != kDomainNamespace) continue;
        if (name_of(node) == "vf") {
            selectors.push_back(vf_selector(node));
            continue;
        }
        if (name_of(node) != "vfs")
            refuse(node,
                   fmt::format(
                       "there is no element <vgpu:{}>; use <vgpu:vf>, or <vgpu:vfs> around several",
                       name_of(node)));
        for (const xmlNode* one : children_of(node)) {
            if (namespace_of(one) != kDomainNamespace || name_of(one) != "vf")
                refuse(one, fmt::format("<{}> in <vgpu:vfs>; only <vgpu:vf> is allowed there",
                                        name_of(one)));
            selectors.push_back(vf_selector(one));
        }
    }
    return selectors;
}

DomainFacts identity_of(const xmlNode* domain) {
    return {.name = content_of(child_of(domain, "name")),
            .uuid = content_of(child_of(domain, "uuid")),
            .vfs = {},
            .dac_label = "",
            .functions = {}};
}

/// The label of QEMU's process ("+UID:+GID"), which libvirt writes when the domain starts; "" if
/// there is none.
std::string dac_label_of(const xmlNode* domain) {
    for (const xmlNode* label : children_of(domain, "seclabel"))
        if (attribute_of(label, "model") == "dac") return content_of(child_of(label, "label"));
    return "";
}

/// The number in attribute `name` of libvirt's <address>, such as "0x03"; 0 if the attribute is
/// absent.
std::uint32_t address_part(const xmlNode* address, const char* name) {
    constexpr int kAnyBase = 0;
    return static_cast<std::uint32_t>(
        std::strtoul(attribute_of(address, name).c_str(), nullptr, kAnyBase));
}

/// The PCI functions of this host that the domain gets, as "0000:03:00.1".
std::vector<std::string> functions_of(const xmlNode* devices) {
    std::vector<std::string> functions;
    for (const xmlNode* device : children_of(devices, "hostdev")) {
        if (attribute_of(device, "type") != "pci") continue;
        const xmlNode* address = child_of(child_of(device, "source"), "address");
        if (address == nullptr) continue;
        functions.push_back(fmt::format("{:04x}:{:02x}:{:02x}.{:x}",
                                        address_part(address, "domain"),
                                        address_part(address, "bus"), address_part(address, "slot"),
                                        address_part(address, "function")));
    }
    return functions;
}

/// The number in "+1000" or "1000"; none for a name. libvirt writes '+' before a number, because a
/// user may be called "1000".
std::optional<std::uint32_t> parse_id(std::string_view text) {
    if (text.starts_with('+')) text.remove_prefix(1);
    return text::number_in<std::uint32_t>(text);
}

}  // namespace

xmlNode* domain_of(const XmlDocument& document) {
    xmlNode* domain = document.root();
    if (name_of(domain) != "domain")
        refuse(domain, fmt::format("<{}> is not a <domain>", name_of(domain)));
    for (const char* name : kSingleChildren)
        if (const auto found = children_of(domain, name); found.size() > 1)
            refuse(found[1], fmt::format("a second <{}>; a <domain> has only one", name));
    return domain;
}

bool is_valid_selector(const VfSelector& selector) {
    const auto& [by, value] = selector;
    const bool is_name = by == "name";
    if (value.empty() || value.size() > longest_value(by)) return false;
    if (is_name && text::parse_uuid(value)) return false;
    const auto first = static_cast<unsigned char>(value.front());
    if (is_name ? std::isalpha(first) == 0 : std::isalnum(first) == 0) return false;
    return std::all_of(value.begin(), value.end(), [](char letter) {
        return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '-' ||
               letter == '_' || letter == '.';
    });
}

bool mentions_functions(std::string_view xml) {
    return xml.find("<hostdev") != std::string_view::npos;
}

bool mentions_vfs(std::string_view xml) {
    return std::any_of(kMentions.begin(), kMentions.end(), [xml](std::string_view mention) {
        return xml.find(mention) != std::string_view::npos;
    });
}

DomainFacts read_domain(const XmlDocument& document) {
    const xmlNode* domain = domain_of(document);
    DomainFacts facts = identity_of(domain);
    facts.vfs = selected_vfs(child_of(domain, "metadata"));
    facts.dac_label = dac_label_of(domain);
    facts.functions = functions_of(child_of(domain, "devices"));
    return facts;
}

DomainFacts read_domain(const std::string& xml) {
    return read_domain(XmlDocument(xml));
}

DomainFacts read_identity(const std::string& xml) {
    const XmlDocument document(xml);
    return identity_of(domain_of(document));
}

std::optional<std::pair<std::uint32_t, std::uint32_t>> ids_of_label(const std::string& dac_label) {
    const std::size_t colon = dac_label.find(':');
    if (colon == std::string::npos) return {};
    const std::string user = dac_label.substr(0, colon), group = dac_label.substr(colon + 1);
    auto uid = parse_id(user);
    auto gid = parse_id(group);
    if (!uid)
        if (const passwd* known = ::getpwnam(user.c_str())) uid = known->pw_uid;
    if (!gid)
        if (const ::group* known = ::getgrnam(group.c_str())) gid = known->gr_gid;
    if (!uid || !gid) return {};
    return std::pair{*uid, *gid};
}

}  // namespace vgpu::cli
