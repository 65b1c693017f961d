// SPDX-License-Identifier: MIT
#include "cli/command_tree.h"
#include "cli/exit_codes.h"
#include "cli/format.h"
#include "cli/pages.h"

#include <fmt/format.h>
#include <algorithm>
#include <utility>
#include <vector>

namespace vgpu::cli {

namespace {

/// A word, such as a verb or an option, and the text that describes it.
using Entry = std::pair<std::string, std::string>;

/// The entries as two columns: words and texts. For a word longer than the column, the text begins
/// on the next line.
std::string entries_text(const std::vector<Entry>& entries) {
    constexpr std::size_t kIndent = 2, kGap = 2, kWidest = 22;  // columns
    std::size_t width = 0;
    for (const auto& [word, text] : entries)
        if (word.size() <= kWidest) width = std::max(width, word.size());
    const std::size_t text_column = kIndent + width + kGap;
    std::string lines;
    for (const auto& [word, text] : entries) {
        const bool is_long = word.size() > width;
        lines += "  " + word + (is_long ? "\n" : "") +
                 std::string(is_long ? text_column : text_column - kIndent - word.size(), ' ') +
                 wrapped_text(text, text_column, text_column);
    }
    return lines;
}

std::vector<Entry> entries_of(const TreeVerb& verb) {
    std::vector<Entry> entries;
    for (const auto* list : {&verb.positionals, &verb.options})
        for (const TreeOption& option : *list) {
            std::string words = fmt::format("{}", fmt::join(option.names, ", "));
            if (option.value != ValueKind::None) words += (words.empty() ? "" : " ") + option.label;
            entries.emplace_back(words, option.description);
        }
    return entries;
}

std::string page_of(const CommandTree& tree) {
    std::string text = tree.root.description + "\n\nUsage: vgpuctl [OPTIONS] VERB [ARGUMENTS]\n";
    for (std::size_t i = 0; i < tree.verbs.size();) {
        const std::string& group = tree.verbs[i].group;
        std::vector<Entry> entries;
        for (; i < tree.verbs.size() && tree.verbs[i].group == group; ++i)
            entries.emplace_back(tree.verbs[i].name, tree.verbs[i].description);
        text += "\n" + group + ":\n" + entries_text(entries);
    }
    return text + "\nOptions of all verbs:\n" + entries_text(entries_of(tree.root)) + "\n" +
           exit_codes_text() + "\nA verb's own options and an example: vgpuctl help VERB\n";
}

std::string page_of(const TreeVerb& verb) {
    const std::string entries = entries_text(entries_of(verb));
    return fmt::format("{}\n\nUsage: {}\n{}\n\n{}{}Options of all verbs: vgpuctl help\n",
                       sentence_of(verb), usage_of(verb), verb.footer, entries,
                       entries.empty() ? "" : "\n");
}

}  // namespace

std::string help_page(const CLI::App& app) {
    return app.get_parent() == nullptr ? page_of(tree_of(app)) : page_of(verb_of(app));
}

}  // namespace vgpu::cli
