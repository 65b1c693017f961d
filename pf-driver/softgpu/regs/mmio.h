// SPDX-License-Identifier: MIT
//
// BAR5 as bytes: cuts accesses of any size and alignment into registers. A part of a register is
// written by merging it with what the register holds (drivers write MAILBOX_CONTROL bytewise).
// Behaviour-free reads for merging: a partial write triggers its register once, never twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "pf-driver/softgpu/regs/register_file.h"

namespace vgpu::softgpu::regs {

/// `byte_offset` counts from the start of BAR5; beyond the registers all ones are read.
void mmio_read(RegisterFile& registers, std::uint64_t byte_offset, std::span<std::byte> out);
/// `write_gate` shut refuses registers marked FA in hw/regs.def; each refused register is counted.
void mmio_write(RegisterFile& registers, std::uint64_t byte_offset, std::span<const std::byte> data,
                Gate write_gate);

}  // namespace vgpu::softgpu::regs
