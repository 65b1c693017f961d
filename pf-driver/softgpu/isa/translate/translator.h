// SPDX-License-Identifier: MIT
//
// Translator: makes host code of decoded blocks. The interpreter stays the only place of meaning:
// an instruction for which there is no host code, or whose form is unusual, becomes a call of its
// row's handler, and a block never runs in circumstances that are not usual (is_usual() of the run
// loop). README.md describes how translated code works.
//
// A Translator belongs to one DecodeCache and its thread. Its code lives as long as the blocks of
// the cache: both are forgotten together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pf-driver/softgpu/isa/translate/code_memory.h"
#include "pf-driver/softgpu/isa/translate/frame.h"

namespace vgpu::softgpu::isa {

struct Block;

/// Whether this processor has what translated code uses: AVX-512 as in Ice Lake and Zen 4.
[[nodiscard]] bool can_translate();

/// Whether translated code contains host code for the operation, and not only calls of its handler.
[[nodiscard]] bool has_host_code(Op op);

class Translator {
public:
    /// Takes chunks of `share` when code needs them.
    explicit Translator(CodeShare& share);
    ~Translator();
    Translator(const Translator&) = delete;
    Translator& operator=(const Translator&) = delete;

    /// False if there is no room. `mode` is the wave's MODE, which the code checks. Sets
    /// block.head.
    [[nodiscard]] bool translate(Block& block, std::uint32_t mode);
    /// Runs translated code from a block's `head` on; returns how it ended.
    [[nodiscard]] Outcome run(Frame& frame, const void* head) const {
        return static_cast<Outcome>(enter_(&frame, head));
    }
    /// Forgets all code and returns its memory; nothing may run or keep a head.
    void reset();
    [[nodiscard]] bool has_code() const { return !chunks_.empty(); }

    /// Times that the interpreter runs a block before it is translated.
    [[nodiscard]] std::uint32_t hot_runs() const { return share_.hot_runs(); }

private:
    [[nodiscard]] bool add_chunk();
    [[nodiscard]] bool write_block(Block& block, std::uint32_t mode);
    void write_entry();
    template <class Write> [[nodiscard]] const std::byte* place(Write write);

    CodeShare& share_;
    std::vector<CodeChunk> chunks_;  ///< the last one is being filled
    std::size_t used_ = 0;           ///< bytes of the last chunk
    Enter enter_ = nullptr;
    const std::byte* leave_ = nullptr;
};

}  // namespace vgpu::softgpu::isa
