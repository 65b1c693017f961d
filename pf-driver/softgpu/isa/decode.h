// SPDX-License-Identifier: MIT
//
// Turns gfx900 machine words into Instructions, and caches decoded code.
//
// decode() is pure: words in, Instruction out, `Op::Illegal` for everything that this GPU does not
// have. DecodeCache keeps runs of decoded instructions ("blocks", at most 32, ended by a branch) by
// GPU address. It behaves like an instruction cache: code that changes in memory runs stale until
// invalidate() or until the watched epoch moves (ACQUIRE_MEM with the instruction-cache bit, TLB
// invalidation). Its size is bounded; a full cache is emptied.
//
// A DecodeCache belongs to one engine thread and to one address space: the packet processor of a VF
// owns one per worker and VMID.
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

/// Builds of the execute unit.
enum class Variant : std::uint8_t { Baseline, Avx2 };

/// Decodes the instruction at the start of `words`; reads at most two of them. If the words are too
/// few or no instruction of this GPU, op is Op::Illegal and size covers the words read.
[[nodiscard]] Instruction decode(std::span<const std::uint32_t> words);

/// Straight-line code: at most kBlockInstructions that follow each other in memory; only the last
/// one may be a branch. Immutable once built; belongs to its cache.
struct Block {
    std::uint64_t pc = 0;
    std::uint16_t vgprs_needed = 0;  ///< one past the highest VGPR that is named
    std::vector<Instruction> code;
};

class DecodeCache {
public:
    /// Decoded code is valid while `epoch` keeps its value.
    explicit DecodeCache(const std::atomic<std::uint64_t>& epoch);
    /// For tests and measurements: uses the handlers of the given build of the execute unit.
    DecodeCache(const std::atomic<std::uint64_t>& epoch, Variant variant);
    DecodeCache(const DecodeCache&) = delete;
    DecodeCache& operator=(const DecodeCache&) = delete;

    /// The block that starts at `pc`; nullptr if the first word cannot be fetched (then
    /// port.fault() says why). Valid until the next call of any member.
    [[nodiscard]] const Block* find(std::uint64_t pc, mem::Port& port) {
        if (epoch_.load(std::memory_order_acquire) != valid_epoch_) invalidate();
        const Block* block = recent_[pc / 4 % kRecent];
        if (block != nullptr && block->pc == pc) [[likely]]
            return block;
        return find_slow(pc, port);
    }
    /// Forgets all code.
    void invalidate();
    /// Forgets all code before the next lookup; safe while a block is being executed.
    void invalidate_later() { valid_epoch_ = epoch_.load(std::memory_order_acquire) - 1; }
    /// Number of decoded instructions in the cache; at most kMaxInstructions.
    [[nodiscard]] std::size_t instructions() const { return instructions_; }

    /// Also the number of instructions between two checks of the stop flag.
    static constexpr std::size_t kBlockInstructions = 32;
    static constexpr std::size_t kMaxInstructions = 64 * 1024;

private:
    /// Direct mapped by pc, in front of the map.
    static constexpr std::size_t kRecent = 512;
    /// Searches the map; decodes if the map has no block.
    const Block* find_slow(std::uint64_t pc, mem::Port& port);
    /// Empty if the first word cannot be fetched.
    std::unique_ptr<Block> build(std::uint64_t pc, mem::Port& port) const;

    const std::atomic<std::uint64_t>& epoch_;
    const Variant variant_;
    std::uint64_t valid_epoch_ = ~0ull;
    std::array<const Block*, kRecent> recent_{};
    std::unordered_map<std::uint64_t, std::unique_ptr<Block>> blocks_;
    std::size_t instructions_ = 0;
};

}  // namespace vgpu::softgpu::isa
