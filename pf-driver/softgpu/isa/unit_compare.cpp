// SPDX-License-Identifier: MIT
//
// Execute unit: vector comparisons. Compiled once for every variant.
#include "pf-driver/softgpu/isa/lanes.h"

namespace vgpu::softgpu::isa::VGPU_ISA_VARIANT {

namespace {

#define VGPU_COMPARE(n, a_type, b_type, expression, exec)                                 \
    struct n {                                                                            \
        using A = a_type;                                                                 \
        using B = b_type;                                                                 \
        static constexpr bool kWritesExec = exec;                                         \
        VGPU_INLINE static bool holds([[maybe_unused]] auto a, [[maybe_unused]] auto b) { \
            return expression;                                                            \
        }                                                                                 \
    };
#define VC(n, code, a_type, b_type, expression) VGPU_COMPARE(n, a_type, b_type, expression, false)
#define VCX(n, code, a_type, b_type, expression) VGPU_COMPARE(n, a_type, b_type, expression, true)
#include "pf-driver/softgpu/isa/ops/vopc.def"
#undef VC
#undef VCX

}  // namespace

void fill_compare(HandlerTable& table) {
#define VC(n, ...) table[static_cast<std::size_t>(Op::n)] = &compare_op<n>;
#define VCX VC
#include "pf-driver/softgpu/isa/ops/vopc.def"
#undef VC
#undef VCX
}

}  // namespace vgpu::softgpu::isa::VGPU_ISA_VARIANT
