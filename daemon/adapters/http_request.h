// SPDX-License-Identifier: MIT
//
// The part of HTTP/1.0 that a scraper needs. It decides the answer to a request head and formats
// it. Pure; used by MetricsSocket, which has the sockets.
#pragma once

#include <string>
#include <string_view>

namespace vgpu::daemon::adapters {

/// True if `head` holds a whole request head, that is, an empty line.
[[nodiscard]] bool is_complete(std::string_view head);

/// Kinds of answers to a request.
enum class HttpAnswer { Document, HeadOnly, NotFound, WrongMethod, BadRequest };

/// The answer to the request whose head begins with `head`; the document is at "/metrics" and "/".
/// Takes untrusted input of any length; examines only its first line.
[[nodiscard]] HttpAnswer answer_to(std::string_view head);

/// Status line, header and body. Only Document and HeadOnly use `document` and its type.
[[nodiscard]] std::string http_response(HttpAnswer answer, std::string_view type,
                                        std::string_view document);

/// The value of the first header field `name` (in lower case) of a request; empty if none.
[[nodiscard]] std::string_view header_of(std::string_view head, std::string_view name);

}  // namespace vgpu::daemon::adapters
