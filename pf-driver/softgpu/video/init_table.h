// SPDX-License-Identifier: MIT
//
// The init table of the MMSCH, the scheduler of the video blocks: a header and at most one list of
// register commands per encoder (hw/mmsch.h). A guest writes the whole table, so these functions
// work on a copy and check that every size and offset lies in the copy. A command that is unknown
// or too long ends its list with an error. A list can access only the registers of its encoder, not
// those of the MMSCH, so a list cannot start another table. A polled condition must be true at
// once, because the modelled firmware needs no time to boot.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "pf-driver/hw/mmsch.h"
#include "pf-driver/softgpu/regs/register_file.h"
#include "pf-driver/softgpu/video/encoder.h"

namespace vgpu::softgpu::video {

/// The commands for one encoder; empty if the table does not name the encoder.
using CommandList = std::span<const std::uint32_t>;

/// The lists inside `table`, indexed by Encoder; nullopt if the header is wrong or a list is not
/// inside the table.
[[nodiscard]] std::optional<std::array<CommandList, kEncoders.size()>> find_lists(
    std::span<const std::uint32_t> table);

/// Executes a list up to its END and returns DONE, or stops at a command and returns the reason.
/// NOT_READY: a polled condition does not hold. BAD_REGISTER: a register outside the encoder's
/// range. BAD_COMMAND: a command is unknown or cut off, or the list has no END. Call with the VF's
/// lock held.
[[nodiscard]] mmsch_response run_list(const EncoderRow& row, CommandList list,
                                      regs::RegisterFile& regs);

}  // namespace vgpu::softgpu::video
