// SPDX-License-Identifier: MIT
#include "cli/format.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <numeric>
#include <utility>

namespace vgpu::cli {

namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kNarrowest = 8;

/// Null if the property is missing.
const Value* find(const Properties& properties, const std::string& name) {
    const auto at = properties.find(name);
    return at == properties.end() ? nullptr : &at->second;
}

/// "VramFreeBytes" as "vram_free_bytes".
std::string snake_case(std::string_view name) {
    std::string snake;
    for (const char letter : name) {
        const auto code = static_cast<unsigned char>(letter);
        if (std::isupper(code) != 0 && !snake.empty()) snake += '_';
        snake += static_cast<char>(std::tolower(code));
    }
    return snake;
}

std::size_t total_of(const std::vector<std::size_t>& widths) {
    return std::accumulate(widths.begin(), widths.end(), kGap * (widths.size() - 1));
}

/// Shrinks the widest shrinkable column by one until the table fits: long columns end equally wide.
std::vector<std::size_t> widths_of(const std::vector<Column>& columns,
                                   const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::size_t> widths;
    for (const Column& column : columns) widths.push_back(column.title.size());
    for (const auto& row : rows)
        for (std::size_t i = 0; i < row.size(); ++i)
            widths[i] = std::max(widths[i], text::width_of(row[i]));
    std::size_t total = total_of(widths);
    while (total > kColumns) {
        std::size_t widest = columns.size();
        for (std::size_t i = 0; i < columns.size(); ++i)
            if (columns[i].may_shrink && widths[i] > kNarrowest &&
                (widest == columns.size() || widths[i] > widths[widest]))
                widest = i;
        if (widest == columns.size()) break;
        --widths[widest];
        --total;
    }
    return widths;
}

/// Removes the column that gives way first; false if none may.
bool give_way(std::vector<Column>& columns, std::vector<std::vector<std::string>>& rows) {
    const auto first =
        std::min_element(columns.begin(), columns.end(), [](const Column& a, const Column& b) {
            return a.gives_way != 0 && (b.gives_way == 0 || a.gives_way < b.gives_way);
        });
    if (columns.size() < 2 || first->gives_way == 0) return false;
    const auto at = first - columns.begin();
    for (auto& row : rows) row.erase(row.begin() + at);
    columns.erase(first);
    return true;
}

/// End of the line that begins at `begin` and may use `room` columns.
std::size_t line_end(std::string_view text, std::size_t begin, std::size_t room) {
    const std::size_t fits = text::fitting(text.substr(begin), room).size();
    if (begin + fits == text.size()) return text.size();
    const std::size_t blank = text.rfind(' ', begin + fits);
    if (blank != std::string_view::npos && blank > begin) return blank;
    // at least one letter, even if it is too wide
    std::size_t letter = begin + 1;
    while (letter < text.size() && (static_cast<unsigned char>(text[letter]) & 0xc0u) == 0x80u)
        ++letter;
    return std::max(begin + fits, letter);
}

std::string cell_text(const std::string& text, std::size_t width, Align align) {
    std::string cell = text;
    if (text::width_of(text) > width) cell = std::string(text::fitting(text, width - 1)) + "~";
    const std::string blanks(width - text::width_of(cell), ' ');
    return align == Align::Left ? cell + blanks : blanks + cell;
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

std::string percent_text(double share) {
    return fmt::format("{:.1f} %", share * 100);
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

std::string table_text(std::vector<Column> columns, std::vector<std::vector<std::string>> rows) {
    std::vector<std::size_t> widths = widths_of(columns, rows);
    while (total_of(widths) > kColumns && give_way(columns, rows))
        widths = widths_of(columns, rows);
    std::vector<std::string> titles;
    for (const Column& column : columns) titles.push_back(column.title);
    std::vector<std::vector<std::string>> lines{titles};
    lines.insert(lines.end(), rows.begin(), rows.end());
    std::string text;
    for (const auto& line : lines) {
        std::string one;
        for (std::size_t i = 0; i < line.size(); ++i)
            one += (i == 0 ? "" : std::string(kGap, ' ')) +
                   cell_text(line[i], widths[i], columns[i].align);
        one.erase(one.find_last_not_of(' ') + 1);
        text += one + "\n";
    }
    return text;
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
        const std::size_t dot = name.find('.');
        auto& place = dot == std::string::npos
                          ? json[snake_case(name)]
                          : json[snake_case(name.substr(0, dot))][snake_case(name.substr(dot + 1))];
        std::visit([&place](const auto& one) { place = one; }, value);
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

}  // namespace vgpu::cli
