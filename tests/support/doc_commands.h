// SPDX-License-Identifier: MIT
//
// doc_steps(): the commands and files that a document of docs/ shows, so that a test can run the
// commands. They come from fenced blocks:
//
//   ```console            a line with "$ " in front is a command ("\" at its end continues it), the
//   $ vgpuctl list        lines below it are its output; "..." stands for any text
//   No VF is in service...
//   ```
//   <!-- file: vgpu.json -->   the block that follows is a file of that name (any language)
//
// Blocks of other languages without such a line are ignored.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vgpu::test {

struct DocStep {
    enum class Kind { File, Command };
    Kind kind = Kind::Command;
    int line = 0;          ///< line of the document
    std::string text;      ///< the command, or the file's name
    std::string expected;  ///< output of the command, or the file's content
};

/// The steps in the document's order; throws VfError for a block that does not end.
[[nodiscard]] std::vector<DocStep> doc_steps(std::string_view document);
[[nodiscard]] std::vector<DocStep> doc_steps_of(const std::string& path);

/// True if `actual` is `expected`, where "..." in `expected` stands for any text.
[[nodiscard]] bool matches_doc(std::string_view expected, std::string_view actual);

}  // namespace vgpu::test
