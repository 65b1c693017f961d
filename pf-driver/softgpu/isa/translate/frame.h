// SPDX-License-Identifier: MIT
//
// Frame: the variables that the run loop and translated code share. Translated code addresses the
// members by offset, so Frame has standard layout. The run loop (run() in execute.cpp) makes a
// Frame each time it enters translated code. A slice in this file is a run of one wave, after which
// the run loop picks the next wave.
//
// Internal to isa/.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "pf-driver/softgpu/isa/instruction.h"
#include "pf-driver/softgpu/isa/wave.h"
#include "pf-driver/softgpu/mem/port.h"

namespace vgpu::softgpu::isa {

struct Frame {
    Env* env = nullptr;  ///< for handlers
    WaveState* wave = nullptr;
    VgprRow* vgprs = nullptr;
    /// Instructions that may still run: the rest of the slice, or fewer if
    /// RunContext::max_instructions is nearly used up. A block starts only if the number is
    /// positive, so the last block may make the number negative. A block that runs to its end
    /// subtracts its length; if a handler ends the block early, `first` and `last` show how many of
    /// its instructions have run.
    std::int64_t instructions_left = 0;
    const std::atomic<bool>* stop = nullptr;  ///< if true, the code leaves before the next block
    /// The epoch of the decode cache (decode.h). If it differs from `*valid_epoch`, the code is
    /// outdated and leaves before the next block.
    const std::atomic<std::uint64_t>* epoch = nullptr;
    const std::uint64_t* valid_epoch = nullptr;
    std::uint64_t vgpr_count = 0;             ///< VGPRs that the wave has
    const mem::Port::Entry* pages = nullptr;  ///< the port's cached address translations
    /// The port's epoch; an entry of `pages` with another epoch is invalid.
    const std::atomic<std::uint64_t>* page_epoch = nullptr;
    /// Upper 32 bits of the flat addresses of LDS.
    std::uint64_t shared_window = 0;
    /// Upper 32 bits of the flat addresses of scratch.
    std::uint64_t private_window = 0;
    std::byte* lds = nullptr;  ///< LDS of the wave's work-group
    std::uint64_t lds_bytes = 0;
    // Translated code may set the members below when it leaves, that is, returns to the run loop.
    /// The instruction whose handler ended the block; nullptr: the code left between two blocks.
    const Instruction* last = nullptr;
    /// The first instruction of the block that holds `last`.
    const Instruction* first = nullptr;
    /// The entry of Block::links through which the code left. DecodeCache::link_to() may point the
    /// entry to the next block's head. nullptr: the code left at the head of a block, or a handler
    /// ended the block.
    const void** link = nullptr;
};
static_assert(std::is_standard_layout_v<Frame>);

/// Enters translated code at `head`; returns an Outcome.
using Enter = std::uint32_t (*)(Frame*, const void* head);

}  // namespace vgpu::softgpu::isa
