// SPDX-License-Identifier: MIT
//
// XmlDocument: an XML text as libxml2's tree, with functions to read and edit the tree. Uses no
// network, entities or DTD, because any user may supply the text. Other files of vgpuctl include
// libxml2 only through this header.
#pragma once

#include <libxml/tree.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace vgpu::cli {

/// The XML is malformed, too large, or not a libvirt domain, or its VFs cannot be read or attached.
/// what() has the reason and, if known, the line. The verb attach-xml then exits with 1. The exit
/// code of the verb hook depends on libvirt's operation.
class XmlError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Owns all nodes. A node is valid until the XmlDocument is destroyed or remove() removes the node.
class XmlDocument {
public:
    static constexpr std::size_t kMaxBytes = 16u << 20;

    /// Parses `text`. Throws XmlError if the text is not XML or longer than kMaxBytes, or has a
    /// document type declaration or a prefix without a declared namespace.
    explicit XmlDocument(const std::string& text);

    [[nodiscard]] xmlNode* root() const;
    /// The text, indented by two, without an XML declaration.
    [[nodiscard]] std::string text() const;

private:
    struct Free {
        void operator()(xmlDoc* document) const { xmlFreeDoc(document); }
    };
    std::unique_ptr<xmlDoc, Free> document_;
};

/// The child elements of `node`, in any namespace. If `name` is not empty, only elements with this
/// name. Empty for a null node.
std::vector<xmlNode*> children_of(const xmlNode* node, const std::string& name = "");
/// The first child element with this name, or null.
xmlNode* child_of(const xmlNode* node, const std::string& name);
std::string name_of(const xmlNode* node);
/// The namespace of `node`; empty if there is none.
std::string namespace_of(const xmlNode* node);
/// All text inside `node`, trimmed. Empty for a null node, as in attribute_of(), so that calls can
/// be chained.
std::string content_of(const xmlNode* node);
/// The value of an attribute; empty if the attribute is absent.
std::string attribute_of(const xmlNode* node, const std::string& name);
/// The names of all attributes.
std::vector<std::string> attributes_of(const xmlNode* node);

/// Adds an element after the last child, and returns the element. Without `ns`, the element has no
/// namespace.
xmlNode* add_child(xmlNode* parent, const std::string& name, xmlNs* ns = nullptr);
void set_attribute(xmlNode* node, const std::string& name, const std::string& value);
/// Makes `text` the content of `node`; escapes special characters.
void set_content(xmlNode* node, const std::string& text);
/// Removes a node and all nodes below it. Pointers to these nodes become invalid.
void remove(xmlNode* node);
/// The namespace `uri`, for use at `node`. If no declaration of `uri` with a prefix applies to
/// `node`, declares it with `prefix`, or with `prefix` and a number if that prefix is taken. Throws
/// XmlError if no prefix is free.
xmlNs* namespace_at(xmlNode* node, const std::string& uri, const std::string& prefix);

}  // namespace vgpu::cli
