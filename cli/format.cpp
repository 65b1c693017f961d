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

/// Null if it is missing.
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

/// Takes single letters from the widest column that may shrink until the table fits, so that two
/// long columns end up equally long instead of one losing everything.
std::vector<std::size_t> widths_of(const std::vector<Column>& columns,
                                   const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::size_t> widths;
    for (const Column& column : columns) widths.push_back(column.title.size());
    for (const auto& row : rows)
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
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

/// Leaves out the column that gives way first; false if none does.
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

/// Where the line that begins at `begin` ends, if it has `room` letters.
/// Not within a letter of several bytes: people's words may have such.
std::size_t line_end(std::string_view text, std::size_t begin, std::size_t room) {
    if (text.size() - begin <= room) return text.size();
    const std::size_t blank = text.rfind(' ', begin + room);
    if (blank != std::string_view::npos && blank > begin) return blank;
    const auto is_inside = [text](std::size_t at) {
        return (static_cast<unsigned char>(text[at]) & 0xc0u) == 0x80u;
    };
    std::size_t end = begin + room;
    while (end > begin + 1 && is_inside(end)) --end;
    return end;
}

std::string cell_text(const std::string& text, std::size_t width, Align align) {
    const std::string cut = text.size() > width ? text.substr(0, width - 1) + "~" : text;
    return align == Align::Left ? fmt::format("{:<{}}", cut, width)
                                : fmt::format("{:>{}}", cut, width);
}

/// Levenshtein, with one row of the matrix kept.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i);
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
        }
    }
    return row.back();
}

}  // namespace

std::string text_of(const Properties& properties, const std::string& name) {
    const Value* value = find(properties, name);
    if (value == nullptr) return "-";
    struct InWords {
        std::string operator()(bool flag) const { return flag ? "yes" : "no"; }
        std::string operator()(const std::string& text) const { return text.empty() ? "-" : text; }
        std::string operator()(const Words& words) const {
            return words.empty() ? "-" : fmt::format("{}", fmt::join(words, ", "));
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

std::string size_text(std::uint64_t bytes) {
    constexpr std::array<std::string_view, 3> kUnits{"GiB", "MiB", "KiB"};
    std::uint64_t unit = 1ull << 30;
    for (const std::string_view name : kUnits) {
        if (bytes >= unit && bytes % unit == 0) return fmt::format("{} {}", bytes / unit, name);
        if (bytes >= 2 * unit)
            return fmt::format("{:.1f} {}", static_cast<double>(bytes) / static_cast<double>(unit),
                               name);
        unit >>= 10;
    }
    return fmt::format("{} B", bytes);
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

std::string wrong_in_utf8(const std::string& text) {
    try {
        static_cast<void>(nlohmann::json(text).dump());
        return "";
    } catch (const nlohmann::json::exception& error) {
        return error.what();
    }
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
    struct Suffix {
        std::string_view text;
        int shift;
    };
    constexpr std::array kSuffixes{Suffix{"GiB", 30}, Suffix{"MiB", 20}, Suffix{"KiB", 10},
                                   Suffix{"G", 30},   Suffix{"M", 20},   Suffix{"K", 10},
                                   Suffix{"B", 0},    Suffix{"", 0}};
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return {};
    const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
    for (const Suffix& suffix : kSuffixes)
        if (rest == suffix.text && number <= (UINT64_MAX >> suffix.shift))
            return number << suffix.shift;
    return {};
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

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
    std::string best;
    std::size_t best_distance = 3;
    for (const std::string& candidate : known) {
        const std::size_t away = distance(word, candidate);
        if (away >= best_distance) continue;
        best = candidate;
        best_distance = away;
    }
    return best.empty() ? "" : fmt::format("; did you mean '{}'?", best);
}

}  // namespace vgpu::cli
