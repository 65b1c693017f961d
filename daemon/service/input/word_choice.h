// SPDX-License-Identifier: MIT
//
// Word: a word for a value of an enum, in options, documents or the state file. Tables of Words are
// constexpr arrays; errors list a table's words. Used by vf/qos and vf/assignment_policy.
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
template <typename Enum> Word(std::string_view, Enum) -> Word<Enum>;  // clang 14 needs it

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

/// The words as a list for messages: "high, normal or low".
template <typename Enum, std::size_t N>
std::string list_of(const std::array<Word<Enum>, N>& words) {
    std::string list{words.front().name};
    for (std::size_t i = 1; i < N; ++i)
        list += fmt::format("{}{}", i + 1 == N ? " or " : ", ", words[i].name);
    return list;
}

/// None if the option is absent; OutOfRange for an unknown word.
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

/// Reads the word of `key`. `to` stays if `key` is absent.
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
        section.complain(key, fmt::format("must be {}", list_of(words)));
}

/// The value of the word at `key`; `standard` if `key` is absent. Throws as nlohmann::json does,
/// also for an unknown word.
template <typename Enum, std::size_t N>
Enum word_of(const nlohmann::json& json, const char* key, const std::array<Word<Enum>, N>& words,
             Enum standard) {
    if (!json.contains(key)) return standard;
    const auto value = value_of(words, json.at(key).get<std::string>());
    if (!value) throw std::runtime_error(fmt::format("a {} is unknown", key));
    return *value;
}

}  // namespace vgpu::daemon
