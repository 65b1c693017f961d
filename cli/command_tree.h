// SPDX-License-Identifier: MIT
//
// CommandTree: vgpuctl's verbs and options as plain structs, filled from the CLI11 application, so
// that completion and manual page agree with --help. Pure functions.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace vgpu::cli {

/// The kind of an option's value, for completion. None: the option is a flag. Target: a GPU or VF.
enum class ValueKind { None, Target, File, Word };

/// An option or a positional of a verb.
struct TreeOption {
    std::vector<std::string> names;  ///< "-o", "--output"; empty for a positional
    std::string label;               ///< label of the value: "TARGET", "chrome|svg"
    std::string description;         ///< with the range and the default value
    ValueKind value = ValueKind::None;
    std::vector<std::string> choices;  ///< possible values of a Word; empty if not limited
    bool is_required = false;
    bool is_repeatable = false;
};

/// A verb, or vgpuctl itself. Leaves out hidden options and the --help of a verb.
struct TreeVerb {
    std::string name;
    std::string group;        ///< section of the help
    std::string description;  ///< lower case, without a full stop
    std::string footer;       ///< "Example: vgpuctl list" and remarks, in lines
    std::vector<TreeOption> options;
    std::vector<TreeOption> positionals;
};

/// vgpuctl and its verbs, without hidden verbs.
struct CommandTree {
    TreeVerb root;
    std::vector<TreeVerb> verbs;
};

/// The tree of `app`. A description shows the default of an option only if the verb called
/// CLI::Option::capture_default_str().
[[nodiscard]] CommandTree tree_of(const CLI::App& app);
/// A verb, which may be hidden, or vgpuctl itself.
[[nodiscard]] TreeVerb verb_of(const CLI::App& app);
/// The usage line: "vgpuctl claim TARGET --owner OWNER [OPTIONS]".
[[nodiscard]] std::string usage_of(const TreeVerb& verb);
/// The description as a sentence: "Give a VF to an owner."
[[nodiscard]] std::string sentence_of(const TreeVerb& verb);

}  // namespace vgpu::cli
