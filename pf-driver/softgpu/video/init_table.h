// SPDX-License-Identifier: MIT
//
// The init table of the MMSCH, the scheduler of the video blocks: a header and one list of register
// commands per encoder (hw/mmsch.h). A guest wrote all of it, so only a copy is used and every size
// and offset is checked against that copy. A command that does not fit or is unknown ends the list.
// A list reaches only the registers of its encoder; it cannot start another table, because it does
// not reach those of the MMSCH. The firmware here boots at once: a polled condition that does not
// hold now never will.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "pf-driver/hw/mmsch.h"
#include "pf-driver/softgpu/regs/register_file.h"
#include "pf-driver/softgpu/video/encoder.h"

namespace vgpu::softgpu::video {

/// Commands of one encoder; empty if the table does not name it.
using CommandList = std::span<const std::uint32_t>;

/// The lists inside `table`, indexed by Encoder; none if the header is wrong.
[[nodiscard]] std::optional<std::array<CommandList, kEncoders.size()>> find_lists(
    std::span<const std::uint32_t> table);

/// Executes a list up to its END: DONE, or the reason why it stopped; earlier commands have been
/// executed. With the VF's lock held. NOT_READY: a polled condition does not hold. BAD_REGISTER: a
/// register outside the encoder's range. BAD_COMMAND: unknown, cut off, or no END.
[[nodiscard]] mmsch_response run_list(const EncoderRow& row, CommandList list,
                                      regs::RegisterFile& regs);

}  // namespace vgpu::softgpu::video
