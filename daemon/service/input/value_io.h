// SPDX-License-Identifier: MIT
//
// Reads values of each kind (value_kind.h) from options, documents and state files, and converts
// values to JSON. read_value() has one overload for each kind and source; vf/settings calls these
// overloads for all settings of a VF.
#pragma once

#include "daemon/service/input/json_section.h"
#include "daemon/service/input/options.h"
#include "daemon/service/input/value_kind.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>

namespace vgpu::daemon {

/// The words as text, such as "high, normal or low".
template <typename Enum, std::size_t N> std::string list_of(const Words<Enum, N>& words) {
    std::string list{words.front().name};
    for (std::size_t i = 1; i < N; ++i)
        list += fmt::format("{}{}", i + 1 == N ? " or " : ", ", words[i].name);
    return list;
}

/// The value of the word `name`; none if `words` has no such word.
template <typename Enum, std::size_t N>
std::optional<Enum> value_among(const Words<Enum, N>& words, std::string_view name) {
    for (const Word<Enum>& word : words)
        if (word.name == name) return word.value;
    return {};
}

/// The mistake in a line of text, and the fix; empty if the line has no mistake.
std::string mistake_in(std::string_view text, const Line& kind);

/// Reads an option into `to`, which keeps its value if the option is absent. All overloads for
/// options fail with WrongType or OutOfRange.
inline Result<> read_value(const OptionReader& options, const std::string& key, const Whole& kind,
                           std::uint32_t& to) {
    TRY(auto number, options.number(key, {kind.takes_zero ? 0 : kind.min, kind.max}));
    // the range above accepts 0 for a default; any other number must be within kind.min..kind.max
    if (number && *number != 0) {
        TRY(number, options.number(key, {kind.min, kind.max}));
    }
    if (number) to = static_cast<std::uint32_t>(*number);
    return {};
}

inline Result<> read_value(const OptionReader& options, const std::string& key, const Real& kind,
                           double& to) {
    TRY(const auto number, options.real(key, kind.min, kind.max));
    to = number.value_or(to);
    return {};
}

inline Result<> read_value(const OptionReader& options, const std::string& key, const Flag&,
                           bool& to) {
    if (!options.has(key)) return {};
    TRY(to, options.flag(key));
    return {};
}

template <typename Enum, std::size_t N>
Result<> read_value(const OptionReader& options, const std::string& key,
                    const Words<Enum, N>& words, Enum& to) {
    TRY(const auto text, options.text(key));
    if (!text) return {};
    const auto value = value_among(words, *text);
    if (!value)
        return fail(ErrorId::OutOfRange, fmt::format("option '{}' is '{}', not {}", key,
                                                     text->substr(0, 40), list_of(words)));
    to = *value;
    return {};
}

Result<> read_value(const OptionReader& options, const std::string& key, const Line& kind,
                    std::string& to);

/// Reads a member of a document into `to`, which keeps its value if the member is absent or wrong.
/// All overloads for documents call complain() for a wrong value.
inline void read_value(JsonSection& section, const std::string& key, const Whole& kind,
                       std::uint32_t& to) {
    const nlohmann::json* value = section.find(key);
    if (kind.takes_zero && value != nullptr && *value == 0)
        to = 0;
    else
        section.number(key, {kind.min, kind.max}, to);
}

inline void read_value(JsonSection& section, const std::string& key, const Real& kind, double& to) {
    section.real(key, kind.min, kind.max, to);
}

inline void read_value(JsonSection& section, const std::string& key, const Flag&, bool& to) {
    section.flag(key, to);
}

template <typename Enum, std::size_t N>
void read_value(JsonSection& section, const std::string& key, const Words<Enum, N>& words,
                Enum& to) {
    if (section.find(key) == nullptr) return;
    std::string text;
    section.text(key, text);
    const auto value = value_among(words, text);
    if (value)
        to = *value;
    else
        section.complain(key, fmt::format("must be {}", list_of(words)));
}

/// Unlike in an option, an empty text is a mistake.
void read_value(JsonSection& section, const std::string& key, const Line& kind, std::string& to);

/// Reads a member of a state file into `to`. If the member is absent, this overload throws, but the
/// other overloads for state files leave `to` as it is. All overloads throw an exception of
/// nlohmann::json for a wrong type, and std::runtime_error for an unknown word or a wrong text.
inline void read_value(const nlohmann::json& json, const std::string& key, const Whole&,
                       std::uint32_t& to) {
    json.at(key).get_to(to);
}

inline void read_value(const nlohmann::json& json, const std::string& key, const Real&,
                       double& to) {
    to = json.value(key, to);
}

inline void read_value(const nlohmann::json& json, const std::string& key, const Flag&, bool& to) {
    to = json.value(key, to);
}

template <typename Enum, std::size_t N>
void read_value(const nlohmann::json& json, const std::string& key, const Words<Enum, N>& words,
                Enum& to) {
    if (!json.contains(key)) return;
    const auto value = value_among(words, json.at(key).get<std::string>());
    if (!value) throw std::runtime_error(fmt::format("the word for {} is unknown", key));
    to = *value;
}

void read_value(const nlohmann::json& json, const std::string& key, const Line& kind,
                std::string& to);

/// The form of a value in JSON: for an enum its word, else the value itself.
template <typename Kind, typename Plain>
const Plain& json_form_of(const Kind&, const Plain& value) {
    return value;
}
template <typename Enum, std::size_t N>
std::string_view json_form_of(const Words<Enum, N>& words, const Enum& value) {
    return name_among(words, value);
}

}  // namespace vgpu::daemon
