// SPDX-License-Identifier: MIT
//
// XmlDocument owns an XML text as libxml2's tree; the functions below read and edit the tree. It
// allows no network, no entities and no DTD, because the text may come from anybody. Used by
// domain_xml and domain_edit; nothing else includes libxml2.
#pragma once

#include <libxml/tree.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace vgpu::cli {

/// The XML is malformed, too large, or not a domain; what() names the mistake and its place.
/// Verbs report it with the domain's name and end with ExitCode::Failed; the hook follows its row.
class XmlError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// The tree owns all nodes; a node is valid until the document ends or remove() frees it.
class XmlDocument {
public:
    static constexpr std::size_t kMostBytes = 16u << 20;

    /// Throws XmlError.
    /// Refuses more than kMostBytes, and every document type declaration, so no entity is expanded.
    explicit XmlDocument(const std::string& text);

    [[nodiscard]] xmlNode* root() const;
    /// Indented by two spaces, without an XML declaration.
    [[nodiscard]] std::string text() const;

private:
    struct Free {
        void operator()(xmlDoc* document) const { xmlFreeDoc(document); }
    };
    std::unique_ptr<xmlDoc, Free> document_;
};

/// Child elements; only those called `name` (in any namespace) if `name` is not empty.
std::vector<xmlNode*> children_of(const xmlNode* node, const std::string& name = "");
/// The first child element called `name`; null if none.
xmlNode* child_of(const xmlNode* node, const std::string& name);
std::string name_of(const xmlNode* node);
/// Namespace of the node; empty if none.
std::string namespace_of(const xmlNode* node);
/// All text inside, without surrounding white space.
/// Empty for a null node, as is attribute_of(): calls may be chained through child_of().
std::string content_of(const xmlNode* node);
/// Empty if there is no such attribute.
std::string attribute_of(const xmlNode* node, const std::string& name);
std::vector<std::string> attributes_of(const xmlNode* node);

/// A new last child of `parent`; a null `ns` means no namespace.
xmlNode* add_child(xmlNode* parent, const std::string& name, xmlNs* ns = nullptr);
void set_attribute(xmlNode* node, const std::string& name, const std::string& value);
void remove_attribute(xmlNode* node, const std::string& name);
/// Replaces all children; `text` is escaped.
void set_content(xmlNode* node, const std::string& text);
/// Frees the node with all below it; pointers into it become invalid.
void remove(xmlNode* node);
/// The namespace `uri` at `node`; declares it there as `prefix` if it is unknown.
xmlNs* namespace_at(xmlNode* node, const std::string& uri, const std::string& prefix);

}  // namespace vgpu::cli
