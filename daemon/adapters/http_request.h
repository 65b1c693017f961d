// SPDX-License-Identifier: MIT
//
// As much of HTTP/1.0 as a scraper needs: what to answer to a request head, and the answer as
// bytes. Pure; used by MetricsSocket, which knows the sockets.
#pragma once

#include <string>
#include <string_view>

namespace vgpu::daemon::adapters {

/// True if `head` holds a whole request head: there is an empty line.
[[nodiscard]] bool is_complete(std::string_view head);

/// What a request asks for.
enum class HttpAnswer { Document, HeadOnly, NotFound, WrongMethod, BadRequest };

/// The answer to the request whose head begins `head`; the document is at "/metrics" (and "/").
/// Untrusted input of any length; only its first line is looked at.
[[nodiscard]] HttpAnswer answer_to(std::string_view head);

/// Status line, header and body. `document` and its type count for Document and HeadOnly only.
[[nodiscard]] std::string http_response(HttpAnswer answer, std::string_view type,
                                        std::string_view document);

/// The value of the first header field `name` (in lower case) of a request; empty without one.
[[nodiscard]] std::string_view header_of(std::string_view head, std::string_view name);

}  // namespace vgpu::daemon::adapters
