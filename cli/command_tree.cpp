// SPDX-License-Identifier: MIT
#include "cli/command_tree.h"

#include <algorithm>
#include <array>
#include <sstream>

namespace vgpu::cli {

namespace {

bool is_any(const std::string& word, std::initializer_list<std::string_view> words) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

/// Derives the kind from the option's name: TARGET and --gpu, for example, name objects of vgpud.
/// CLI11 does not distinguish kinds of values, so a new option for a file or a target must use one
/// of these names or be added here.
ValueKind kind_of(const CLI::Option& option) {
    if (option.get_items_expected_max() == 0) return ValueKind::None;
    const std::string name = option.get_single_name();
    if (is_any(name, {"TARGET", "TARGETS", "gpu"})) return ValueKind::Target;
    if (is_any(name, {"FILE", "output", "config", "file", "plan", "profile-file", "f"}))
        return ValueKind::File;
    return ValueKind::Word;
}

/// The choices in "TEXT:{chrome,svg}", CLI11's description of a value with choices.
std::vector<std::string> choices_in(const std::string& type) {
    std::vector<std::string> choices;
    const std::size_t open = type.find('{'), close = type.rfind('}');
    if (open == std::string::npos || close == std::string::npos) return choices;
    std::istringstream list(type.substr(open + 1, close - open - 1));
    for (std::string choice; std::getline(list, choice, ',');) choices.push_back(choice);
    return choices;
}

TreeOption tree_option(const CLI::Option& option) {
    TreeOption one{
        .names = {},
        .label = option.get_positional() ? option.get_single_name() : option.get_type_name(),
        .description = option.get_description(),
        .initial = option.get_default_str(),
        .value = kind_of(option),
        .choices = choices_in(option.get_type_name()),
        .is_required = option.get_required(),
        .is_repeatable = option.get_items_expected_max() > 1};
    for (const std::string& name : option.get_snames()) one.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) one.names.push_back("--" + name);
    return one;
}

TreeVerb tree_verb(const CLI::App& app) {
    TreeVerb verb{.name = app.get_name(),
                  .description = app.get_description(),
                  .options = {},
                  .positionals = {}};
    for (const CLI::Option* option : app.get_options()) {
        if (option->get_group().empty()) continue;  // hidden
        TreeOption one = tree_option(*option);
        (one.names.empty() ? verb.positionals : verb.options).push_back(std::move(one));
    }
    return verb;
}

}  // namespace

CommandTree tree_of(const CLI::App& app) {
    CommandTree tree{.root = tree_verb(app), .verbs = {}};
    const auto is_shown = [](const CLI::App* one) { return !one->get_group().empty(); };
    for (const CLI::App* verb : app.get_subcommands(is_shown))
        tree.verbs.push_back(tree_verb(*verb));
    return tree;
}

}  // namespace vgpu::cli
