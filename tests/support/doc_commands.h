// SPDX-License-Identifier: MIT
//
// DocCommands: what a document of docs/ tells its reader to type, so that a test can type it. Taken
// from fenced blocks:
//
//   ```console            lines with "$ " in front are commands ("\" at their end: they go on), the
//   $ vgpuctl list        lines below them are what is printed; "..." stands for anything
//   No VF is in service...
//   ```
//   <!-- file: vgpu.json -->   the block that follows is a file of that name (any language)
//
// Blocks of other languages without such a line are not for running.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vgpu::test {

struct DocStep {
    enum class Kind { File, Command };
    Kind kind = Kind::Command;
    int line = 0;          ///< of the document
    std::string text;      ///< the command, or the file's name
    std::string expected;  ///< what it prints, or the file's content
};

/// In the document's order; throws VfError for a block that does not end.
[[nodiscard]] std::vector<DocStep> doc_steps(std::string_view document);
[[nodiscard]] std::vector<DocStep> doc_steps_of(const std::string& path);

/// True if `actual` is `expected`, where "..." in `expected` stands for any text.
[[nodiscard]] bool matches_doc(std::string_view expected, std::string_view actual);

}  // namespace vgpu::test
