// SPDX-License-Identifier: MIT
//
// CommandTree holds vgpuctl's verbs and options as plain values. It is taken from the CLI11
// application that parses them, so that completion and manual page contain what --help shows. Pure.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace vgpu::cli {

/// Kinds of values that an option takes.
enum class ValueKind { None, Target, File, Word };

/// An option or a positional argument of a verb.
struct TreeOption {
    std::vector<std::string> names;  ///< "-o", "--output"; empty: positional
    std::string label;               ///< of the value: "TARGET", "SIZE", "chrome|svg"
    std::string description;         ///< with the range and the default value
    ValueKind value = ValueKind::None;
    std::vector<std::string> choices;  ///< of a Word; empty: any
    bool is_required = false;
    bool is_repeatable = false;
};

/// A verb, or vgpuctl itself as the root. Hidden options (without a group) are left out, and of a
/// verb --help, which is an option of all verbs.
struct TreeVerb {
    std::string name;
    std::string group;        ///< section of the help
    std::string description;  ///< lower case, without a full stop
    std::string footer;       ///< "Example: vgpuctl list" and remarks, in lines
    std::vector<TreeOption> options;
    std::vector<TreeOption> positionals;
};

/// The options of the application, and its verbs in their order. Hidden verbs are left out.
struct CommandTree {
    TreeVerb root;
    std::vector<TreeVerb> verbs;
};

/// `app` must have all its verbs described; defaults are its current values.
[[nodiscard]] CommandTree tree_of(const CLI::App& app);
/// One verb of the tree, hidden or not.
[[nodiscard]] TreeVerb verb_of(const CLI::App& app);
/// "vgpuctl claim TARGET --owner OWNER [OPTIONS]"; words in capitals are placeholders.
[[nodiscard]] std::string usage_of(const TreeVerb& verb);
/// "Give a VF to an owner."
[[nodiscard]] std::string sentence_of(const TreeVerb& verb);

}  // namespace vgpu::cli
