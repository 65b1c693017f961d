// SPDX-License-Identifier: MIT
#include "tests/support/doc_commands.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <utility>

#include "tests/support/deadline.h"

namespace vgpu::test {
namespace {

constexpr std::string_view kFence = "```";
constexpr std::string_view kPrompt = "$ ";
constexpr std::string_view kAnything = "...";
constexpr std::string_view kFileBegin = "<!-- file: ";
constexpr std::string_view kFileEnd = " -->";

struct Block {
    std::string language;
    std::string file;  ///< name from the line "<!-- file: NAME -->" before the block
    int line = 0;
    std::vector<std::string> lines;
};

/// The name in "<!-- file: NAME -->"; empty if `line` is not such a line.
std::string file_name(const std::string& line) {
    if (!line.starts_with(kFileBegin) || !line.ends_with(kFileEnd)) return "";
    return line.substr(kFileBegin.size(), line.size() - kFileBegin.size() - kFileEnd.size());
}

std::vector<Block> blocks_of(std::string_view document) {
    std::vector<Block> blocks;
    std::istringstream lines{std::string(document)};
    std::string file;
    bool is_inside = false;
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        if (is_inside && line == kFence) {
            is_inside = false;
        } else if (is_inside) {
            blocks.back().lines.push_back(line);
        } else if (line.starts_with(kFence)) {
            blocks.push_back({line.substr(kFence.size()), std::exchange(file, ""), number, {}});
            is_inside = true;
        } else if (!line.empty()) {
            file = file_name(line);
        }
    }
    if (is_inside)
        throw VfError(fmt::format("the block of line {} does not end", blocks.back().line));
    return blocks;
}

void add_commands(const Block& block, std::vector<DocStep>& steps) {
    bool goes_on = false;
    int number = block.line;
    const std::size_t first = steps.size();
    for (const std::string& line : block.lines) {
        ++number;
        if (line.starts_with(kPrompt))
            steps.push_back({DocStep::Kind::Command, number, line.substr(kPrompt.size()), ""});
        else if (goes_on)
            steps.back().text += "\n" + line;
        else if (steps.size() == first)
            throw VfError(fmt::format("line {}: output of no command", number));
        else
            steps.back().expected += line + "\n";
        goes_on = (line.starts_with(kPrompt) || goes_on) && line.ends_with('\\');
    }
}

}  // namespace

std::vector<DocStep> doc_steps(std::string_view document) {
    std::vector<DocStep> steps;
    for (const Block& block : blocks_of(document)) {
        if (block.file.empty()) {
            if (block.language == "console") add_commands(block, steps);
            continue;
        }
        DocStep file{DocStep::Kind::File, block.line, block.file, ""};
        for (const std::string& line : block.lines) file.expected += line + "\n";
        steps.push_back(std::move(file));
    }
    return steps;
}

std::vector<DocStep> doc_steps_of(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) throw VfError("cannot read " + path);
    return doc_steps(text.str());
}

bool matches_doc(std::string_view expected, std::string_view actual) {
    const std::size_t first = expected.find(kAnything);
    if (first == std::string_view::npos) return expected == actual;
    if (!actual.starts_with(expected.substr(0, first))) return false;
    actual.remove_prefix(first);
    expected.remove_prefix(first + kAnything.size());
    for (;;) {
        const std::size_t next = expected.find(kAnything);
        const std::string_view piece = expected.substr(0, next);
        if (next == std::string_view::npos)
            return actual.size() >= piece.size() && actual.ends_with(piece);
        const std::size_t at = actual.find(piece);
        if (at == std::string_view::npos) return false;
        actual.remove_prefix(at + piece.size());
        expected.remove_prefix(next + kAnything.size());
    }
}

}  // namespace vgpu::test
