// SPDX-License-Identifier: MIT
#include "cli/command_tree.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <sstream>

namespace vgpu::cli {

namespace {

bool is_one_of(const std::string& word, std::initializer_list<std::string_view> words) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

/// Derives the kind of an option's value from the value's label, because CLI11 has no such kinds.
ValueKind kind_of(const CLI::Option& option, const std::string& label) {
    if (option.get_items_expected_max() == 0) return ValueKind::None;
    if (is_one_of(label, {"TARGET", "GPU", "VF"})) return ValueKind::Target;
    return is_one_of(label, {"FILE", "DIR"}) ? ValueKind::File : ValueKind::Word;
}

/// The choices in a type name of CLI11 such as "TEXT:{chrome,svg}".
std::vector<std::string> choices_in(const std::string& type) {
    std::vector<std::string> choices;
    const std::size_t open = type.find('{'), close = type.rfind('}');
    if (open == std::string::npos || close == std::string::npos) return choices;
    std::istringstream list(type.substr(open + 1, close - open - 1));
    for (std::string choice; std::getline(list, choice, ',');) choices.push_back(choice);
    return choices;
}

/// The label of an option's value: the first of these that exists:
///   - the name of a positional;
///   - the choices ("chrome|svg");
///   - a type name that Verb::describe() has set ("SIZE"), so not one of CLI11's own;
///   - the last word of the option's name ("MS" for --timeout-ms).
std::string label_of(const CLI::Option& option, const std::vector<std::string>& choices) {
    std::string name = option.get_single_name();
    if (option.get_positional()) return name;
    if (!choices.empty()) return fmt::format("{}", fmt::join(choices, "|"));
    const std::string type = option.get_type_name();
    const std::string type_name = type.substr(0, type.find_first_of(": "));
    if (!is_one_of(type_name, {"TEXT", "UINT"})) return type_name;
    name.erase(0, name.rfind('-') + 1);
    for (char& letter : name)
        letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
    return name;
}

/// The description with range and default: "time between refreshes (100..60000, default 1000)".
std::string described(const CLI::Option& option) {
    const std::string type = option.get_type_name(), initial = option.get_default_str();
    const std::size_t colon = type.find(':');
    std::string facts = colon == std::string::npos || type.find('{') != std::string::npos
                            ? ""
                            : type.substr(colon + 1);
    if (!initial.empty()) facts += (facts.empty() ? "default " : ", default ") + initial;
    return option.get_description() + (facts.empty() ? "" : " (" + facts + ")");
}

TreeOption tree_option(const CLI::Option& option) {
    const std::vector<std::string> choices = choices_in(option.get_type_name());
    const std::string label = label_of(option, choices);
    TreeOption one{.names = {},
                   .label = label,
                   .description = described(option),
                   .value = kind_of(option, label),
                   .choices = choices,
                   .is_required = option.get_required(),
                   .is_repeatable = option.get_items_expected_max() > 1};
    for (const std::string& name : option.get_snames()) one.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) one.names.push_back("--" + name);
    return one;
}

}  // namespace

TreeVerb verb_of(const CLI::App& app) {
    TreeVerb verb{.name = app.get_name(),
                  .group = app.get_group(),
                  .description = app.get_description(),
                  .footer = app.get_footer(),
                  .options = {},
                  .positionals = {}};
    for (const CLI::Option* option : app.get_options()) {
        const bool is_help_of_verb = app.get_parent() != nullptr && option == app.get_help_ptr();
        if (is_help_of_verb || option->get_group().empty()) continue;
        TreeOption one = tree_option(*option);
        (one.names.empty() ? verb.positionals : verb.options).push_back(std::move(one));
    }
    return verb;
}

CommandTree tree_of(const CLI::App& app) {
    CommandTree tree{.root = verb_of(app), .verbs = {}};
    const auto is_shown = [](const CLI::App* one) { return !one->get_group().empty(); };
    for (const CLI::App* verb : app.get_subcommands(is_shown)) tree.verbs.push_back(verb_of(*verb));
    return tree;
}

std::string usage_of(const TreeVerb& verb) {
    std::string line = "vgpuctl " + verb.name;
    for (const TreeOption& positional : verb.positionals) {
        const std::string word = positional.label + (positional.is_repeatable ? "..." : "");
        line += positional.is_required ? " " + word : " [" + word + "]";
    }
    bool has_more = false;
    for (const TreeOption& option : verb.options) {
        if (option.is_required) line += " " + option.names.back() + " " + option.label;
        has_more = has_more || !option.is_required;
    }
    return line + (has_more ? " [OPTIONS]" : "");
}

std::string sentence_of(const TreeVerb& verb) {
    std::string sentence = verb.description + ".";
    sentence.front() =
        static_cast<char>(std::toupper(static_cast<unsigned char>(sentence.front())));
    return sentence;
}

}  // namespace vgpu::cli
