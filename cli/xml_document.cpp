// SPDX-License-Identifier: MIT
#include "cli/xml_document.h"

#include <fmt/format.h>
#include <libxml/parser.h>
#include <libxml/xmlerror.h>
#include <libxml/xmlsave.h>

namespace vgpu::cli {

namespace {

const xmlChar* to_xml(const std::string& text) {
    return BAD_CAST text.c_str();
}

/// `text` of libxml2 as std::string; "" for null. Casts by way of void*, because libxml2's
/// characters are unsigned char.
std::string from_xml(const xmlChar* text) {
    if (text == nullptr) return "";
    const auto* bytes = static_cast<const void*>(text);
    return static_cast<const char*>(bytes);
}

struct FreeText {
    void operator()(xmlChar* text) const { xmlFree(text); }
};
using OwnedText = std::unique_ptr<xmlChar, FreeText>;

std::string trimmed(const std::string& text) {
    constexpr const char* kSpace = " \t\r\n";
    const std::size_t first = text.find_first_not_of(kSpace);
    if (first == std::string::npos) return "";
    return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

/// libxml2's last error in this thread, with the line; "not XML" if libxml2 reports none.
std::string last_error() {
    const xmlError* error = xmlGetLastError();
    if (error == nullptr || error->message == nullptr) return "not XML";
    return fmt::format("line {}: {}", error->line, trimmed(error->message));
}

}  // namespace

XmlDocument::XmlDocument(const std::string& text) {
    if (text.size() > kMaxBytes)
        throw XmlError(fmt::format("{} bytes of XML; the limit is {}", text.size(), kMaxBytes));
    xmlResetLastError();
    const std::unique_ptr<xmlParserCtxt, void (*)(xmlParserCtxt*)> parser(xmlNewParserCtxt(),
                                                                          xmlFreeParserCtxt);
    document_.reset(xmlCtxtReadMemory(
        parser.get(), text.data(), static_cast<int>(text.size()), "domain.xml", nullptr,
        XML_PARSE_NONET | XML_PARSE_NOBLANKS | XML_PARSE_NOERROR | XML_PARSE_NOWARNING));
    // libxml2 accepts a prefix without a declaration, but its element then has no namespace, and
    // attach-xml, which searches by namespace, would not find the element. So refuse such XML.
    if (!document_ || root() == nullptr || parser->nsWellFormed == 0) throw XmlError(last_error());
    if (document_->intSubset != nullptr)
        throw XmlError("a domain cannot have a document type declaration");
}

xmlNode* XmlDocument::root() const {
    return xmlDocGetRootElement(document_.get());
}

std::string XmlDocument::text() const {
    const std::unique_ptr<xmlBuffer, void (*)(xmlBuffer*)> buffer(xmlBufferCreate(), xmlBufferFree);
    xmlSaveCtxt* save = xmlSaveToBuffer(buffer.get(), "UTF-8", XML_SAVE_FORMAT | XML_SAVE_NO_DECL);
    xmlSaveDoc(save, document_.get());
    xmlSaveClose(save);
    return from_xml(xmlBufferContent(buffer.get()));
}

std::vector<xmlNode*> children_of(const xmlNode* node, const std::string& name) {
    std::vector<xmlNode*> found;
    if (node == nullptr) return found;
    for (xmlNode* one = node->children; one != nullptr; one = one->next)
        if (one->type == XML_ELEMENT_NODE && (name.empty() || name_of(one) == name))
            found.push_back(one);
    return found;
}

xmlNode* child_of(const xmlNode* node, const std::string& name) {
    const auto found = children_of(node, name);
    return found.empty() ? nullptr : found.front();
}

std::string name_of(const xmlNode* node) {
    return from_xml(node->name);
}

std::string namespace_of(const xmlNode* node) {
    return node->ns == nullptr ? "" : from_xml(node->ns->href);
}

std::string content_of(const xmlNode* node) {
    if (node == nullptr) return "";
    const OwnedText content(xmlNodeGetContent(node));
    return trimmed(from_xml(content.get()));
}

std::string attribute_of(const xmlNode* node, const std::string& name) {
    if (node == nullptr) return "";
    const OwnedText value(xmlGetNoNsProp(node, to_xml(name)));
    return from_xml(value.get());
}

std::vector<std::string> attributes_of(const xmlNode* node) {
    std::vector<std::string> names;
    for (const xmlAttr* one = node->properties; one != nullptr; one = one->next)
        names.push_back(from_xml(one->name));
    return names;
}

xmlNode* add_child(xmlNode* parent, const std::string& name, xmlNs* ns) {
    xmlNode* child = xmlNewChild(parent, ns, to_xml(name), nullptr);
    // for a null `ns`, xmlNewChild() uses the parent's namespace
    if (ns == nullptr) xmlSetNs(child, nullptr);
    return child;
}

void set_attribute(xmlNode* node, const std::string& name, const std::string& value) {
    xmlSetProp(node, to_xml(name), to_xml(value));
}

void set_content(xmlNode* node, const std::string& text) {
    // without the escapes, xmlNodeSetContent() would expand entity references in the text
    const OwnedText escaped(xmlEncodeSpecialChars(node->doc, to_xml(text)));
    xmlNodeSetContent(node, escaped.get());
}

void remove(xmlNode* node) {
    xmlUnlinkNode(node);
    xmlFreeNode(node);
}

xmlNs* namespace_at(xmlNode* node, const std::string& uri, const std::string& prefix) {
    constexpr int kTries = 100;
    xmlNs* known = xmlSearchNsByHref(node->doc, node, to_xml(uri));
    if (known != nullptr && known->prefix != nullptr) return known;
    // xmlNewNs() returns null if the element has this prefix for another namespace
    for (int n = 1; n <= kTries; ++n) {
        const std::string candidate = n == 1 ? prefix : fmt::format("{}{}", prefix, n);
        if (xmlNs* made = xmlNewNs(node, to_xml(uri), to_xml(candidate))) return made;
    }
    throw XmlError(
        fmt::format("line {}: no prefix is free for the namespace {}", xmlGetLineNo(node), uri));
}

}  // namespace vgpu::cli
