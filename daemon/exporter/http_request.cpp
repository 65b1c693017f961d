// SPDX-License-Identifier: MIT
#include "daemon/exporter/http_request.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstring>

namespace vgpu::exporter {

namespace {

struct PageRow {
    std::string_view status;  ///< status code and reason; may end with more header fields
    std::string_view text;    ///< body of the response
};

/// Indexed by Page.
constexpr std::array kPages{
    PageRow{"200 OK", ""},
    PageRow{"200 OK", "vgpu-exporter: metrics of vgpud for Prometheus, at /metrics.\n"},
    PageRow{"404 Not Found", "There is nothing here; the metrics are at /metrics.\n"},
    PageRow{"405 Method Not Allowed\r\nAllow: GET, HEAD", "Only GET and HEAD are answered here.\n"},
    PageRow{"400 Bad Request", "This is not an HTTP request.\n"},
    PageRow{"431 Request Header Fields Too Large", "The head of the request is too long.\n"},
};

constexpr std::string_view kEmptyLine = "\r\n\r\n";

/// Returns the first word of `line`, and removes the word and its space from `line`.
std::string_view next_word(std::string_view& line) {
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(word.size() + 1, line.size()));
    return word;
}

/// The value of the header field Accept; empty if there is none.
std::string_view accept_of(const std::string& head) {
    constexpr std::string_view kField = "\naccept:";
    const char* const at = ::strcasestr(head.c_str(), kField.data());
    if (at == nullptr) return "";
    const std::string_view rest(at + kField.size());
    return rest.substr(0, rest.find_first_of("\r\n"));
}

Page page_of(std::string_view line) {
    const std::string_view method = next_word(line);
    std::string_view path = next_word(line);
    if (path.empty() || !line.starts_with("HTTP/1.")) return Page::BadRequest;
    if (method != "GET" && method != "HEAD") return Page::WrongMethod;
    // ignores a query string, which a scraper may add
    path = path.substr(0, path.find('?'));
    if (path == "/metrics") return Page::Metrics;
    return path == "/" ? Page::Index : Page::NotFound;
}

}  // namespace

bool is_complete(std::string_view head) {
    return head.find(kEmptyLine) != std::string_view::npos ||
           head.find("\n\n") != std::string_view::npos;
}

HttpRequest parse_request(const std::string& head) {
    return {.page = page_of(std::string_view(head).substr(0, head.find_first_of("\r\n"))),
            .is_head = head.starts_with("HEAD "),
            .accept = accept_of(head)};
}

std::string http_response(Page page, std::string_view type, std::string_view text) {
    const PageRow& row = kPages.at(static_cast<std::size_t>(page));
    if (page != Page::Metrics) {
        type = "text/plain; charset=utf-8";
        text = row.text;
    }
    return fmt::format(
        "HTTP/1.0 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close{}{}",
        row.status, type, text.size(), kEmptyLine, text);
}

std::size_t head_size(std::string_view response) {
    return response.find(kEmptyLine) + kEmptyLine.size();
}

}  // namespace vgpu::exporter
