// SPDX-License-Identifier: MIT
//
// The MMSCH init table: a header and one list of register commands per encoder (hw/mmsch.h). All
// of it was written by a guest: it is looked at as a copy, every size and offset is checked against
// that copy, a command that does not fit or is not known ends it, and a list reaches the registers
// of its own encoder only (never those of the MMSCH itself, so it cannot start another table).
// The firmware here boots at once: a polled condition that does not hold now never will.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "pf-driver/hw/mmsch.h"
#include "pf-driver/softgpu/regs/register_file.h"
#include "pf-driver/softgpu/video/encoder.h"

namespace vgpu::softgpu::video {

/// Commands of one encoder; empty: the table does not speak of it.
using CommandList = std::span<const std::uint32_t>;

/// The lists inside `table`, indexed by Encoder; nothing if the header is wrong.
[[nodiscard]] std::optional<std::array<CommandList, kEncoders.size()>> find_lists(
    std::span<const std::uint32_t> table);

/// Executes a list up to its END: DONE, or why it stopped. Commands before a bad one have been
/// executed. With the VF's lock held.
/// NOT_READY: a polled condition does not hold. BAD_REGISTER: one outside the encoder's own range.
/// BAD_COMMAND: unknown, cut off, or no END.
[[nodiscard]] mmsch_response run_list(const EncoderRow& row, CommandList list,
                                      regs::RegisterFile& regs);

}  // namespace vgpu::softgpu::video
