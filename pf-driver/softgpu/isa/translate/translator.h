// SPDX-License-Identifier: MIT
//
// Translator: compiles decoded blocks to host code, which runs faster than the interpreter. If an
// operation has no host code, or if its host code does not support an operand or modifier,
// translated code calls the interpreter's handler. The run loop leaves waves with an unusual MODE
// to the interpreter (needs_no_checks() in execute.cpp). README.md describes how translated code
// works.
//
// A Translator belongs to one DecodeCache and its thread. The cache forgets its blocks and the
// Translator's code together.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "pf-driver/softgpu/isa/translate/code_memory.h"
#include "pf-driver/softgpu/isa/translate/frame.h"

namespace vgpu::softgpu::isa {

struct Block;

/// True if this processor has the extensions that translated code uses: the AVX-512 of Ice Lake and
/// Zen 4, BMI1 and BMI2.
[[nodiscard]] bool can_translate();

/// True if the operation has an entry in EmitTable (emitter.h). For an operation without an entry,
/// translated code calls the handler, except for the branches that BlockWriter::write_branch()
/// translates.
[[nodiscard]] bool has_host_code(Op op);

/// Addresses of the two routines that all blocks of a Translator use.
struct Routines {
    const std::byte* leave = nullptr;       ///< returns to Translator::run()
    const std::byte* find_pages = nullptr;  ///< written by write_find_pages()
};

/// Called before a translation writes an instruction or a slow path; true ends the translation.
using StopCheck = std::function<bool()>;

enum class Translation : std::uint8_t {
    Done,
    Stopped,  ///< StopCheck returned true; the block has not changed
    Full,     ///< the CodeShare has no room; the block has not changed
};

class Translator {
public:
    /// Allocates chunks from `share` as the code grows.
    explicit Translator(CodeShare& share);
    ~Translator();
    Translator(const Translator&) = delete;
    Translator& operator=(const Translator&) = delete;

    /// Translates the block. If the result is Done, block.head and block.links are set. The code
    /// runs only for waves whose MODE equals `mode` in the bits of mode::kTranslated.
    [[nodiscard]] Translation translate(Block& block, std::uint32_t mode,
                                        const StopCheck& must_stop);
    /// Runs translated code, beginning with the block at `head`. Returns the outcome of the handler
    /// that ended the run; Next if the code left between two blocks.
    [[nodiscard]] Outcome run(Frame& frame, const void* head) const {
        assert(is_own(head) && "this code belongs to another cache");
        return static_cast<Outcome>(enter_(&frame, head));
    }
    /// Forgets all code and returns its memory to the share. No code may be running, and no
    /// Block::head may be used afterwards.
    void reset();
    [[nodiscard]] bool has_code() const { return !chunks_.empty(); }

    /// Number of times that the interpreter runs a block before the block is translated.
    [[nodiscard]] std::uint32_t hot_runs() const { return share_.hot_runs(); }

private:
    /// True if `head` lies in a chunk of this Translator; for assertions.
    [[nodiscard]] bool is_own(const void* head) const;
    [[nodiscard]] bool add_chunk();
    [[nodiscard]] Translation write_block(Block& block, std::uint32_t mode,
                                          const StopCheck& must_stop);
    void write_entry();
    template <class Write> [[nodiscard]] const std::byte* append_code(Write write);

    CodeShare& share_;
    std::vector<CodeChunk> chunks_;  ///< new code goes into the last chunk
    std::size_t used_ = 0;           ///< bytes of the last chunk that are in use
    Enter enter_ = nullptr;          ///< valid while chunks_ is not empty
    Routines routines_;
};

}  // namespace vgpu::softgpu::isa
