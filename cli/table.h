// SPDX-License-Identifier: MIT
//
// Formats tables, at most 80 columns wide if possible. Users choose columns with -o, and omit the
// titles with --noheadings. Output and --help use the same list of columns.
#pragma once

#include "cli/format.h"
#include "cli/service.h"

#include <CLI/CLI.hpp>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::cli {

enum class Align { Left, Right };

/// A column of a table. Columns of numbers use Align::Right.
struct Column {
    std::string_view title;
    Align align = Align::Left;
    bool may_shrink = false;  ///< true if cells may be cut (marked '~') in a table that is too wide
    /// Order in which columns are omitted from a table that is still too wide: 1 first, 0 never.
    unsigned omit_order = 0;
    bool is_extra = false;  ///< true if the column is shown only if -o names it
};

/// A column with the text of a property, as value_of() returns it.
struct PropertyColumn {
    Column column;
    const char* property;
    Formatter format;
};

/// A column that is shown only if -o names it.
constexpr Column extra(std::string_view title) {
    return {.title = title, .is_extra = true};
}

std::vector<Column> columns_of(std::span<const PropertyColumn> columns);

using TableRows = std::vector<std::vector<std::string>>;

/// The options -o and --noheadings of a verb. Must outlive the parsing.
class TableOptions {
public:
    /// Adds the options. `tables`: the columns of each table that the verb can print. The parser
    /// refuses -o unless one table has all columns that -o names. -o names a column by its title in
    /// capitals, with '-' for characters other than letters and digits ("P50-MS").
    void describe(CLI::App& command, const std::vector<std::vector<Column>>& tables);

    /// True if -o or --noheadings was given. The verb then prints only tables, for scripts.
    [[nodiscard]] bool is_plain() const { return !chosen_.empty() || has_no_headings_; }
    /// True if the table has all columns that -o names.
    [[nodiscard]] bool all_chosen_in(const std::vector<Column>& columns) const;
    /// The table as text. Each row has one cell per column; empty cells become "-". If the table is
    /// wider than kColumns, first cuts the cells of columns with may_shrink, to a width of 8 or
    /// more, and then omits columns with an omit_order. Neither cuts nor omits columns that -o
    /// names. A column of targets must not have may_shrink, because gpu0/vf10 and gpu0/vf11 would
    /// look alike when cut.
    [[nodiscard]] std::string text(const std::vector<Column>& columns, TableRows rows) const;
    [[nodiscard]] std::string text(std::span<const PropertyColumn> columns,
                                   const std::vector<Properties>& objects) const;
    /// The properties that the shown columns need, separated by commas, for
    /// Service::list_vfs_with().
    [[nodiscard]] std::string properties(std::span<const PropertyColumn> columns) const;

private:
    /// The indices of the columns to print, in print order.
    [[nodiscard]] std::vector<std::size_t> shown(const std::vector<Column>& columns) const;

    /// Names of columns in -o. If empty, the table has all columns except extra columns.
    std::vector<std::string> chosen_;
    bool has_no_headings_ = false;
};

}  // namespace vgpu::cli
