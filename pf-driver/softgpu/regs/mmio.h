// SPDX-License-Identifier: MIT
//
// BAR5 as bytes: splits accesses of any size and alignment into registers. Drivers write
// MAILBOX_CONTROL bytewise, so a partial write is merged with the register's stored value. The
// merge reads without behaviour: a partial write triggers its register once, never twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "pf-driver/softgpu/regs/register_file.h"

namespace vgpu::softgpu::regs {

/// `byte_offset` counts from the start of BAR5; reads beyond the registers give all ones.
void mmio_read(RegisterFile& registers, std::uint64_t byte_offset, std::span<std::byte> out);
/// A shut `write_gate` refuses registers marked FA in hw/regs.def; each refusal is counted.
void mmio_write(RegisterFile& registers, std::uint64_t byte_offset, std::span<const std::byte> data,
                Gate write_gate);

}  // namespace vgpu::softgpu::regs
