// SPDX-License-Identifier: MIT
//
// LLVM's disassembler for gfx900 as a child process that is fed in bulk: the independent opinion on
// what machine words mean.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vgpu::test {

using Words = std::vector<std::uint32_t>;

/// What LLVM makes of the first instruction in some words.
struct LlvmText {
    bool is_accepted = false;
    std::size_t bytes = 0;  ///< 4 or 8
    std::string text;       ///< one blank between parts; empty if it was refused
    [[nodiscard]] std::string mnemonic() const { return text.substr(0, text.find(' ')); }
    /// Without the suffix that names the encoding.
    [[nodiscard]] std::string base_name() const;
};

/// Whether llvm-mc-14 can be run.
[[nodiscard]] bool has_llvm_mc();

/// In the order of `candidates`, each of one or two words. Words on which LLVM dies count as
/// refused. Any thread.
[[nodiscard]] std::vector<LlvmText> llvm_texts(const std::vector<Words>& candidates);

/// "0x00 0x01 ..." for messages.
[[nodiscard]] std::string bytes_text(const Words& words);

}  // namespace vgpu::test
