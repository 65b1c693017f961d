// SPDX-License-Identifier: MIT
#include <algorithm>

#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/isa/decode.h"
#include "pf-driver/softgpu/isa/env.h"
#include "pf-driver/softgpu/isa/translate/translator.h"

namespace vgpu::softgpu::isa {

namespace {

/// Fetches one word of code; false if that fails.
bool fetch(std::uint64_t va, mem::Port& port, std::uint32_t& word) {
    if (const std::byte* host = port.at(GpuVa{va}, mem::Access::Execute)) {
        std::memcpy(&word, host, sizeof word);
        return true;
    }
    return !port.has_fault() && port.read(GpuVa{va}, bytes_of(word));
}

/// Fetches two words, the length of the longest encoding. Returns the number of words fetched. If
/// only the fetch of the second word fails, clears the port's fault, because the instruction may
/// need only one word.
std::size_t fetch_words(std::uint64_t va, mem::Port& port, std::array<std::uint32_t, 2>& words) {
    if (!fetch(va, port, words[0])) return 0;
    if (fetch(va + 4, port, words[1])) return 2;
    port.clear_fault();
    return 1;
}

/// One past the highest VGPR that the instruction names; 0: none. needs_no_checks() in execute.cpp
/// compares the maximum over a block with the number of the wave's VGPRs.
std::uint32_t vgprs_needed(const Instruction& instruction) {
    std::uint32_t needed = instruction.dst_regs == 0 ? 0u : instruction.dst + instruction.dst_regs;
    for (const Operand& source : instruction.src)
        if (source.kind == OperandKind::Vgpr && source.regs != 0)
            needed = std::max(needed, source.value + source.regs);
    return needed;
}

void resolve(Instruction& instruction, const HandlerTable& table) {
    const Handler operation = table[static_cast<std::size_t>(instruction.op)];
    instruction.inner = operation;
    instruction.handler = operation;
    if (instruction.modifier == Modifier::Sdwa) instruction.handler = &run_sdwa;
    if (instruction.modifier == Modifier::Dpp) instruction.handler = &run_dpp;
}

}  // namespace

DecodeCache::DecodeCache(const std::atomic<std::uint64_t>& epoch, CodeShare* code)
    : DecodeCache(epoch, variant(), code) {}

DecodeCache::DecodeCache(const std::atomic<std::uint64_t>& epoch, Variant variant, CodeShare* code)
    : epoch_(epoch), variant_(variant) {
    if (code != nullptr) translator_ = std::make_unique<Translator>(*code);
}

DecodeCache::~DecodeCache() = default;

/// Call it before code is decoded: code is changed before the epoch is incremented, so blocks that
/// are decoded after this call contain every change up to the epoch that this call reads.
void DecodeCache::invalidate() {
    recent_.fill(nullptr);
    blocks_.clear();
    instructions_ = 0;
    link_ = nullptr;
    if (translator_ != nullptr) translator_->reset();
    valid_epoch_ = epoch_.load(std::memory_order_acquire);
}

/// Empties a full cache, which is rare: most kernels are much smaller than kMaxInstructions.
Block* DecodeCache::find_slow(std::uint64_t pc, mem::Port& port) {
    auto known = blocks_.find(pc);
    if (known == blocks_.end()) {
        if (instructions_ + kBlockInstructions > kMaxInstructions) invalidate();
        std::unique_ptr<Block> block = build(pc, port);
        if (block->code.empty()) return nullptr;
        instructions_ += block->code.size();
        known = blocks_.emplace(pc, std::move(block)).first;
    }
    recent_[pc / 4 % kRecent] = known->second.get();
    return known->second.get();
}

/// After an abandoned translation, the block must run hot_runs() times again before the next
/// attempt. So even if quanta are too short for a whole translation, the attempts take at most a
/// fixed share of the time that the block runs.
void DecodeCache::heat(Block& block, std::uint32_t mode, const std::atomic<bool>& stop) {
    if (block.runs++ != translator_->hot_runs()) return;
    const auto must_stop = [&stop] { return stop.load(std::memory_order_relaxed); };
    const Translation result = translator_->translate(block, mode, must_stop);
    if (result == Translation::Stopped) block.runs = 0;
    if (result == Translation::Full && translator_->has_code()) invalidate_later();
}

std::unique_ptr<Block> DecodeCache::build(std::uint64_t pc, mem::Port& port) const {
    auto block = std::make_unique<Block>();
    block->pc = pc;
    block->code.reserve(kBlockInstructions);
    for (std::uint64_t va = pc; block->code.size() < kBlockInstructions;) {
        std::array<std::uint32_t, 2> words{};
        const std::size_t count = fetch_words(va, port, words);
        if (count == 0) break;
        Instruction instruction = decode(std::span(words).first(count));
        instruction.pc = va;
        resolve(instruction, handlers(variant_));
        const std::uint32_t needed =
            std::max<std::uint32_t>(block->vgprs_needed, vgprs_needed(instruction));
        block->vgprs_needed = static_cast<std::uint16_t>(needed);
        block->code.push_back(instruction);
        va += instruction.size;
        if (instruction.ends_block) break;
    }
    // If a later instruction cannot be fetched, the block ends before it. The fault counts only
    // when execution reaches that instruction.
    if (!block->code.empty()) port.clear_fault();
    return block;
}

}  // namespace vgpu::softgpu::isa
