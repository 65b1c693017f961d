// SPDX-License-Identifier: MIT
//
// Execute unit: vector comparisons. Each variant (decode.h) has its own build of this file.
#include "pf-driver/softgpu/isa/lanes.h"

namespace vgpu::softgpu::isa::VGPU_ISA_VARIANT {

namespace {

#define VGPU_COMPARE(n, a_type, b_type, expression, exec)                                 \
    struct n {                                                                            \
        using A = a_type;                                                                 \
        using B = b_type;                                                                 \
        static constexpr Handler kHandler = &compare_op<n>;                               \
        static constexpr bool kWritesExec = exec;                                         \
        VGPU_INLINE static bool holds([[maybe_unused]] auto a, [[maybe_unused]] auto b) { \
            return expression;                                                            \
        }                                                                                 \
    };
#define VC(n, code, a_type, b_type, expression) VGPU_COMPARE(n, a_type, b_type, expression, false)
#define VCX(n, code, a_type, b_type, expression) VGPU_COMPARE(n, a_type, b_type, expression, true)
#define ROW(kind, ...) kind(__VA_ARGS__)
#include "pf-driver/softgpu/isa/ops/vopc.def"
#undef ROW

}  // namespace

void fill_compare(HandlerTable& table) {
#define ROW VGPU_SET
#include "pf-driver/softgpu/isa/ops/vopc.def"
#undef ROW
}

}  // namespace vgpu::softgpu::isa::VGPU_ISA_VARIANT
