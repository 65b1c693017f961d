// SPDX-License-Identifier: MIT
//
// Instructions as text, for error messages, traces and tests: the syntax of LLVM's disassembler,
// with which the tests compare it, but hardware registers, messages, counters and swizzle patterns
// stay numbers.
#pragma once

#include <string>

#include "pf-driver/softgpu/isa/instruction.h"

namespace vgpu::softgpu::isa {

/// "v_add_f32_e32 v3, s4, v1"; for words that are no instruction "illegal 0xbfff0000 0x00000000".
/// Depends on the instruction alone; allocates, so it is not for hot paths.
[[nodiscard]] std::string disassemble(const Instruction& instruction);

}  // namespace vgpu::softgpu::isa
