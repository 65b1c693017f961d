// SPDX-License-Identifier: MIT
//
// What vector and scalar operations compute, written a second time from the ISA manual on integers
// and on the soft floats of soft_float.h. Used by reference_test; nothing of isa/ is used here.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace vgpu::test {

/// Operands of one lane as bits, zero-extended.
struct Operands {
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    std::uint64_t c = 0;
    std::uint32_t lane = 0;
    std::uint32_t scc = 0;
};

struct Reference {
    using Value = std::uint64_t (*)(const Operands&);
    Value value = nullptr;
    /// Bit of the mask, or SCC; nullptr: there is none, or it stays.
    Value flag = nullptr;
    /// Results may differ by so many units in the last place.
    std::uint64_t ulp = 0;
    /// Or by so much: where a function of unlimited arguments goes through zero.
    double absolute = 0;
};

/// By mnemonic.
[[nodiscard]] const std::map<std::string, Reference>& vector_references();
[[nodiscard]] const std::map<std::string, Reference>& scalar_references();
/// Comparisons are read from their names: v_cmp_lt_f32.
[[nodiscard]] bool compare_reference(const std::string& name, const Operands& o);
/// Rows of vector and scalar arithmetic that have no reference here, and why.
[[nodiscard]] const std::map<std::string, std::string>& rows_without_reference();

}  // namespace vgpu::test
