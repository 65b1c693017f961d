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
    std::string label;               ///< of the value: "TARGET", "TEXT"
    std::string description;
    std::string initial;  ///< default value; may be empty
    ValueKind value = ValueKind::None;
    std::vector<std::string> choices;  ///< of a Word; empty: any
    bool is_required = false;
    bool is_repeatable = false;
};

/// A verb, or vgpuctl itself as the root. Hidden options (without a group) are left out.
struct TreeVerb {
    std::string name;
    std::string description;
    std::vector<TreeOption> options;
    std::vector<TreeOption> positionals;
};

/// The options of the application, and its verbs in their order.
struct CommandTree {
    TreeVerb root;
    std::vector<TreeVerb> verbs;
};

/// `app` must have all its verbs described; defaults are its current values.
[[nodiscard]] CommandTree tree_of(const CLI::App& app);

}  // namespace vgpu::cli
