// SPDX-License-Identifier: MIT
//
// What atomics on memory and LDS leave there, written a second time from the ISA manual on integers
// and on the soft floats of soft_float.h. Used by memory_atomics_test; nothing of isa/ is used
// here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace vgpu::test {

/// What one lane works on, as bits, zero-extended.
struct AtomicOperands {
    std::uint64_t memory = 0;  ///< before
    std::uint64_t a = 0;       ///< first data operand; of two places, what the second one holds
    std::uint64_t b = 0;       ///< second data operand
    unsigned bits = 32;
};

struct AtomicReference {
    using Value = std::uint64_t (*)(const AtomicOperands&);
    Value value = nullptr;  ///< memory afterwards
    unsigned bits = 32;     ///< of memory and of each operand
    bool is_float = false;  ///< any NaN is as good as another
};

/// By mnemonic: flat_atomic_add_x2, s_buffer_atomic_smin, ds_add_rtn_u32, ds_max_src2_f64.
[[nodiscard]] std::optional<AtomicReference> atomic_reference(const std::string& mnemonic);
/// DS operations that are not one atomic on one place per lane, and why.
[[nodiscard]] const std::map<std::string, std::string>& lds_rows_without_reference();

}  // namespace vgpu::test
