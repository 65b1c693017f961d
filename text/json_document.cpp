// SPDX-License-Identifier: MIT
#include "text/json_document.h"

#include <fmt/format.h>
#include <algorithm>

namespace vgpu::text {

namespace {

constexpr auto kNone = std::string_view::npos;

/// The position after the comment that begins at `at`; `at` if no comment begins at `at`.
std::size_t after_comment(std::string_view text, std::size_t at) {
    const std::string_view begin = text.substr(at, 2);
    if (begin != "//" && begin != "/*") return at;
    const std::size_t end = begin == "//" ? text.find('\n', at) : text.find("*/", at + 2);
    if (end == kNone) return text.size();
    return begin == "//" ? end : end + 2;
}

/// The position after the string with the opening quote at `at`.
std::size_t after_string(std::string_view text, std::size_t at) {
    for (++at; at < text.size() && text[at] != '"'; ++at)
        if (text[at] == '\\') ++at;
    return std::min(at + 1, text.size());
}

/// A position as "line 3, column 17".
std::string place_of(std::string_view text, std::size_t at) {
    const std::string_view before = text.substr(0, at);
    const std::size_t line_begin = before.rfind('\n');
    return fmt::format("line {}, column {}", std::ranges::count(before, '\n') + 1,
                       line_begin == kNone ? at + 1 : at - line_begin);
}

}  // namespace

std::string too_deep(std::string_view text, Comments comments, std::size_t max_nested) {
    std::size_t depth = 0;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t after = comments == Comments::Allowed ? after_comment(text, at) : at;
        if (after != at) {
            at = after;
            continue;
        }
        const char letter = text[at];
        if (letter == '"') {
            at = after_string(text, at);
            continue;
        }
        if (letter == '[' || letter == '{') ++depth;
        if ((letter == ']' || letter == '}') && depth > 0) --depth;
        if (depth > max_nested)
            return fmt::format("{}: lists and objects are nested more than {} deep",
                               place_of(text, at), max_nested);
        ++at;
    }
    return "";
}

}  // namespace vgpu::text
