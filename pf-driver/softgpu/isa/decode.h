// SPDX-License-Identifier: MIT
//
// decode() turns gfx900 machine words into an Instruction; it is a pure function. Instruction::op
// is Op::Illegal if softgpu cannot execute the words.
//
// A DecodeCache keeps decoded blocks by GPU address. A block is up to 32 consecutive instructions,
// of which only the last may branch. A DecodeCache behaves like an instruction cache: after code
// has changed in memory, the old code may run until a wave that uses the cache executes
// s_icache_inv, or until the epoch changes. The epoch is a counter of the command processor. It
// changes, for example, at an ACQUIRE_MEM packet with the instruction-cache bit and at a TLB
// invalidation. The size of a cache is bounded; a full cache is emptied.
//
// A DecodeCache belongs to one thread and to one address space: the command processor of a VF owns
// a DecodeCache for each worker and VMID.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/isa/instruction.h"
#include "pf-driver/softgpu/mem/port.h"

namespace vgpu::softgpu::isa {

class CodeShare;
class Translator;

/// A build of the execute units (unit_*.cpp), which hold most of the functions that execute
/// instructions. Most execute units are compiled twice: as Baseline for x86-64-v2, and as Avx2 for
/// AVX2 with FMA. The other execute units have one build, which both variants use.
enum class Variant : std::uint8_t { Baseline, Avx2 };

/// Decodes the instruction at the start of `words`; reads at most two words. If there are too few
/// words, or if they form no instruction that softgpu executes, `op` is Op::Illegal. `size` is then
/// 8 if decode() has read the second word, else 4.
[[nodiscard]] Instruction decode(std::span<const std::uint32_t> words);

/// Straight-line code: at most kBlockInstructions instructions that follow each other in memory;
/// only the last instruction may branch. The members from `pc` to `code` do not change once the
/// block is built. A DecodeCache owns its blocks.
struct Block {
    std::uint64_t pc = 0;            ///< address of the first instruction
    std::uint16_t vgprs_needed = 0;  ///< one past the highest VGPR that `code` names; 0: none
    std::vector<Instruction> code;
    std::uint32_t runs = 0;      ///< calls of DecodeCache::heat(); 0 after a stopped translation
    const void* head = nullptr;  ///< start of the translated code; nullptr: not translated
    /// Host addresses to which the translated code jumps at its end: [0] if the wave continues
    /// after the block, [1] if the wave takes the block's branch.
    std::array<const void*, 2> links{};
};

/// The decoded code of one address space, for one thread.
class DecodeCache {
public:
    /// Decoded code is valid while `epoch` keeps its value; `epoch` must outlive the cache. Hot
    /// blocks are translated to host code in the memory of `code` (code_memory.h); nullptr: the
    /// interpreter runs everything.
    explicit DecodeCache(const std::atomic<std::uint64_t>& epoch, CodeShare* code = nullptr);
    /// For tests and measurements: uses the execute units of the given variant.
    DecodeCache(const std::atomic<std::uint64_t>& epoch, Variant variant,
                CodeShare* code = nullptr);
    ~DecodeCache();
    DecodeCache(const DecodeCache&) = delete;
    DecodeCache& operator=(const DecodeCache&) = delete;

    /// The block that starts at `pc`, valid until the next find() or invalidate(). nullptr if the
    /// first word cannot be fetched; if port.has_fault(), port.fault() says why.
    [[nodiscard]] Block* find(std::uint64_t pc, mem::Port& port) {
        if (epoch_.load(std::memory_order_acquire) != valid_epoch_) invalidate();
        Block* block = recent_[pc / 4 % kRecent];
        if (block != nullptr && block->pc == pc) [[likely]]
            return block;
        return find_slow(pc, port);
    }
    /// Forgets all code immediately; no block may be running.
    void invalidate();
    /// Makes the next find() forget all code first; safe while a block is being executed.
    void invalidate_later() { valid_epoch_ = epoch_.load(std::memory_order_acquire) - 1; }
    /// The translator of hot blocks; nullptr if the interpreter runs everything.
    [[nodiscard]] Translator* translator() { return translator_.get(); }
    /// Counts a run of the block, and translates the block once it is hot, that is after
    /// Translator::hot_runs() runs. The translated code runs only for waves whose MODE equals
    /// `mode` in the bits of mode::kTranslated. Requires a translator. Call heat() before each run
    /// of an untranslated block, if translated code could run the block. If `stop` is set during
    /// the translation, heat() abandons the translation, and the block must become hot again. If
    /// code memory is full, the block stays untranslated. If this cache has translated code, the
    /// next find() then forgets all blocks, which frees the memory of that code.
    void heat(Block& block, std::uint32_t mode, const std::atomic<bool>& stop);
    /// Records that translated code has returned to the run loop through `link`, an entry of
    /// Block::links, and that the wave continues at `pc`. `link` is nullptr if the code returned at
    /// the head of a block or after a handler (Instruction::handler).
    void record_exit(const void** link, std::uint64_t pc) {
        link_ = link;
        link_pc_ = pc;
    }
    /// Makes the recorded link jump to `next` directly from now on, if the wave continues at `next`
    /// and `next` has translated code.
    void link_to(const Block& next) {
        if (link_ != nullptr && next.head != nullptr && next.pc == link_pc_) *link_ = next.head;
    }
    /// Translated code compares valid_epoch() and epoch() before each block, as find() does.
    [[nodiscard]] const std::uint64_t& valid_epoch() const { return valid_epoch_; }
    [[nodiscard]] const std::atomic<std::uint64_t>& epoch() const { return epoch_; }
    /// Number of decoded instructions in the cache; at most kMaxInstructions.
    [[nodiscard]] std::size_t instructions() const { return instructions_; }

    /// Largest number of instructions in a block, and so between two checks of RunContext::stop.
    static constexpr std::size_t kBlockInstructions = 32;
    /// Limit of instructions(). If a new block would exceed it, the cache is emptied first.
    static constexpr std::size_t kMaxInstructions = 64 * 1024;

private:
    /// Entries of `recent_`, a table in front of the map `blocks_` that is direct-mapped by pc.
    static constexpr std::size_t kRecent = 512;
    /// Searches the map `blocks_`; builds the block if the map does not have it.
    Block* find_slow(std::uint64_t pc, mem::Port& port);
    /// Decodes a block. The block has no code if the first word cannot be fetched.
    std::unique_ptr<Block> build(std::uint64_t pc, mem::Port& port) const;

    const std::atomic<std::uint64_t>& epoch_;
    const Variant variant_;
    std::uint64_t valid_epoch_ = ~0ull;
    std::array<Block*, kRecent> recent_{};
    std::unordered_map<std::uint64_t, std::unique_ptr<Block>> blocks_;
    std::size_t instructions_ = 0;
    std::unique_ptr<Translator> translator_;
    const void** link_ = nullptr;  ///< `link` of record_exit(); a link of a block of this cache
    std::uint64_t link_pc_ = 0;    ///< `pc` of record_exit()
};

}  // namespace vgpu::softgpu::isa
