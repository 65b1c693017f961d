// SPDX-License-Identifier: MIT
#include "daemon/adapters/http_request.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cctype>

namespace vgpu::daemon::adapters {

namespace {

struct Row {
    std::string_view status;
    std::string_view body;  ///< text for people; empty: the document
};

/// In the order of HttpAnswer.
constexpr std::array kRows{
    Row{"200 OK", ""},
    Row{"200 OK", ""},
    Row{"404 Not Found", "There is nothing here; the metrics are at /metrics.\n"},
    Row{"405 Method Not Allowed", "Only GET and HEAD are answered here.\n"},
    Row{"400 Bad Request", "This is no HTTP request.\n"},
};

/// Removes the word up to the next space from `line` and returns it.
std::string_view take_word(std::string_view& line) {
    const std::size_t end = line.find(' ');
    const std::string_view word = line.substr(0, end);
    line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
    return word;
}

bool is_same_letter(char lower, char any) {
    return lower == std::tolower(static_cast<unsigned char>(any));
}

}  // namespace

bool is_complete(std::string_view head) {
    return head.find("\r\n\r\n") != std::string_view::npos ||
           head.find("\n\n") != std::string_view::npos;
}

HttpAnswer answer_to(std::string_view head) {
    std::string_view line = head.substr(0, head.find_first_of("\r\n"));
    const std::string_view method = take_word(line);
    std::string_view path = take_word(line);
    if (path.empty() || !line.starts_with("HTTP/1.")) return HttpAnswer::BadRequest;
    if (method != "GET" && method != "HEAD") return HttpAnswer::WrongMethod;
    // Ignore parameters, which scrapers may add.
    path = path.substr(0, path.find('?'));
    if (path != "/metrics" && path != "/") return HttpAnswer::NotFound;
    return method == "GET" ? HttpAnswer::Document : HttpAnswer::HeadOnly;
}

std::string http_response(HttpAnswer answer, std::string_view type, std::string_view document) {
    const Row& row = kRows.at(static_cast<std::size_t>(answer));
    const bool is_document = row.body.empty();
    const std::string_view body = is_document ? document : row.body;
    std::string response = fmt::format(
        "HTTP/1.0 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n"
        "Connection: close\r\n\r\n",
        row.status, is_document ? type : "text/plain; charset=utf-8", body.size());
    if (answer != HttpAnswer::HeadOnly) response += body;
    return response;
}

std::string_view header_of(std::string_view head, std::string_view name) {
    while (!head.empty()) {
        std::string_view line = head.substr(0, head.find('\n'));
        head.remove_prefix(std::min(line.size() + 1, head.size()));
        if (line.ends_with('\r')) line.remove_suffix(1);
        const bool is_it = line.size() > name.size() && line[name.size()] == ':' &&
                           std::equal(name.begin(), name.end(), line.begin(), is_same_letter);
        if (!is_it) continue;
        line.remove_prefix(name.size() + 1);
        line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
        return line;
    }
    return "";
}

}  // namespace vgpu::daemon::adapters
