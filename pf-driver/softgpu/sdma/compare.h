// SPDX-License-Identifier: MIT
//
// The comparison of a wait (POLL_REGMEM, and WAIT_REG_MEM of PM4): function(value, reference).
#pragma once

#include <cstdint>

namespace vgpu::softgpu::sdma {

/// `function` as in hw/fields.def SDMA_POLL_REGMEM.FUNCTION; the reserved value 7 is always true.
/// Unsigned; the same numbers as PM4's compare functions.
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
