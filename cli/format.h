// SPDX-License-Identifier: MIT
//
// How values look: tables that fit 80 columns, sizes, shares, and JSON with a schema id. Pure
// functions of Properties; every verb prints through them.
#pragma once

#include "cli/service.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::cli {

inline constexpr std::size_t kColumns = 80;

/// Text of one property; "-" if it is missing.
std::string text_of(const Properties& properties, const std::string& name);
std::uint64_t number_of(const Properties& properties, const std::string& name);
double real_of(const Properties& properties, const std::string& name);
bool flag_of(const Properties& properties, const std::string& name);

/// "128 MiB"
std::string size_text(std::uint64_t bytes);
/// "12.5 %"
std::string percent_text(double share);
/// "+0.31"
std::string lag_text(double quanta);
/// "812 us", "1.25 ms"
std::string duration_text(std::uint64_t ns);

/// Bytes of "256M", "1G", "16777216", "64MiB"; nothing if it is no size.
std::optional<std::uint64_t> parse_size(std::string_view text);

enum class Align { Left, Right };

struct Column {
    std::string title;
    Align align = Align::Left;
    bool may_shrink = false;  ///< cut with '~' if the table is too wide
};

/// Rows under their titles, at most kColumns wide if a column may shrink.
std::string table_text(const std::vector<Column>& columns,
                       const std::vector<std::vector<std::string>>& rows);

/// {"schema": id, key: [...]} with the properties' names in snake_case.
nlohmann::ordered_json json_of(const Properties& properties);
nlohmann::ordered_json json_of(const std::vector<Properties>& list);
std::string document_text(std::string_view schema, nlohmann::ordered_json members);

/// "; did you mean 'list'?" or "".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace vgpu::cli
