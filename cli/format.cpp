// SPDX-License-Identifier: MIT
#include "cli/format.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>

namespace vgpu::cli {

namespace {

const Value* find(const Properties& properties, const std::string& name) {
    const auto at = properties.find(name);
    return at == properties.end() ? nullptr : &at->second;
}

/// "VramFreeBytes" becomes "vram_free_bytes".
std::string snake_case(std::string_view name) {
    std::string snake;
    for (const char letter : name) {
        const auto code = static_cast<unsigned char>(letter);
        if (std::isupper(code) != 0 && !snake.empty()) snake += '_';
        snake += static_cast<char>(std::tolower(code));
    }
    return snake;
}

/// The end of the line that begins at `begin` and has at most `room` columns.
std::size_t line_end(std::string_view text, std::size_t begin, std::size_t room) {
    const std::size_t fits = text::fitting(text.substr(begin), room).size();
    if (begin + fits == text.size()) return text.size();
    const std::size_t blank = text.rfind(' ', begin + fits);
    if (blank != std::string_view::npos && blank > begin) return blank;
    // at least one character, even if it is too wide; 0b10xxxxxx are continuation bytes of UTF-8
    std::size_t letter = begin + 1;
    while (letter < text.size() && (static_cast<unsigned char>(text[letter]) & 0xc0u) == 0x80u)
        ++letter;
    return std::max(begin + fits, letter);
}

}  // namespace

std::string text_of(const Properties& properties, const std::string& name) {
    const Value* value = find(properties, name);
    if (value == nullptr) return "-";
    struct InWords {
        std::string operator()(bool flag) const { return flag ? "yes" : "no"; }
        std::string operator()(const std::string& text) const {
            return text.empty() ? "-" : printable(text);
        }
        std::string operator()(const Words& words) const {
            return words.empty() ? "-" : printable(fmt::format("{}", fmt::join(words, ", ")));
        }
        std::string operator()(double real) const { return fmt::format("{:.3f}", real); }
        std::string operator()(std::int64_t number) const { return std::to_string(number); }
        std::string operator()(std::uint64_t number) const { return std::to_string(number); }
    };
    return std::visit(InWords{}, *value);
}

std::uint64_t number_of(const Properties& properties, const std::string& name) {
    const Value* value = find(properties, name);
    const auto* number = value != nullptr ? std::get_if<std::uint64_t>(value) : nullptr;
    return number != nullptr ? *number : 0;
}

double real_of(const Properties& properties, const std::string& name) {
    const Value* value = find(properties, name);
    const auto* real = value != nullptr ? std::get_if<double>(value) : nullptr;
    return real != nullptr ? *real : 0.0;
}

bool flag_of(const Properties& properties, const std::string& name) {
    const Value* value = find(properties, name);
    const auto* flag = value != nullptr ? std::get_if<bool>(value) : nullptr;
    return flag != nullptr && *flag;
}

std::string size_of(const Properties& properties, const std::string& name) {
    return properties.contains(name) ? size_text(number_of(properties, name)) : "-";
}

std::string value_of(const Properties& properties, std::string_view name, Formatter format) {
    const std::string key(name.substr(0, name.find(',')));
    return properties.contains(key) ? format(properties, key) : "-";
}

std::string percent_text(double share) {
    return fmt::format("{:.1f} %", share * 100);
}

std::string percent_of(const Properties& properties, const std::string& name) {
    return percent_text(real_of(properties, name));
}

std::string lag_text(double quanta) {
    return fmt::format("{:+.2f}", quanta);
}

std::string duration_text(std::uint64_t ns) {
    constexpr std::uint64_t kUs = 1000, kMs = 1'000'000, kS = 1'000'000'000;
    if (ns >= 10 * kS) return fmt::format("{:.1f} s", static_cast<double>(ns) / kS);
    if (ns >= kMs) return fmt::format("{:.2f} ms", static_cast<double>(ns) / kMs);
    return fmt::format("{:.1f} us", static_cast<double>(ns) / kUs);
}

std::string duration_of(const Properties& properties, const std::string& name) {
    return properties.contains(name) ? duration_text(number_of(properties, name)) : "-";
}

std::string measured_of(const Properties& properties, const std::string& name) {
    return number_of(properties, name) == 0 ? "-" : duration_of(properties, name);
}

std::string wrapped_text(std::string_view text, std::size_t indent, std::size_t used) {
    std::string lines;
    std::size_t begin = 0, room = kColumns - std::min(used, kColumns - 1);
    for (;;) {
        const std::size_t end = line_end(text, begin, room);
        std::string line(text.substr(begin, end - begin));
        line.erase(line.find_last_not_of(' ') + 1);
        lines += line + "\n";
        begin = text.find_first_not_of(' ', end);
        if (begin == std::string_view::npos) return lines;
        lines += std::string(indent, ' ');
        room = kColumns - indent;
    }
}

nlohmann::ordered_json json_of(const Properties& properties) {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    for (const auto& [name, value] : properties) {
        nlohmann::ordered_json* place = &json;
        for (std::size_t begin = 0, dot = 0; dot != std::string::npos; begin = dot + 1) {
            dot = name.find('.', begin);
            place = &(*place)[snake_case(name.substr(begin, dot - begin))];
        }
        std::visit([place](const auto& one) { *place = one; }, value);
    }
    return json;
}

nlohmann::ordered_json json_of(const std::vector<Properties>& list) {
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (const Properties& one : list) json.push_back(json_of(one));
    return json;
}

std::string document_text(std::string_view schema, nlohmann::ordered_json members) {
    nlohmann::ordered_json document = {{"schema", schema}};
    document.update(members);
    return document.dump(2) + "\n";
}

std::string error_document(const ServiceError& error) {
    const nlohmann::ordered_json document = {{"schema", "vgpuctl-error-1"},
                                             {"error", text::as_utf8(error.what())},
                                             {"name", error.name()},
                                             {"exit_code", static_cast<int>(error.exit_code())}};
    return document.dump() + "\n";
}

}  // namespace vgpu::cli
