// SPDX-License-Identifier: MIT
//
// Frame: the variables that the run loop and translated code share. Translated code addresses the
// members by offset, so Frame has standard layout. The run loop makes one each time it enters
// translated code.
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
    /// Instructions until the slice ends. A block starts only if this is positive. A block that
    /// runs to its end subtracts its length; if a handler ends the block early, `first` and `last`
    /// show how far it came.
    std::int64_t left = 0;
    const std::atomic<bool>* stop = nullptr;
    const std::atomic<std::uint64_t>* epoch = nullptr;
    /// Value of `epoch` for which translated code is valid.
    const std::uint64_t* valid_epoch = nullptr;
    std::uint64_t vgpr_count = 0;
    // memory: the translations that the port keeps, and the epoch that ends them
    const mem::Port::Entry* pages = nullptr;
    const std::atomic<std::uint64_t>* page_epoch = nullptr;
    /// Upper 32 bits of the windows of flat addresses.
    std::uint64_t shared_window = 0;
    std::uint64_t private_window = 0;
    std::byte* lds = nullptr;
    std::uint64_t lds_bytes = 0;
    // set when translated code leaves
    /// The instruction whose handler ended the block; nullptr: the code left between two blocks.
    const Instruction* last = nullptr;
    const Instruction* first = nullptr;  ///< first instruction of the block of `last`
    /// The link through which the code left; the run loop makes it point to the next block's head
    /// (DecodeCache::link_to()). nullptr: the code left at a head or at `last`.
    const void** link = nullptr;
};
static_assert(std::is_standard_layout_v<Frame>);

/// Enters translated code at `head`; returns an Outcome.
using Enter = std::uint32_t (*)(Frame*, const void* head);

}  // namespace vgpu::softgpu::isa
