// SPDX-License-Identifier: MIT
//
// Frame: what translated code and the run loop tell each other. Translated code addresses its
// members by offset, so Frame has standard layout. The run loop fills one for each slice of a wave.
//
// Internal to isa/.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "pf-driver/softgpu/isa/instruction.h"
#include "pf-driver/softgpu/isa/wave.h"

namespace vgpu::softgpu::isa {

struct Frame {
    Env* env = nullptr;  ///< for handlers
    WaveState* wave = nullptr;
    VgprRow* vgprs = nullptr;
    /// Instructions until the slice ends. A block starts only if this is positive, and it subtracts
    /// what it has executed.
    std::int64_t left = 0;
    const std::atomic<bool>* stop = nullptr;
    const std::atomic<std::uint64_t>* epoch = nullptr;
    /// Value of `epoch` for which translated code is valid.
    const std::uint64_t* valid_epoch = nullptr;
    std::uint64_t vgpr_count = 0;
    // set by translated code on its way out
    /// The instruction whose outcome is returned; nullptr: the code left between two blocks.
    const Instruction* last = nullptr;
    const Instruction* first = nullptr;  ///< of the block of `last`
    /// Where the code jumps after the block that it left; the run loop puts the next block's
    /// address there. nullptr: nowhere.
    const void** link = nullptr;
};
static_assert(std::is_standard_layout_v<Frame>);

/// Enters translated code; returns an Outcome.
using Enter = std::uint32_t (*)(Frame*, const void* head);

}  // namespace vgpu::softgpu::isa
