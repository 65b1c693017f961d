// SPDX-License-Identifier: MIT
//
// Formats values for all verbs: sizes, shares, durations, wrapped text, JSON with a schema id.
// Pure.
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

/// Fixed, so that output is comparable.
inline constexpr std::size_t kColumns = 80;

/// "-" if missing or empty. Booleans are yes and no, lists are joined by ", ", reals have three
/// places, texts are printable().
std::string text_of(const Properties& properties, const std::string& name);
/// 0, 0.0 or false if missing or of another type, as from a vgpud of another release.
std::uint64_t number_of(const Properties& properties, const std::string& name);
double real_of(const Properties& properties, const std::string& name);
bool flag_of(const Properties& properties, const std::string& name);

using Formatter = std::string (*)(const Properties& properties, const std::string& name);
/// "-" if the property is missing: vgpud does not know it. `name`: the property, then others that
/// `format` uses, separated by commas.
std::string value_of(const Properties& properties, std::string_view name, Formatter format);
/// "-" if missing.
std::string size_of(const Properties& properties, const std::string& name);
/// "12.5 %" for a `share` of 0.125.
std::string percent_text(double share);
std::string percent_of(const Properties& properties, const std::string& name);
/// "+0.31"; positive: less received than the share (docs/scheduling.md).
std::string lag_text(double quanta);
/// "812 us", "1.25 ms"
std::string duration_text(std::uint64_t ns);
/// "-" if missing.
std::string duration_of(const Properties& properties, const std::string& name);
/// "-" also for 0: nothing was measured.
std::string measured_of(const Properties& properties, const std::string& name);

/// Lines of kColumns at most, broken at blanks, with newlines. The first continues after `used`
/// letters; others are indented.
std::string wrapped_text(std::string_view text, std::size_t indent, std::size_t used = 0);

/// Names in snake_case; "Agent.Connected" becomes a member of "agent". Values keep their types.
nlohmann::ordered_json json_of(const Properties& properties);
nlohmann::ordered_json json_of(const std::vector<Properties>& list);
/// "schema" first, indented by two; for every --json output of one document.
std::string document_text(std::string_view schema, nlohmann::ordered_json members);
/// One line, because it may follow lines of events.
std::string error_document(const ServiceError& error);

}  // namespace vgpu::cli
