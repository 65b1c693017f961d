// SPDX-License-Identifier: MIT
//
// Execute unit: vector arithmetic, and operations that read or write single lanes. Each variant
// (decode.h) has its own build of this file.
#include "pf-driver/softgpu/isa/lanes.h"

namespace vgpu::softgpu::isa::VGPU_ISA_VARIANT {

/// Payne-Hanek reduction: segment `b` (53 bits) of 2 / pi, scaled by the weight of the segment's
/// last bit (and by 2^128 for a huge `a`). For a large `a` the segments begin later, because the
/// first bits add only whole periods (Vega ISA manual, V_TRIG_PREOP_F64).
f64 trig_preop(f64 a, u32 b) {
    // The first 1201 bits of 2 / pi after the point, most significant word first.
    static constexpr std::array<u32, 38> kTwoOverPi{
        0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab,
        0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e,
        0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b,
        0xbdf9283b, 0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7,
        0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1,
        0x1f8d5d08, 0x56033046, 0xfc7b0000};
    constexpr u32 kSegment = 53, kBits = 1201, kFirstFar = 1077, kFirstHuge = 1968;
    const u32 exponent = static_cast<u32>(exponent_of(a));
    u32 shift = (b & 31) * kSegment;
    if (exponent > kFirstFar) shift += exponent - kFirstFar;
    u64 mantissa = 0;
    for (u32 i = 0; i < kSegment; ++i) {
        const u32 place = shift + i;
        const bool one = place < kBits && ((kTwoOverPi[place / 32] >> (31 - place % 32)) & 1) != 0;
        mantissa = (mantissa << 1) | (one ? 1 : 0);
    }
    const i32 scale =
        -static_cast<i32>(kSegment) - static_cast<i32>(shift) + (exponent >= kFirstHuge ? 128 : 0);
    return std::scalbn(static_cast<f64>(mantissa), scale);
}

namespace {

// ---- operations with their own functions

/// The first active lane; lane 0 if no lane is active (Vega ISA manual, V_READFIRSTLANE_B32).
u32 first_lane(u64 exec) {
    return exec == 0 ? 0 : static_cast<u32>(std::countr_zero(exec));
}

Outcome do_readfirstlane(Env& env, const Instruction& i) {
    env.s[i.dst] = env.lane32(i.src[0], first_lane(env.exec()));
    return Outcome::Next;
}

/// The hardware requires a scalar as lane index. If the operand is a vector register, this function
/// uses the value in its first active lane.
u32 lane_index_of(const Env& env, const Operand& operand) {
    return env.lane32(operand, first_lane(env.exec())) % kLanes;
}

Outcome do_readlane(Env& env, const Instruction& i) {
    env.s[i.dst] = env.lane32(i.src[0], lane_index_of(env, i.src[1]));
    return Outcome::Next;
}

/// Writes the lane even if it is inactive.
Outcome do_writelane(Env& env, const Instruction& i) {
    const u32 value = env.lane32(i.src[0], first_lane(env.exec()));
    env.v[i.dst].lane[lane_index_of(env, i.src[1])] = value;
    return Outcome::Next;
}

Outcome do_swap(Env& env, const Instruction& i) {
    VgprRow& x = env.v[i.dst];
    VgprRow& y = env.v[i.src[0].value];
    const VgprRow old = x;
    blend_lanes(x.lane.data(), y.lane.data(), env.exec());
    blend_lanes(y.lane.data(), old.lane.data(), env.exec());
    return Outcome::Next;
}

/// Fused multiply-add. In the lanes that v_div_scale has marked in VCC, undoes the scaling of
/// v_div_scale.
template <class T> Outcome do_div_fmas(Env& env, const Instruction& i) {
    Row t[6];
    Row marked;
    const Rows a = fetch<T>(env, i.src[0], t[0], t[1]);
    const Rows b = fetch<T>(env, i.src[1], t[2], t[3]);
    const Rows c = fetch<T>(env, i.src[2], t[4], t[5]);
    expand(env.vcc(), marked.lane);
    Result<T> r(env, i);
    for (unsigned l = 0; l < kLanes; ++l) {
        const T estimate = lane_of<T>(c, l);
        const T sum = fma_of(lane_of<T>(a, l), lane_of<T>(b, l), estimate);
        const bool scaled = marked.lane[l] != 0;
        put_lane<T>(r.low, r.high, l, scaled ? div_scaled_back(sum, estimate) : sum);
    }
    r.commit(env, i);
    return Outcome::Next;
}

/// Four masked sums of absolute differences. Sum k compares source 1 with four bytes of source 0,
/// from byte k on, and adds word k of source 2. Each sum saturates.
Outcome do_mqsad_u32(Env& env, const Instruction& i) {
    constexpr unsigned sums = 4;
    Row t[3];
    const Rows a = fetch<u64>(env, i.src[0], t[0], t[1]);
    const Rows b = fetch<u32>(env, i.src[1], t[2], t[2]);
    Row out[sums];
    for (unsigned l = 0; l < kLanes; ++l) {
        const u64 bytes = lane_of<u64>(a, l);
        for (unsigned k = 0; k < sums; ++k) {
            const u64 sum = u64{msad_u8(static_cast<u32>(bytes >> (8 * k)), b.low[l])} +
                            env.v[i.src[2].value + k].lane[l];
            out[k].lane[l] = saturate<u32>(sum);
        }
    }
    for (unsigned k = 0; k < sums; ++k)
        blend_lanes(env.v[i.dst + k].lane.data(), out[k].lane, env.exec());
    return Outcome::Next;
}

// ---- packed operations

/// The upper half (if `high`) or the lower half of an operand of a packed operation. A float is
/// negated if `negate` is set.
template <class T> VGPU_INLINE T packed_half(const Rows& rows, unsigned l, bool high, bool negate) {
    const u16 bits = static_cast<u16>(high ? rows.low[l] >> 16 : rows.low[l]);
    if constexpr (std::is_same_v<T, f16>)
        return f16{static_cast<u16>(negate ? bits ^ 0x8000 : bits)};
    else
        return static_cast<T>(bits);
}

/// The upper half (if `high`) or the lower half of the result in one lane.
template <class M>
VGPU_INLINE u32 packed_value(const Env& env, const Instruction& i, const Rows (&rows)[3],
                             unsigned l, bool high) {
    using T = typename M::T;
    const u8 select = high ? i.op_sel_hi : i.op_sel;
    T x[3];
    for (unsigned k = 0; k < 3; ++k) {
        const bool negate = high ? ((i.negate_hi >> k) & 1) != 0 : i.src[k].negate;
        x[k] = k < M::kSources ? packed_half<T>(rows[k], l, ((select >> k) & 1) != 0, negate) : T{};
    }
    if constexpr (M::kSaturates)
        if (i.clamp) return static_cast<u16>(saturate<T>(M::value(x[0], x[1], x[2], false)));
    const T value = result_of<T>(M::value(x[0], x[1], x[2], env.ieee()));
    if constexpr (std::is_same_v<T, f16>) {
        if (!i.clamp) return value.bits;
        const bool dx10 = (env.wave.mode & mode::kDx10Clamp) != 0;
        return to_f16(output_modified(to_f32(value), 0, true, dx10)).bits;
    } else {
        return static_cast<u16>(value);
    }
}

/// Computes all lanes into a separate row; only the lanes of EXEC go to the destination.
template <class M> Outcome packed_op(Env& env, const Instruction& i) {
    Row t[3];
    Rows rows[3];
    for (unsigned k = 0; k < M::kSources; ++k) rows[k] = fetch<u32>(env, i.src[k], t[k], t[k]);
    Row out;
    for (unsigned l = 0; l < kLanes; ++l)
        out.lane[l] = packed_value<M>(env, i, rows, l, false) |
                      (packed_value<M>(env, i, rows, l, true) << 16);
    blend_lanes(env.v[i.dst].lane.data(), out.lane, env.exec());
    return Outcome::Next;
}

/// Source `k` of a mixed-precision operation: an f32 or, if its bit in `op_sel_hi` is set, the half
/// of the register that `op_sel` selects. The bits of `negate_hi` mean ABS.
VGPU_INLINE f32 mixed_source(const Instruction& i, const Rows& rows, unsigned k, unsigned l) {
    const bool is_half = ((i.op_sel_hi >> k) & 1) != 0;
    const bool high = ((i.op_sel >> k) & 1) != 0;
    const u32 word = rows.low[l];
    const f32 value = is_half ? to_f32(f16{static_cast<u16>(high ? word >> 16 : word)})
                              : std::bit_cast<f32>(word);
    const f32 magnitude = ((i.negate_hi >> k) & 1) != 0 ? absolute(value) : value;
    return i.src[k].negate ? -magnitude : magnitude;
}

/// The part of the destination register that a mixed-precision operation writes.
enum class Part { Whole, Low, High };

/// All arithmetic is f32. If the result is a half, the f32 is converted at the end (Vega ISA
/// manual, V_MAD_MIX).
template <class M> Outcome mixed_op(Env& env, const Instruction& i) {
    Row t[3];
    Rows rows[3];
    for (unsigned k = 0; k < 3; ++k) rows[k] = fetch<u32>(env, i.src[k], t[k], t[k]);
    const bool dx10 = (env.wave.mode & mode::kDx10Clamp) != 0;
    Row out;
    u32* const to = env.v[i.dst].lane.data();
    for (unsigned l = 0; l < kLanes; ++l) {
        const f32 value =
            output_modified(M::value(mixed_source(i, rows[0], 0, l), mixed_source(i, rows[1], 1, l),
                                     mixed_source(i, rows[2], 2, l)),
                            0, i.clamp, dx10);
        if constexpr (M::kPart == Part::Whole)
            out.lane[l] = std::bit_cast<u32>(value);
        else if constexpr (M::kPart == Part::Low)
            out.lane[l] = (to[l] & 0xffff0000) | to_f16(value).bits;
        else
            out.lane[l] = (to[l] & 0xffff) | (u32{to_f16(value).bits} << 16);
    }
    blend_lanes(to, out.lane, env.exec());
    return Outcome::Next;
}

// ---- the rows of ops/*.def: a struct for each (see VGPU_HANDLER in env.h)

#define VGPU_VECTOR_OP(n, d_type, a_type, b_type, c_type, saturating, expression)        \
    struct n {                                                                           \
        static constexpr Handler kHandler = &vector_op<n>;                               \
        using D = d_type;                                                                \
        using A = a_type;                                                                \
        using B = b_type;                                                                \
        using C = c_type;                                                                \
        static constexpr bool kSaturates = saturating;                                   \
        VGPU_INLINE static auto value(VGPU_ANY auto a, VGPU_ANY auto b, VGPU_ANY auto c, \
                                      VGPU_ANY u32 lane, VGPU_ANY bool ieee) {           \
            return expression;                                                           \
        }                                                                                \
    };
#define VGPU_CARRY(n, d_type, a_type, b_type, c_type, expression, carry_expression, clamp_value) \
    struct n {                                                                                   \
        static constexpr Handler kHandler = &carry_op<n>;                                        \
        using D = d_type;                                                                        \
        using A = a_type;                                                                        \
        using B = b_type;                                                                        \
        using C = c_type;                                                                        \
        VGPU_INLINE static auto value(VGPU_ANY auto a, VGPU_ANY auto b, VGPU_ANY auto c) {       \
            return expression;                                                                   \
        }                                                                                        \
        VGPU_INLINE static bool carry(VGPU_ANY auto a, VGPU_ANY auto b, VGPU_ANY auto c,         \
                                      VGPU_ANY D r) {                                            \
            return carry_expression;                                                             \
        }                                                                                        \
        VGPU_INLINE static D clamped(VGPU_ANY auto a, VGPU_ANY auto b, VGPU_ANY auto c,          \
                                     VGPU_ANY D r, VGPU_ANY bool k) {                            \
            return clamp_value;                                                                  \
        }                                                                                        \
    };
#define VGPU_PACKED(n, element, sources, saturating, expression)                \
    struct n {                                                                  \
        static constexpr Handler kHandler = &packed_op<n>;                      \
        using T = element;                                                      \
        static constexpr unsigned kSources = sources;                           \
        static constexpr bool kSaturates = saturating;                          \
        VGPU_INLINE static auto value(VGPU_ANY T a, VGPU_ANY T b, VGPU_ANY T c, \
                                      VGPU_ANY bool ieee) {                     \
            return expression;                                                  \
        }                                                                       \
    };

#define V1(n, k, d, a, v) VGPU_VECTOR_OP(n, d, a, none, none, false, v)
#define VX1(n, k, d, a, f) VGPU_HANDLER(n, f)
#define V2(n, k, d, a, b, v) VGPU_VECTOR_OP(n, d, a, b, none, false, v)
#define VS2(n, k, d, a, b, v) VGPU_VECTOR_OP(n, d, a, b, none, true, v)
#define VM2(n, k, d, a, b, v) VGPU_VECTOR_OP(n, d, a, b, d, false, v)
#define VK2(n, k, d, a, b, v) VGPU_VECTOR_OP(n, d, a, b, d, false, v)
#define VC2(n, k, d, a, b, v) VGPU_VECTOR_OP(n, d, a, b, mask, false, v)
#define VB2(n, k, m, v, carry, s) VGPU_CARRY(n, u32, u32, u32, m, v, carry, s)
#define V3(n, k, d, a, b, c, v) VGPU_VECTOR_OP(n, d, a, b, c, false, v)
#define VS3(n, k, d, a, b, c, v) VGPU_VECTOR_OP(n, d, a, b, c, true, v)
#define VH3(n, k, d, a, b, c, v) VGPU_VECTOR_OP(n, d, a, b, c, false, v)
#define VHS3(n, k, d, a, b, c, v) VGPU_VECTOR_OP(n, d, a, b, c, true, v)
#define VM3(n, k, d, a, b, v) VGPU_VECTOR_OP(n, d, a, b, d, false, v)
#define VB3(n, k, d, a, b, c, v, carry, s) VGPU_CARRY(n, d, a, b, c, v, carry, s)
#define VX3(n, k, d, a, b, c, f) VGPU_HANDLER(n, f)
#define VP(n, k, t, count, v) VGPU_PACKED(n, t, count, false, v)
#define VPS(n, k, t, count, v) VGPU_PACKED(n, t, count, true, v)
#define VF(n, k, part, v)                                               \
    struct n {                                                          \
        static constexpr Handler kHandler = &mixed_op<n>;               \
        static constexpr Part kPart = Part::part;                       \
        VGPU_INLINE static f32 value(f32 a, f32 b, f32 c) { return v; } \
    };
#define ROW(kind, ...) kind(__VA_ARGS__)
#include "pf-driver/softgpu/isa/ops/vop1.def"
#include "pf-driver/softgpu/isa/ops/vop2.def"
#include "pf-driver/softgpu/isa/ops/vop3.def"
#include "pf-driver/softgpu/isa/ops/vop3p.def"
#undef ROW

}  // namespace

void fill_vector(HandlerTable& table) {
#define ROW VGPU_SET
#include "pf-driver/softgpu/isa/ops/vop1.def"
#include "pf-driver/softgpu/isa/ops/vop2.def"
#include "pf-driver/softgpu/isa/ops/vop3.def"
#include "pf-driver/softgpu/isa/ops/vop3p.def"
#undef ROW
}

}  // namespace vgpu::softgpu::isa::VGPU_ISA_VARIANT
