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

/// Width of wrapped text and tables, in terminal columns. Fixed, so that outputs can be compared.
inline constexpr std::size_t kColumns = 80;

/// The property `name` as text; "-" if it is missing or empty. A boolean becomes "yes" or "no". A
/// list has commas between its items. A real has three decimal places. In texts and lists,
/// printable() replaces control characters by '?'.
std::string text_of(const Properties& properties, const std::string& name);
/// The property `name` as a value. 0, 0.0 or false if it is missing or has another type, as from a
/// vgpud of another release.
std::uint64_t number_of(const Properties& properties, const std::string& name);
double real_of(const Properties& properties, const std::string& name);
bool flag_of(const Properties& properties, const std::string& name);

/// Returns the text of the property `name`.
using Formatter = std::string (*)(const Properties& properties, const std::string& name);
/// Formats a property; "-" if it is missing, as from a vgpud of another release. `name`: the
/// property's name, and after commas the names of other properties that `format` reads.
std::string value_of(const Properties& properties, std::string_view name, Formatter format);
/// A property that is a size in bytes; "-" if it is missing.
std::string size_of(const Properties& properties, const std::string& name);
/// "12.5 %" for a `share` of 0.125.
std::string percent_text(double share);
/// A property that is a share, as percent_text(); "0.0 %" if it is missing.
std::string percent_of(const Properties& properties, const std::string& name);
/// A lag as "+0.31", in units of the longest slice. Positive: the VF received less service than it
/// should have (docs/scheduling.md).
std::string lag_text(double quanta);
/// A duration as "812.0 us" (below 1 ms), "1.25 ms" (below 10 s) or "12.5 s".
std::string duration_text(std::uint64_t ns);
/// A property that is a duration in ns; "-" if it is missing.
std::string duration_of(const Properties& properties, const std::string& name);
/// The same as duration_of(), but "-" also for 0, which means that nothing was measured.
std::string measured_of(const Properties& properties, const std::string& name);

/// Wraps a text into lines of at most kColumns, each with a newline. Breaks lines at blanks, and
/// inside words that are too long. The first line begins after `used` columns that the caller has
/// printed. Later lines are indented by `indent`.
std::string wrapped_text(std::string_view text, std::size_t indent, std::size_t used = 0);

/// The properties as a JSON object. Names become snake_case, and "Agent.Connected" becomes the
/// member "connected" of "agent". Values keep their types.
nlohmann::ordered_json json_of(const Properties& properties);
nlohmann::ordered_json json_of(const std::vector<Properties>& list);
/// A JSON document with "schema" as first member, indented by two. Verbs print such documents with
/// --json. Only documents of errors and events have one line.
std::string document_text(std::string_view schema, nlohmann::ordered_json members);
/// An error as a document in one line, because it may follow lines of events.
std::string error_document(const ServiceError& error);

}  // namespace vgpu::cli
