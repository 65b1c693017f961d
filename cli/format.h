// SPDX-License-Identifier: MIT
//
// Formats values for all verbs: sizes, shares, durations, wrapped text, JSON with a schema id. Pure
// functions.
#pragma once

#include "cli/service.h"
#include "text/nearest.h"
#include "text/size.h"
#include "text/utf8.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::cli {

using text::did_you_mean;
using text::printable;
using text::size_text;
using text::wrong_in_utf8;

/// Width of wrapped text and tables, in characters. Fixed, so that outputs can be compared.
inline constexpr std::size_t kColumns = 80;

/// The property as text; "-" if missing or empty. Booleans are yes and no, lists are joined by ",
/// ", reals have three places, and texts are printable().
std::string text_of(const Properties& properties, const std::string& name);
/// The property as a value. 0, 0.0 or false if it is missing or has another type, as from a vgpud
/// of another release.
std::uint64_t number_of(const Properties& properties, const std::string& name);
double real_of(const Properties& properties, const std::string& name);
bool flag_of(const Properties& properties, const std::string& name);

using Formatter = std::string (*)(const Properties& properties, const std::string& name);
/// Formats a property; "-" if it is missing, as from a vgpud of another release. `name`: the
/// property, then other properties that `format` uses, separated by commas.
std::string value_of(const Properties& properties, std::string_view name, Formatter format);
/// A size; "-" if missing.
std::string size_of(const Properties& properties, const std::string& name);
/// "12.5 %" for a `share` of 0.125.
std::string percent_text(double share);
std::string percent_of(const Properties& properties, const std::string& name);
/// "+0.31". Positive: the VF received less than its share (docs/scheduling.md).
std::string lag_text(double quanta);
/// "812.0 us", "1.25 ms"
std::string duration_text(std::uint64_t ns);
/// A duration; "-" if missing.
std::string duration_of(const Properties& properties, const std::string& name);
/// A measured duration; "-" also for 0, because then nothing was measured.
std::string measured_of(const Properties& properties, const std::string& name);

/// Wraps a text into lines of at most kColumns, broken at blanks, with newlines. The first line
/// continues after `used` columns; later lines are indented.
std::string wrapped_text(std::string_view text, std::size_t indent, std::size_t used = 0);

/// Names become snake_case, and "Agent.Connected" becomes a member of "agent". Values keep their
/// types.
nlohmann::ordered_json json_of(const Properties& properties);
nlohmann::ordered_json json_of(const std::vector<Properties>& list);
/// A document with "schema" as first member, indented by two. Used for every --json output of one
/// document.
std::string document_text(std::string_view schema, nlohmann::ordered_json members);
/// An error as a document in one line, because it may follow lines of events.
std::string error_document(const ServiceError& error);

}  // namespace vgpu::cli
