// SPDX-License-Identifier: MIT
//
// The comparison that ends a wait for memory or a register, for example of the packets POLL_REGMEM
// (SDMA) and WAIT_REG_MEM (PM4).
#pragma once

#include <cstdint>

namespace vgpu::softgpu::sdma {

/// Compares `value` with `reference`, both unsigned. `function` is a value of
/// WAIT_REG_MEM_1.FUNCTION (hw/fields.def); SDMA_POLL_REGMEM.FUNCTION has the same values. Always
/// true for function 0 ("always") and function 7 (reserved).
[[nodiscard]] constexpr bool compare(std::uint8_t function, std::uint64_t value,
                                     std::uint64_t reference) {
    switch (function) {
        case 1:
            return value < reference;
        case 2:
            return value <= reference;
        case 3:
            return value == reference;
        case 4:
            return value != reference;
        case 5:
            return value >= reference;
        case 6:
            return value > reference;
        default:
            return true;
    }
}

}  // namespace vgpu::softgpu::sdma
