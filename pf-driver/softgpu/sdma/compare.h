// SPDX-License-Identifier: MIT
//
// The comparison of a value with a reference, for which POLL_REGMEM (SDMA) and WAIT_REG_MEM (PM4)
// wait.
#pragma once

#include <cstdint>

namespace vgpu::softgpu::sdma {

/// `function` is a number of WAIT_REG_MEM_1.FUNCTION (hw/fields.def); SDMA_POLL_REGMEM.FUNCTION has
/// the same numbers. 0 and the reserved value 7 are always true. Values are unsigned.
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
