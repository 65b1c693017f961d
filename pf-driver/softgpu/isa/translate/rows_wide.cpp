// SPDX-License-Identifier: MIT
//
// Host code of vector operations with 64-bit operands. A quarter is 16 lanes of a wave (emitter.h).
// The 64-bit values of a quarter take two zmm registers; this file calls each of them a half. Each
// half holds eight values, in the order of the host's unpack instructions. All operands have this
// order, and wide_result() undoes this order.
#include "pf-driver/softgpu/isa/translate/emitter.h"

namespace vgpu::softgpu::isa {

namespace {

using Code = Xbyak::CodeGenerator;

/// The register with one half of a quarter of a source.
Zmm part(unsigned source, unsigned half) {
    constexpr int first = 24;
    return Zmm(first + static_cast<int>(source * 2 + half));
}

/// Calls `write` for each half of every quarter, with the code generator and the host registers of
/// the result and of the three sources. The result overwrites source 0.
template <class Write> bool each_half(Emitter& e, const Instruction& i, Write write) {
    if (!e.start_wide(i)) return false;
    const OpInfo& row = info(i.op);
    for (unsigned q = 0; q < kQuarters; ++q) {
        for (unsigned k = 0; k < 3; ++k)
            if (row.src[k] != Type::none) e.wide_source(k, q, part(k, 0), part(k, 1));
        for (unsigned half = 0; half < 2; ++half)
            write(e.c, part(0, half), part(0, half), part(1, half), part(2, half));
        e.wide_result(q, part(0, 0), part(0, 1));
    }
    return true;
}

#define ROW(name, ...)                                                                           \
    table[static_cast<std::size_t>(Op::name)] = [](Emitter& e, const Instruction& i) {           \
        return each_half(                                                                        \
            e, i,                                                                                \
            [&]([[maybe_unused]] Code& h, const Zmm& d, [[maybe_unused]] const Zmm& a,           \
                [[maybe_unused]] const Zmm& b, [[maybe_unused]] const Zmm& c) { __VA_ARGS__; }); \
    }

constexpr std::uint8_t kUnusedBits = 64 - 6;

/// Writes code that keeps the low six bits of each 64-bit count.
void limit_shift(Code& h, const Zmm& count) {
    h.vpsllq(count, count, kUnusedBits);
    h.vpsrlq(count, count, kUnusedBits);
}

/// Writes the code of v_mad_u64_u32: the product of two 32-bit numbers plus a 64-bit number, with
/// carry out.
bool multiply_add(Emitter& e, const Instruction& i) {
    constexpr std::uint8_t below = 1;
    if (!e.start_wide(i)) return false;
    for (unsigned q = 0; q < kQuarters; ++q) {
        for (unsigned k = 0; k < 3; ++k) e.wide_source(k, q, part(k, 0), part(k, 1));
        for (unsigned half = 0; half < 2; ++half) {
            const Zmm r = part(0, half), c = part(2, half);
            e.c.vpmuludq(r, r, part(1, half));
            e.c.vpaddq(r, r, c);
            e.c.vpcmpuq(half == 0 ? e.c.k5 : e.c.k6, r, c, below);
        }
        e.join_masks(q, part(1, 0), part(1, 1));
        e.collect_mask(e.c.k5, q);
        e.wide_result(q, part(0, 0), part(0, 1));
    }
    e.write_mask(i.sdst);
    return true;
}

}  // namespace

void fill_wide_rows(EmitTable& table) {
    ROW(v_lshlrev_b64, limit_shift(h, a); h.vpsllvq(d, b, a));
    ROW(v_lshrrev_b64, limit_shift(h, a); h.vpsrlvq(d, b, a));
    ROW(v_ashrrev_i64, limit_shift(h, a); h.vpsravq(d, b, a));
    ROW(v_add_f64, h.vaddpd(d, a, b));
    ROW(v_mul_f64, h.vmulpd(d, a, b));
    ROW(v_fma_f64, h.vfmadd231pd(c, a, b); h.vmovapd(d, c));
    table[static_cast<std::size_t>(Op::v_mad_u64_u32)] = multiply_add;
}

}  // namespace vgpu::softgpu::isa
