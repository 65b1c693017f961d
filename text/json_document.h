// SPDX-License-Identifier: MIT
//
// Reader of untrusted JSON documents, such as configurations, profiles and scenarios. read_json()
// checks the depth of nesting before it parses the text, because nlohmann_json prints a tree by
// recursion, and a deep tree could exhaust the stack.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace vgpu::text {

/// Whether a document may have comments of C and C++.
enum class Comments { Refused, Allowed };

/// Limit of nesting. The example documents in schemas/ have at most 7 levels.
inline constexpr std::size_t kMaxNested = 64;

/// The error text if a document is nested too deep ("line 3, column 17: lists and objects are
/// nested more than 64 deep"), else "". Makes one pass and builds no tree. After the first syntax
/// error the depth may be wrong; this does no harm, because the parser stops at that error.
std::string too_deep(std::string_view text, Comments comments, std::size_t max_nested = kMaxNested);

/// Parses a document. The error text names the first mistake and, for most mistakes, its place.
/// `callback`: passed to the parser (nlohmann::basic_json::parser_callback_t); may be null.
template <typename Json = nlohmann::json>
tl::expected<Json, std::string> read_json(
    std::string_view text, Comments comments = Comments::Refused,
    const typename Json::parser_callback_t& callback = nullptr) {
    if (std::string wrong = too_deep(text, comments); !wrong.empty())
        return tl::make_unexpected(std::move(wrong));
    try {
        constexpr bool kThrows = true;
        return Json::parse(text, callback, kThrows, comments == Comments::Allowed);
    } catch (const typename Json::exception& error) {
        return tl::make_unexpected(std::string(error.what()));
    }
}

}  // namespace vgpu::text
