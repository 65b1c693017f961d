// SPDX-License-Identifier: MIT
//
// The ISA tier of a test run: VGPU_ISA_TIER is interpreter (default) or translator. With
// translator, every block is translated at its first run. unit_isa, unit_cp and unit_gpu use this
// header; scenario tests pass the variable to softgpu (stack/gpu_stack.cpp).
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "pf-driver/softgpu/isa/translate/code_memory.h"

namespace vgpu::test {

[[nodiscard]] inline bool is_translator_run() {
    static const char* const tier = std::getenv("VGPU_ISA_TIER");
    if (tier == nullptr || std::string_view(tier) == "interpreter") return false;
    if (std::string_view(tier) == "translator") return true;
    throw std::runtime_error("VGPU_ISA_TIER is neither interpreter nor translator");
}

/// Code memory for all tests of a process; nullptr: the run interprets.
[[nodiscard]] inline softgpu::isa::CodeMemory* code_memory_of_run() {
    constexpr std::size_t chunks = 256;
    if (!is_translator_run()) return nullptr;
    static const auto memory = softgpu::isa::CodeMemory::create(chunks);
    if (!memory) throw std::runtime_error("VGPU_ISA_TIER=translator: " + memory.error().message);
    return memory->get();
}

}  // namespace vgpu::test
