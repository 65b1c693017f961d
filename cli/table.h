// SPDX-License-Identifier: MIT
//
// Tables for people, at most 80 columns wide, and the options with which a user chooses columns
// (-o) or leaves out the titles (--noheadings). Every verb that prints a table has one list of its
// columns, from which come the table and the text of --help. One thread.
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

/// Numbers are aligned right, so that their digits can be compared by eye.
struct Column {
    std::string_view title;
    Align align = Align::Left;
    bool may_shrink = false;  ///< cut with '~' if the table is too wide
    /// Order in which columns are left out if the table is still too wide: 1 first; 0: never.
    unsigned gives_way = 0;
    bool is_extra = false;  ///< printed only if -o names it
};

/// A column with the property that it shows; see value_of() for both.
struct PropertyColumn {
    Column look;
    const char* property;
    Formatter format;
};

constexpr Column extra(std::string_view title) {
    return {.title = title, .is_extra = true};
}

/// The columns without their properties.
std::vector<Column> columns_of(std::span<const PropertyColumn> columns);

using TableRows = std::vector<std::vector<std::string>>;
/// The options -o and --noheadings of a verb, which must outlive the parsing.
class TableOptions {
public:
    /// Adds the options. `tables`: the columns of each table that the verb can print. -o must name
    /// columns of one of them; a name is a title in capitals with '-' for what is no letter.
    void describe(CLI::App& command, const std::vector<std::vector<Column>>& tables);

    /// True if an option was given: then the verb prints nothing but tables, for scripts.
    [[nodiscard]] bool is_plain() const { return !chosen_.empty() || has_no_headings_; }
    /// True if a table with these columns has all that -o names.
    [[nodiscard]] bool fits(const std::vector<Column>& columns) const;
    /// The table, at most kColumns wide if columns may shrink or give way; columns that -o names do
    /// neither. A row has one cell per column; an empty cell becomes "-". Widths are those of a
    /// terminal. A column shrinks to 8 at least, so a table can still be wider. Do not shrink
    /// targets, which are arguments of commands: gpu0/vf10 and gpu0/vf11 would look alike.
    [[nodiscard]] std::string text(const std::vector<Column>& columns, TableRows rows) const;
    [[nodiscard]] std::string text(std::span<const PropertyColumn> columns,
                                   const std::vector<Properties>& objects) const;
    /// The properties that text() shows, separated by commas, for Service::list_vfs_with().
    [[nodiscard]] std::string properties(std::span<const PropertyColumn> columns) const;

private:
    /// Indices of the columns to print, in their order.
    [[nodiscard]] std::vector<std::size_t> shown(const std::vector<Column>& columns) const;

    std::vector<std::string> chosen_;  ///< names of columns; empty: all but the extra ones
    bool has_no_headings_ = false;
};

}  // namespace vgpu::cli
