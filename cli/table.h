// SPDX-License-Identifier: MIT
//
// Tables, at most 80 characters wide if possible, and options for their columns (-o) and titles
// (--noheadings). Output and --help use the same list of columns.
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

/// Right alignment is for numbers.
struct Column {
    std::string_view title;
    Align align = Align::Left;
    bool may_shrink = false;  ///< true if a cell may be cut ('~') in a table that is too wide
    /// Order in which columns are omitted if the table is still too wide: 1 first; 0: never.
    unsigned omit_order = 0;
    bool is_extra = false;  ///< true if the column is shown only if -o names it
};

/// A column with the text of a property. See value_of().
struct PropertyColumn {
    Column column;
    const char* property;
    Formatter format;
};

constexpr Column extra(std::string_view title) {
    return {.title = title, .is_extra = true};
}

std::vector<Column> columns_of(std::span<const PropertyColumn> columns);

using TableRows = std::vector<std::vector<std::string>>;
/// The options -o and --noheadings of a verb. Must outlive the parsing.
class TableOptions {
public:
    /// Adds the options. `tables`: the columns of each possible table; the names in -o must fit one
    /// of them. A name is the title in capitals, with '-' for characters other than letters and
    /// digits.
    void describe(CLI::App& command, const std::vector<std::vector<Column>>& tables);

    /// True if -o or --noheadings was given. Then only tables are printed, for scripts.
    [[nodiscard]] bool is_plain() const { return !chosen_.empty() || has_no_headings_; }
    /// True if the table has all columns that -o names.
    [[nodiscard]] bool fits(const std::vector<Column>& columns) const;
    /// The table, at most kColumns wide if columns can shrink (to 8 at least) or be omitted.
    /// Columns that -o names are neither shrunk nor omitted. One cell per column; empty cells
    /// become "-". Targets must not shrink, because gpu0/vf10 and gpu0/vf11 would look alike.
    [[nodiscard]] std::string text(const std::vector<Column>& columns, TableRows rows) const;
    [[nodiscard]] std::string text(std::span<const PropertyColumn> columns,
                                   const std::vector<Properties>& objects) const;
    /// The properties that the shown columns need, separated by commas, for
    /// Service::list_vfs_with().
    [[nodiscard]] std::string properties(std::span<const PropertyColumn> columns) const;

private:
    [[nodiscard]] std::vector<std::size_t> shown(const std::vector<Column>& columns) const;

    std::vector<std::string> chosen_;  ///< empty: all but the extra ones
    bool has_no_headings_ = false;
};

}  // namespace vgpu::cli
