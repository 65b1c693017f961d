// SPDX-License-Identifier: MIT
//
// Word: an option, a member of a document or of the state file that is one of a few words, each of
// which stands for a value of an enum. A table of words is a constexpr array; what reads it names
// the words there are when somebody wrote another one. Used by vf/qos and vf/custody.
#pragma once

#include "daemon/service/input/json_section.h"
#include "daemon/service/input/options.h"

#include <fmt/format.h>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace vgpu::daemon {

template <typename Enum> struct Word {
    std::string_view name;
    Enum value;
};
template <typename Enum> Word(std::string_view, Enum) -> Word<Enum>;  // clang 14 wants it

template <typename Enum, std::size_t N>
std::optional<Enum> value_of(const std::array<Word<Enum>, N>& words, std::string_view name) {
    for (const Word<Enum>& word : words)
        if (word.name == name) return word.value;
    return {};
}

template <typename Enum, std::size_t N>
std::string_view name_among(const std::array<Word<Enum>, N>& words, Enum value) {
    for (const Word<Enum>& word : words)
        if (word.value == value) return word.name;
    return "unknown";
}

/// "high, normal or low"
template <typename Enum, std::size_t N>
std::string list_of(const std::array<Word<Enum>, N>& words) {
    std::string list{words.front().name};
    for (std::size_t i = 1; i < N; ++i)
        list += fmt::format("{}{}", i + 1 == N ? " or " : ", ", words[i].name);
    return list;
}

/// Nothing if the option is not there; OutOfRange if it is no word of the table.
template <typename Enum, std::size_t N>
Result<std::optional<Enum>> word_option(const OptionReader& options, const std::string& name,
                                        const std::array<Word<Enum>, N>& words) {
    TRY(const auto text, options.text(name));
    if (!text) return std::optional<Enum>{};
    const auto value = value_of(words, *text);
    if (value) return value;
    return fail(ErrorId::OutOfRange, fmt::format("option '{}' is '{}', not {}", name,
                                                 text->substr(0, 40), list_of(words)));
}

/// What is not in `section` stays.
template <typename Enum, std::size_t N>
void read_word(JsonSection& section, const std::string& key, const std::array<Word<Enum>, N>& words,
               Enum& to) {
    if (section.find(key) == nullptr) return;
    std::string text;
    section.text(key, text);
    const auto value = value_of(words, text);
    if (value)
        to = *value;
    else
        section.complain(key, fmt::format("wants {}", list_of(words)));
}

/// `standard` if it is not there. Throws as nlohmann::json does, and at a word that is unknown.
template <typename Enum, std::size_t N>
Enum word_of(const nlohmann::json& json, const char* key, const std::array<Word<Enum>, N>& words,
             Enum standard) {
    if (!json.contains(key)) return standard;
    const auto value = value_of(words, json.at(key).get<std::string>());
    if (!value) throw std::runtime_error(fmt::format("a {} is unknown", key));
    return *value;
}

}  // namespace vgpu::daemon
