// SPDX-License-Identifier: MIT
#include "cli/table.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <numeric>
#include <sstream>
#include <utility>

namespace vgpu::cli {

namespace {

constexpr std::size_t kGap = 2;       // blanks between two columns
constexpr std::size_t kMinWidth = 8;  // no column shrinks below this width

std::size_t line_width(const std::vector<std::size_t>& widths) {
    return std::accumulate(widths.begin(), widths.end(), kGap * (widths.size() - 1));
}

/// The widths of the columns. While the table is too wide, takes 1 from the widest column with
/// may_shrink, so that wide columns become equally wide.
std::vector<std::size_t> widths_of(const std::vector<Column>& columns, const TableRows& rows) {
    std::vector<std::size_t> widths(columns.size());
    for (const auto& row : rows)
        for (std::size_t i = 0; i < row.size(); ++i)
            widths[i] = std::max(widths[i], text::width_of(row[i]));
    std::size_t total = line_width(widths);
    while (total > kColumns) {
        std::size_t widest = columns.size();
        for (std::size_t i = 0; i < columns.size(); ++i)
            if (columns[i].may_shrink && widths[i] > kMinWidth &&
                (widest == columns.size() || widths[i] > widths[widest]))
                widest = i;
        if (widest == columns.size()) break;
        --widths[widest];
        --total;
    }
    return widths;
}

/// Omits the column with the lowest omit_order above 0. False if no column may be omitted.
bool omit_column(std::vector<Column>& columns, TableRows& rows) {
    const auto first =
        std::min_element(columns.begin(), columns.end(), [](const Column& a, const Column& b) {
            return a.omit_order != 0 && (b.omit_order == 0 || a.omit_order < b.omit_order);
        });
    if (columns.size() < 2 || first->omit_order == 0) return false;
    const auto at = first - columns.begin();
    for (auto& row : rows) row.erase(row.begin() + at);
    columns.erase(first);
    return true;
}

std::string cell_text(const std::string& text, std::size_t width, Align align) {
    std::string cell = text;
    if (text::width_of(text) > width) cell = std::string(text::fitting(text, width - 1)) + "~";
    const std::string blanks(width - text::width_of(cell), ' ');
    return align == Align::Left ? cell + blanks : blanks + cell;
}

/// The name of a column for -o: "P50-MS" for "P50 ms", "IDEAL" for "| IDEAL".
std::string name_of(const Column& column) {
    std::string name;
    for (const char letter : column.title) {
        const auto code = static_cast<unsigned char>(letter);
        if (std::isalnum(code) != 0)
            name += static_cast<char>(std::toupper(code));
        else if (!name.empty())
            name += '-';
    }
    return name;
}

/// The names in a list such as "NAME,vram", in capitals.
std::vector<std::string> split(const std::string& list) {
    std::vector<std::string> names;
    std::istringstream words(list);
    for (std::string word; std::getline(words, word, ',');)
        names.push_back(name_of({.title = word}));
    return names;
}

/// The names of the columns of all tables: "GPU, STATE or VF, NAME".
std::string list_of(const std::vector<std::vector<Column>>& tables) {
    std::string list;
    for (const auto& columns : tables) {
        std::string_view gap = list.empty() ? "" : " or ";
        for (const Column& column : columns)
            list += std::string(std::exchange(gap, ", ")) + name_of(column);
    }
    return list;
}

/// The index of a column; columns.size() if there is no such column.
std::size_t index_of(const std::string& name, const std::vector<Column>& columns) {
    return static_cast<std::size_t>(
        std::find_if(columns.begin(), columns.end(),
                     [&name](const Column& column) { return name_of(column) == name; }) -
        columns.begin());
}

std::string table_text(std::vector<Column> columns, TableRows rows) {
    for (auto& row : rows)
        for (std::string& cell : row)
            if (cell.empty()) cell = "-";
    std::vector<std::size_t> widths = widths_of(columns, rows);
    while (line_width(widths) > kColumns && omit_column(columns, rows))
        widths = widths_of(columns, rows);
    std::string text;
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i)
            line += (i == 0 ? "" : std::string(kGap, ' ')) +
                    cell_text(row[i], widths[i], columns[i].align);
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
    return text;
}

}  // namespace

std::vector<Column> columns_of(std::span<const PropertyColumn> columns) {
    std::vector<Column> list;
    for (const PropertyColumn& column : columns) list.push_back(column.column);
    return list;
}

void TableOptions::describe(CLI::App& command, const std::vector<std::vector<Column>>& tables) {
    const auto choose = [this, tables](const std::string& list) {
        chosen_ = split(list);
        if (std::none_of(tables.begin(), tables.end(),
                         [this](const auto& one) { return all_chosen_in(one); }))
            throw CLI::ValidationError(
                "--output", fmt::format("no table has the columns '{}'; the columns are {}",
                                        printable(list), list_of(tables)));
    };
    CLI::Option* json = command.get_parent()->get_option("--json");
    const std::string help = "only these columns, uncut: " + list_of(tables);
    command.add_option_function<std::string>("-o,--output", choose, help)
        ->type_name("COLUMNS")
        ->excludes(json);
    command.add_flag("--noheadings", has_no_headings_, "no heading line")->excludes(json);
}

bool TableOptions::all_chosen_in(const std::vector<Column>& columns) const {
    return std::all_of(chosen_.begin(), chosen_.end(), [&columns](const std::string& name) {
        return index_of(name, columns) < columns.size();
    });
}

std::vector<std::size_t> TableOptions::shown(const std::vector<Column>& columns) const {
    std::vector<std::size_t> indices;
    for (const std::string& name : chosen_) indices.push_back(index_of(name, columns));
    for (std::size_t i = 0; chosen_.empty() && i < columns.size(); ++i)
        if (!columns[i].is_extra) indices.push_back(i);
    return indices;
}

std::string TableOptions::text(const std::vector<Column>& columns, TableRows rows) const {
    std::vector<Column> shown_columns;
    std::vector<std::string> titles;
    for (const Column& column : columns) titles.emplace_back(column.title);
    if (!has_no_headings_) rows.insert(rows.begin(), std::move(titles));
    TableRows cells(rows.size());
    for (const std::size_t i : shown(columns)) {
        const bool is_chosen = !chosen_.empty();
        shown_columns.push_back(is_chosen ? Column{columns[i].title, columns[i].align}
                                          : columns[i]);
        for (std::size_t row = 0; row < rows.size(); ++row) cells[row].push_back(rows[row].at(i));
    }
    return table_text(std::move(shown_columns), std::move(cells));
}

std::string TableOptions::text(std::span<const PropertyColumn> columns,
                               const std::vector<Properties>& objects) const {
    TableRows rows;
    for (const Properties& object : objects) {
        auto& row = rows.emplace_back();
        for (const PropertyColumn& column : columns)
            row.push_back(value_of(object, column.property, column.format));
    }
    return text(columns_of(columns), std::move(rows));
}

std::string TableOptions::properties(std::span<const PropertyColumn> columns) const {
    std::string names;
    for (const std::size_t i : shown(columns_of(columns)))
        names += (names.empty() ? "" : ",") + std::string(columns[i].property);
    return names;
}

}  // namespace vgpu::cli
