// SPDX-License-Identifier: MIT
//
// Instructions as text, for error messages, traces and tests. Close to the assembler's syntax:
// mnemonic, result, sources with their modifiers, offset. It is not meant to be assembled again.
#pragma once

#include <string>

#include "pf-driver/softgpu/isa/instruction.h"

namespace vgpu::softgpu::isa {

/// "v_add_f32 v3, -v1, s4"; for words that are no instruction "illegal 0xbfff0000 0x00000000".
[[nodiscard]] std::string disassemble(const Instruction& instruction);

}  // namespace vgpu::softgpu::isa
