// SPDX-License-Identifier: MIT
#include "daemon/service/input/value_io.h"

#include "text/utf8.h"

#include <algorithm>

namespace vgpu::daemon {

/// Checks the length, and then the characters: printable() replaces every character that could
/// break a line, a table or a terminal.
std::string mistake_in(std::string_view text, const Line& kind) {
    if (text.size() > kind.max_bytes)
        return fmt::format("has {} bytes; shorten it to {} or fewer", text.size(), kind.max_bytes);
    const std::string safe = text::printable(text);
    if (safe == text) return "";
    const auto at = std::ranges::mismatch(text, safe).in1 - text.begin();
    return fmt::format(
        "has a line break, a control character or a broken letter at byte {}; write one line of "
        "plain text",
        at + 1);
}

Result<> read_value(const OptionReader& options, const std::string& key, const Line& kind,
                    std::string& to) {
    TRY(auto text, options.text(key));
    if (!text) return {};
    if (const std::string wrong = mistake_in(*text, kind); !wrong.empty())
        return fail(ErrorId::OutOfRange, fmt::format("option '{}' {}", key, wrong));
    to = *std::move(text);
    return {};
}

void read_value(JsonSection& section, const std::string& key, const Line& kind, std::string& to) {
    std::string text;
    section.text(key, text);
    if (const std::string wrong = mistake_in(text, kind); !wrong.empty())
        return section.complain(key, wrong);
    if (!text.empty()) to = std::move(text);
}

void read_value(const nlohmann::json& json, const std::string& key, const Line& kind,
                std::string& to) {
    to = json.value(key, to);
    if (const std::string wrong = mistake_in(to, kind); !wrong.empty())
        throw std::runtime_error(fmt::format("a {} {}", key, wrong));
}

}  // namespace vgpu::daemon
