// SPDX-License-Identifier: MIT
//
// Prints decoded instructions as text. The syntax is that of LLVM's disassembler, with which the
// tests compare it; only hardware registers, messages, counters and swizzle patterns stay numbers.
#pragma once

#include <string>

#include "pf-driver/softgpu/isa/instruction.h"

namespace vgpu::softgpu::isa {

/// "v_add_f32_e32 v3, s4, v1"; "illegal 0xbfff0000 0x00000000" for words that are no instruction.
/// The text depends only on the instruction.
[[nodiscard]] std::string disassemble(const Instruction& instruction);

}  // namespace vgpu::softgpu::isa
