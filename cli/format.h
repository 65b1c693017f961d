// SPDX-License-Identifier: MIT
//
// Formats values: sizes, shares, durations, wrapped text, and JSON with a schema id. Pure functions
// of Properties; every verb prints through them, for a uniform look.
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

/// The usual width of a terminal. Output does not depend on the real one, to be comparable.
inline constexpr std::size_t kColumns = 80;

/// Text of one property; "-" if it is missing or empty.
/// Booleans are yes and no, lists are joined by ", ", reals have three places, texts are
/// printable().
std::string text_of(const Properties& properties, const std::string& name);
/// Value of one property; 0, 0.0 or false if it is missing or has another type: a vgpud of another
/// release may lack it, and a table must not fail for that.
std::uint64_t number_of(const Properties& properties, const std::string& name);
double real_of(const Properties& properties, const std::string& name);
bool flag_of(const Properties& properties, const std::string& name);

/// Text of one property, such as text_of() and size_of().
using Formatter = std::string (*)(const Properties& properties, const std::string& name);
/// The text by `format`; "-" if the property is missing, which means that vgpud does not know it.
/// `name`: further properties that `format` uses may follow the first one after commas.
std::string value_of(const Properties& properties, std::string_view name, Formatter format);
/// size_text() of a property; "-" if it is missing.
std::string size_of(const Properties& properties, const std::string& name);
/// "12.5 %"
/// `share` is a fraction of 1, not a percentage.
std::string percent_text(double share);
std::string percent_of(const Properties& properties, const std::string& name);
/// "+0.31"
/// Always with a sign; positive: the VF has received less than its share (docs/scheduling.md).
std::string lag_text(double quanta);
/// "812 us", "1.25 ms"
std::string duration_text(std::uint64_t ns);
/// duration_text() of a property; "-" if it is missing.
std::string duration_of(const Properties& properties, const std::string& name);
/// The same; also "-" for 0, which vgpud reports if it has measured nothing.
std::string measured_of(const Properties& properties, const std::string& name);

/// `text` with its newline, in lines of kColumns at most, broken at blanks if there are any.
/// The first line continues after `used` printed letters; the others are indented.
std::string wrapped_text(std::string_view text, std::size_t indent, std::size_t used = 0);

/// An object with the properties' names in snake_case.
/// "Agent.Connected" becomes a member of "agent". Values keep their types; nothing is formatted.
nlohmann::ordered_json json_of(const Properties& properties);
nlohmann::ordered_json json_of(const std::vector<Properties>& list);
/// The document with "schema" first, indented by two, with its newline. Every --json output that is
/// one document comes from this function; docs/vgpuctl.md lists the ids.
std::string document_text(std::string_view schema, nlohmann::ordered_json members);
/// The document of a failure, on one line, because it may follow lines of events.
std::string error_document(const ServiceError& error);

}  // namespace vgpu::cli
