// SPDX-License-Identifier: MIT
//
// The part of HTTP/1.0 that a scraper needs: parses the head of a request, and makes the response.
// Used by Server, which owns the sockets. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace vgpu::exporter {

/// The page that answers a request. Index is the page "/", which describes this program.
enum class Page { Metrics, Index, NotFound, WrongMethod, BadRequest, TooLarge };

struct HttpRequest {
    Page page = Page::BadRequest;
    bool is_head = false;       ///< true for the method HEAD, whose response has no body
    std::string_view accept{};  ///< value of the header field Accept; empty if there is none
};

/// True if `head` contains the empty line that ends the head of a request.
[[nodiscard]] bool is_complete(std::string_view head);

/// Parses an untrusted head. HttpRequest::accept points into `head`. The page is BadRequest if the
/// first line is not a request line of HTTP/1.x.
[[nodiscard]] HttpRequest parse_request(const std::string& head);

/// The whole response. `type` (the media type) and `text` (the body) are used only for
/// Page::Metrics; other pages have fixed texts.
[[nodiscard]] std::string http_response(Page page, std::string_view type = "",
                                        std::string_view text = "");
/// Number of bytes of a whole response before its body.
[[nodiscard]] std::size_t head_size(std::string_view response);

}  // namespace vgpu::exporter
