// SPDX-License-Identifier: MIT
//
// XmlDocument: an XML text as libxml2's tree, with functions to read and edit it. No network,
// entities or DTD, because any user may supply the text. Nothing else includes libxml2.
#pragma once

#include <libxml/tree.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace vgpu::cli {

/// Malformed, too large, or no domain; what() has the mistake and its place. Verbs end with
/// ExitCode::Failed; the hook follows its row.
class XmlError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Owns all nodes, which are valid until its end or remove().
class XmlDocument {
public:
    static constexpr std::size_t kMostBytes = 16u << 20;

    /// XmlError, also above kMostBytes and for any document type declaration.
    explicit XmlDocument(const std::string& text);

    [[nodiscard]] xmlNode* root() const;
    /// Indented by two, without an XML declaration.
    [[nodiscard]] std::string text() const;

private:
    struct Free {
        void operator()(xmlDoc* document) const { xmlFreeDoc(document); }
    };
    std::unique_ptr<xmlDoc, Free> document_;
};

/// Child elements, of any namespace; only `name` if not empty.
std::vector<xmlNode*> children_of(const xmlNode* node, const std::string& name = "");
/// Null if none.
xmlNode* child_of(const xmlNode* node, const std::string& name);
std::string name_of(const xmlNode* node);
/// Empty if none.
std::string namespace_of(const xmlNode* node);
/// All text inside, trimmed. Empty for a null node, like attribute_of(), so calls can be chained.
std::string content_of(const xmlNode* node);
/// Empty if absent.
std::string attribute_of(const xmlNode* node, const std::string& name);
std::vector<std::string> attributes_of(const xmlNode* node);

/// The new last child; null `ns`: no namespace.
xmlNode* add_child(xmlNode* parent, const std::string& name, xmlNs* ns = nullptr);
void set_attribute(xmlNode* node, const std::string& name, const std::string& value);
void remove_attribute(xmlNode* node, const std::string& name);
/// `text` is escaped.
void set_content(xmlNode* node, const std::string& text);
/// With all below; pointers become invalid.
void remove(xmlNode* node);
/// Declares `uri` as `prefix` if it is unknown at `node`.
xmlNs* namespace_at(xmlNode* node, const std::string& uri, const std::string& prefix);

}  // namespace vgpu::cli
