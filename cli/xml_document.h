// SPDX-License-Identifier: MIT
//
// XmlDocument: an XML text as libxml2's tree, owned; and the few questions that the users of a tree
// ask. No network, no entities, no DTD: the text may come from anybody. Used by domain_xml and
// domain_edit; nothing else includes libxml2.
#pragma once

#include <libxml/tree.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace vgpu::cli {

/// Not well-formed, too large, or not what a domain looks like; what() says what and where.
/// Verbs tell it with the domain's name and end with ExitCode::Failed; the hook does as its row
/// says.
class XmlError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Nodes that its functions hand out are the tree's: they end with the document, or with remove().
class XmlDocument {
public:
    static constexpr std::size_t kMostBytes = 16u << 20;

    /// Throws XmlError.
    /// Refuses more than kMostBytes and every document type declaration: no entity is expanded.
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

/// Child elements, those called `name` (any namespace) if it is given.
std::vector<xmlNode*> children_of(const xmlNode* node, const std::string& name = "");
/// The first child element called `name`; null if there is none.
xmlNode* child_of(const xmlNode* node, const std::string& name);
std::string name_of(const xmlNode* node);
/// Its namespace; empty: none.
std::string namespace_of(const xmlNode* node);
/// All text inside, without white space around it.
/// Empty for a null node, as is attribute_of(): questions may be chained through child_of().
std::string content_of(const xmlNode* node);
/// Empty if there is no such attribute.
std::string attribute_of(const xmlNode* node, const std::string& name);
std::vector<std::string> attributes_of(const xmlNode* node);

/// A new last child of `parent`; `ns` may be null: as its parent, if that is in no namespace.
xmlNode* add_child(xmlNode* parent, const std::string& name, xmlNs* ns = nullptr);
void set_attribute(xmlNode* node, const std::string& name, const std::string& value);
void remove_attribute(xmlNode* node, const std::string& name);
/// Replaces all children; `text` is escaped.
void set_content(xmlNode* node, const std::string& text);
/// Frees it with all below: no pointer into it may be used afterwards.
void remove(xmlNode* node);
/// The namespace `uri` as known at `node`, declared there as `prefix` if it is not.
xmlNs* namespace_at(xmlNode* node, const std::string& uri, const std::string& prefix);

}  // namespace vgpu::cli
