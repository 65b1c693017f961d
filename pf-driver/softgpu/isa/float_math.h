// SPDX-License-Identifier: MIT
//
// The floating-point functions that the value expressions of ops/*.def call: IEEE operations of the
// host, and operations in which the GPU differs from the host (min and max, saturating conversions,
// division helpers, half precision). Functions round in the mode of the host's MXCSR unless their
// name or comment says otherwise; run_checked() sets MXCSR from MODE.
//
// Most execute units (unit_*.cpp) include this file, each into the namespace of its build
// (lane_math.h).
#pragma once

#include "pf-driver/softgpu/isa/lane_math.h"

namespace vgpu::softgpu::isa::VGPU_ISA_VARIANT {

/// The IEEE 754 layout of T (bits of the mantissa, bias, the exponent of infinities and NaNs), and
/// the limits of the division helpers (Vega ISA manual, V_DIV_SCALE_F32, V_DIV_FIXUP_F32). Below,
/// a distance is the numerator's exponent minus the denominator's exponent:
///   kFar        smallest distance at which the denominator is scaled up
///   kScale      a scaled operand is multiplied by 2^kScale or 2^-kScale
///   kTiny       largest biased exponent of a numerator for which both operands are scaled up
///   kUnderflow  smallest distance at which the quotient does not underflow
template <class T> struct FloatTraits;
template <> struct FloatTraits<f32> {
    using Bits = u32;
    static constexpr int kMantissa = 23, kBias = 127, kMaxExponent = 255;
    static constexpr Bits kSign = 0x80000000, kQuiet = 0x00400000, kInf = 0x7f800000;
    static constexpr int kFar = 96, kScale = 64, kTiny = 23, kUnderflow = -150;
};
template <> struct FloatTraits<f64> {
    using Bits = u64;
    static constexpr int kMantissa = 52, kBias = 1023, kMaxExponent = 2047;
    static constexpr Bits kSign = 0x8000000000000000, kQuiet = 0x0008000000000000,
                          kInf = 0x7ff0000000000000;
    static constexpr int kFar = 768, kScale = 128, kTiny = 53, kUnderflow = -1075;
};

template <class T> VGPU_INLINE auto bits_of(T a) {
    return std::bit_cast<typename FloatTraits<T>::Bits>(a);
}
template <class T> VGPU_INLINE T from_bits(typename FloatTraits<T>::Bits bits) {
    return std::bit_cast<T>(bits);
}
/// The biased exponent.
template <class T> VGPU_INLINE int exponent_of(T a) {
    using F = FloatTraits<T>;
    return static_cast<int>((bits_of(a) >> F::kMantissa) &
                            static_cast<typename F::Bits>(F::kMaxExponent));
}
/// True for a NaN whose quiet bit is clear.
template <class T> VGPU_INLINE bool is_signalling(T a) {
    return a != a && (bits_of(a) & FloatTraits<T>::kQuiet) == 0;
}
template <class T> VGPU_INLINE T quieted(T a) {
    return from_bits<T>(bits_of(a) | FloatTraits<T>::kQuiet);
}
template <class T> VGPU_INLINE bool is_denormal(T a) {
    return exponent_of(a) == 0 && a != T{0};
}
/// A denormal becomes a zero of the same sign.
template <class T> VGPU_INLINE T flushed(T a) {
    return exponent_of(a) == 0 ? from_bits<T>(bits_of(a) & FloatTraits<T>::kSign) : a;
}
template <class T> VGPU_INLINE T absolute(T a) {
    return from_bits<T>(bits_of(a) & ~FloatTraits<T>::kSign);
}

/// Defines the function `name` for singles and for doubles, as a call of a compiler builtin.
#define VGPU_HOST_FUNCTION(name, builtin) \
    VGPU_INLINE f32 name(f32 a) {         \
        return builtin##f(a);             \
    }                                     \
    VGPU_INLINE f64 name(f64 a) {         \
        return builtin(a);                \
    }
VGPU_HOST_FUNCTION(floor_of, __builtin_floor)
VGPU_HOST_FUNCTION(ceil_of, __builtin_ceil)
VGPU_HOST_FUNCTION(trunc_of, __builtin_trunc)
VGPU_HOST_FUNCTION(sqrt_of, __builtin_sqrt)
/// Rounds to a whole number in the mode of the host's MXCSR. Of the operations that call rint_of(),
/// only v_cvt_pk_u8_f32 and v_cvt_pkaccum_u8_f32 round as MODE says; for all others, MXCSR is set
/// to nearest even.
VGPU_HOST_FUNCTION(rint_of, __builtin_rint)
/// Computes in double precision, so that the single result is accurate.
VGPU_INLINE f32 reciprocal_sqrt(f32 a) {
    return static_cast<f32>(1.0 / __builtin_sqrt(f64{a}));
}
VGPU_INLINE f64 reciprocal_sqrt(f64 a) {
    return 1.0 / __builtin_sqrt(a);
}
// If several operands are NaNs, the result is the first of them as a quiet NaN, as in the
// translator's host code. C++ does not specify which NaN `a + b` gives, and compilers swap
// operands.
template <class T> VGPU_INLINE T sum_of(T a, T b) {
    return a != a ? quieted(a) : a + b;
}
template <class T> VGPU_INLINE T product_of(T a, T b) {
    return a != a ? quieted(a) : a * b;
}
VGPU_INLINE f32 host_fma(f32 a, f32 b, f32 c) {
    return __builtin_fmaf(a, b, c);
}
VGPU_INLINE f64 host_fma(f64 a, f64 b, f64 c) {
    return __builtin_fma(a, b, c);
}
template <class T> VGPU_INLINE T fma_of(T a, T b, T c) {
    const T number = b != b ? quieted(b) : host_fma(a, b, c);
    return a != a ? quieted(a) : number;
}

/// The result of v_exp_f32: a value that would be denormal is 0, whatever MODE says.
VGPU_INLINE f32 exp2_approximate(f32 a) {
    return a < -126.0f ? 0.0f : std::exp2(a);
}

/// Converts the angle `a` from turns to radians, after reducing it to [-1/2, 1/2) turns. The
/// reduction is exact, so neither a large nor a tiny `a` loses precision.
VGPU_INLINE f64 radians_of_turns(f32 a) {
    return (f64{a} - __builtin_floor(f64{a} + 0.5)) * 6.283185307179586476925;
}
VGPU_INLINE f32 sin_turns(f32 a) {
    return static_cast<f32>(std::sin(radians_of_turns(a)));
}
VGPU_INLINE f32 cos_turns(f32 a) {
    return static_cast<f32>(std::cos(radians_of_turns(a)));
}

/// True for finite numbers beyond 256 turns in either direction, for which v_sin_f32 and v_cos_f32
/// give the value at 0.
VGPU_INLINE bool is_outside_domain(f32 a) {
    constexpr f32 turns = 256.0f;
    return absolute(a) > turns && absolute(a) <= std::numeric_limits<f32>::max();
}
VGPU_INLINE f32 sin_in_domain(f32 a) {
    return is_outside_domain(a) ? 0.0f : sin_turns(a);
}
VGPU_INLINE f32 cos_in_domain(f32 a) {
    return is_outside_domain(a) ? 1.0f : cos_turns(a);
}

/// `a` minus its floor. The result is below 1 even if `a` is a tiny negative number, for which the
/// difference rounds up to 1.
template <class T> VGPU_INLINE T fraction(T a) {
    const T r = a - floor_of(a);
    constexpr T below_one = T{1} - std::numeric_limits<T>::epsilon() / 2;
    return r >= T{1} ? below_one : r;
}
/// DX9 rule: 0 times anything is 0, infinities and NaNs included.
template <class T> VGPU_INLINE T mul_legacy(T a, T b) {
    return a == T{0} || b == T{0} ? T{0} : product_of(a, b);
}
/// The unfused single-precision multiply-add flushes denormals, whatever MODE says.
VGPU_INLINE f32 mad_flushed(f32 a, f32 b, f32 c) {
    return flushed(sum_of(flushed(product_of(flushed(a), flushed(b))), flushed(c)));
}

VGPU_INLINE f32 mad_legacy_flushed(f32 a, f32 b, f32 c) {
    return flushed(sum_of(flushed(mul_legacy(flushed(a), flushed(b))), flushed(c)));
}
/// A signalling NaN becomes a quiet one.
VGPU_INLINE f32 without_signal(f32 a) {
    return a != a ? quieted(a) : a;
}

// Cube maps: the coordinate with the greatest magnitude selects the axis (0: x, 1: y, 2: z). If
// magnitudes are equal, z comes before y, and y before x.
VGPU_INLINE u32 cube_axis(f32 x, f32 y, f32 z) {
    if (absolute(z) >= absolute(x) && absolute(z) >= absolute(y)) return 2;
    return absolute(y) >= absolute(x) ? 1 : 0;
}
VGPU_INLINE f32 cube_major(f32 x, f32 y, f32 z) {
    const u32 axis = cube_axis(x, y, z);
    return axis == 2 ? z : (axis == 1 ? y : x);
}
VGPU_INLINE f32 cube_face(f32 x, f32 y, f32 z) {
    const f32 first = static_cast<f32>(2 * cube_axis(x, y, z));
    return cube_major(x, y, z) < 0.0f ? first + 1.0f : first;
}
VGPU_INLINE f32 cube_s(f32 x, f32 y, f32 z) {
    const u32 axis = cube_axis(x, y, z);
    if (axis == 2) return z < 0.0f ? -x : x;
    if (axis == 1) return x;
    return x < 0.0f ? z : -z;
}
VGPU_INLINE f32 cube_t(f32 x, f32 y, f32 z) {
    if (cube_axis(x, y, z) != 1) return -y;
    return y < 0.0f ? -z : z;
}

/// Minimum with the GPU's rules: -0 < +0; a number is preferred to a NaN; in IEEE mode, a
/// signalling NaN is preferred to a number, and the result is that NaN made quiet.
template <class T> VGPU_INLINE T min_of(T a, T b, bool ieee) {
    const T smaller = a < b ? a : b;
    const T ordered = a == b ? from_bits<T>(bits_of(a) | bits_of(b)) : smaller;
    const T number = a != a ? b : (b != b ? a : ordered);
    const T quiet_b = ieee && is_signalling(b) ? quieted(b) : number;
    return ieee && is_signalling(a) ? quieted(a) : quiet_b;
}
template <class T> VGPU_INLINE T max_of(T a, T b, bool ieee) {
    const T larger = a > b ? a : b;
    const T ordered = a == b ? from_bits<T>(bits_of(a) & bits_of(b)) : larger;
    const T number = a != a ? b : (b != b ? a : ordered);
    const T quiet_b = ieee && is_signalling(b) ? quieted(b) : number;
    return ieee && is_signalling(a) ? quieted(a) : quiet_b;
}
/// If an operand is a NaN, v_med3_f32 has the result of v_min3_f32 (Vega ISA manual, V_MED3_F32).
template <class T> VGPU_INLINE T median_of(T a, T b, T c, bool ieee) {
    if (a != a || b != b || c != c) return min_of(min_of(a, b, ieee), c, ieee);
    const T low = min_of(a, b, false);
    const T high = max_of(a, b, false);
    return min_of(max_of(low, c, false), high, false);
}
template <class T> VGPU_INLINE T atomic_min(T d, T a) {
    return min_of(d, a, false);
}
template <class T> VGPU_INLINE T atomic_max(T d, T a) {
    return max_of(d, a, false);
}

/// to_i32(), to_u32(): round toward zero and saturate; a NaN becomes 0. The plain C++ conversion of
/// a NaN, or of a number out of range, is undefined.
template <class T> VGPU_INLINE i32 to_i32(T a) {
    if (!(a > T{-2147483648.0})) return a != a ? 0 : std::numeric_limits<i32>::min();
    return a >= T{2147483648.0} ? std::numeric_limits<i32>::max() : static_cast<i32>(a);
}
template <class T> VGPU_INLINE u32 to_u32(T a) {
    if (!(a > T{0})) return 0;
    return a >= T{4294967296.0} ? ~0u : static_cast<u32>(static_cast<i64>(a));
}
VGPU_INLINE u32 to_u8(f32 a) {
    const f32 rounded = rint_of(a);
    if (!(rounded > 0.0f)) return 0;
    return rounded >= 255.0f ? 255 : static_cast<u32>(static_cast<i32>(rounded));
}
/// Maps [-1, 1] or, for an unsigned T, [0, 1] to a normalised integer. The product in double
/// precision is exact, so the result is rounded only once.
template <class T> VGPU_INLINE T to_norm(f32 a) {
    constexpr f32 top = static_cast<f32>(std::numeric_limits<T>::max());
    constexpr f32 low = std::is_signed_v<T> ? -1.0f : 0.0f;
    const f32 bounded = a != a ? 0.0f : (a < low ? low : (a > 1.0f ? 1.0f : a));
    return static_cast<T>(static_cast<i32>(rint_of(f64{bounded} * f64{top})));
}

template <class T> VGPU_INLINE bool is_finite_nonzero(T a) {
    return exponent_of(a) != FloatTraits<T>::kMaxExponent && a != T{0};
}
template <class T> VGPU_INLINE i32 frexp_exponent(T a) {
    if (!is_finite_nonzero(a)) return 0;
    int exponent = 0;
    (void)std::frexp(a, &exponent);
    return exponent;
}
template <class T> VGPU_INLINE T frexp_mantissa(T a) {
    if (!is_finite_nonzero(a)) return a;
    int exponent = 0;
    return std::frexp(a, &exponent);
}
/// `a` * 2^`exponent`. The product in double precision is exact, so the result is rounded only
/// once, even if it is denormal.
VGPU_INLINE f32 scale_by(f32 a, i32 exponent) {
    const i32 bounded = exponent < -300 ? -300 : (exponent > 300 ? 300 : exponent);
    const f64 power = std::bit_cast<f64>(static_cast<u64>(i64{bounded} + 1023) << 52);
    return static_cast<f32>(f64{a} * power);
}
VGPU_INLINE f64 scale_by(f64 a, i32 exponent) {
    return std::scalbn(a, exponent);
}

/// True if the class of `a` is in `classes`, whose bits are, from bit 0 on: signalling NaN, quiet
/// NaN, -inf, -normal, -denormal, -0, +0, +denormal, +normal, +inf (Vega ISA manual,
/// V_CMP_CLASS_F32).
template <class T> VGPU_INLINE bool is_class(T a, u32 classes) {
    const bool negative = (bits_of(a) & FloatTraits<T>::kSign) != 0;
    u32 bit_number = negative ? 3 : 8;
    if (a != a)
        bit_number = is_signalling(a) ? 0 : 1;
    else if (exponent_of(a) == FloatTraits<T>::kMaxExponent)
        bit_number = negative ? 2 : 9;
    else if (a == T{0})
        bit_number = negative ? 5 : 6;
    else if (exponent_of(a) == 0)
        bit_number = negative ? 4 : 7;
    return ((classes >> bit_number) & 1) != 0;
}

// ---- division helpers: b is the denominator, c the numerator

template <class T> VGPU_INLINE bool same_bits(T a, T b) {
    return bits_of(a) == bits_of(b);
}

/// Returns `a`, scaled if the division needs it; a NaN if `b` or `c` is 0. `a` is a copy of either
/// `b` or `c`; the function compares bits to find out which.
template <class T> VGPU_INLINE T div_scale(T a, T b, T c) {
    using F = FloatTraits<T>;
    if (c == T{0} || b == T{0}) return std::numeric_limits<T>::quiet_NaN();
    const bool is_denominator = same_bits(a, b);
    if (exponent_of(c) - exponent_of(b) >= F::kFar)
        return is_denominator ? scale_by(a, F::kScale) : a;
    if (is_denormal(b)) return scale_by(a, F::kScale);
    const bool tiny_reciprocal = is_denormal(T{1} / b);
    const bool tiny_quotient = is_denormal(c / b);
    if (tiny_reciprocal && tiny_quotient) return is_denominator ? scale_by(a, -F::kScale) : a;
    if (tiny_reciprocal) return scale_by(a, -F::kScale);
    if (tiny_quotient) return same_bits(a, c) ? scale_by(a, F::kScale) : a;
    return exponent_of(c) <= F::kTiny ? scale_by(a, F::kScale) : a;
}
/// True if v_div_fmas must scale the quotient back.
template <class T> VGPU_INLINE bool div_scale_flag(T b, T c) {
    if (c == T{0} || b == T{0}) return false;
    if (exponent_of(c) - exponent_of(b) >= FloatTraits<T>::kFar) return true;
    return !is_denormal(b) && is_denormal(c / b);
}
/// Undoes the scaling of v_div_scale in `sum`, the quotient that v_div_fmas has computed:
/// v_div_scale made a big quotient smaller and a small quotient bigger. `estimate`, the quotient
/// before this step, shows which of the two happened.
template <class T> VGPU_INLINE T div_scaled_back(T sum, T estimate) {
    constexpr int scale = FloatTraits<T>::kScale;
    return scale_by(sum, exponent_of(estimate) > FloatTraits<T>::kBias ? scale : -scale);
}
template <class T> VGPU_INLINE T with_sign(T magnitude, bool negative) {
    const T plain = absolute(magnitude);
    return negative ? -plain : plain;
}
/// The quotient `c` / `b`. `a` is the quotient that the program has computed iteratively; the
/// result is `a`, except in the cases that the iteration gets wrong (zeros, infinities, NaNs,
/// underflow).
template <class T> VGPU_INLINE T div_fixup(T a, T b, T c) {
    using F = FloatTraits<T>;
    const bool negative = ((bits_of(b) ^ bits_of(c)) & F::kSign) != 0;
    const T infinity = from_bits<T>(F::kInf);
    if (c != c) return quieted(c);
    if (b != b) return quieted(b);
    const bool both_zero = b == T{0} && c == T{0};
    const bool both_infinite = absolute(b) == infinity && absolute(c) == infinity;
    if (both_zero || both_infinite) return from_bits<T>(F::kSign | F::kInf | F::kQuiet);
    if (b == T{0} || absolute(c) == infinity) return with_sign(infinity, negative);
    if (absolute(b) == infinity || c == T{0}) return with_sign(T{0}, negative);
    if (exponent_of(c) - exponent_of(b) < FloatTraits<T>::kUnderflow)
        return with_sign(from_bits<T>(1) / T{2},
                         negative);  // rounds the underflow as MODE says
    return with_sign(a != a ? infinity : a, negative);
}

/// Segment `b` of 2 / pi, for the argument reduction of `a`. A segment has 53 bits.
f64 trig_preop(f64 a, u32 b);

// ---- half precision: each step is computed in single (or double) and rounded in the host's mode

/// Exact. The multiplication by 2^112 corrects the bias (127 - 15), and normalises denormals
/// without a loop, so that callers' loops vectorise.
VGPU_INLINE f32 to_f32(f16 a) {
    const u32 magnitude = u32{a.bits} & 0x7fff;
    const u32 sign = (u32{a.bits} & 0x8000) << 16;
    const f32 scaled = std::bit_cast<f32>(magnitude << 13) * 0x1p112f;
    const u32 number = std::bit_cast<u32>(scaled);
    const u32 special = 0x7f800000 | ((magnitude & 0x3ff) << 13);
    return std::bit_cast<f32>((magnitude >= 0x7c00 ? special : number) | sign);
}

/// Infinity or the largest half, whichever the host's rounding mode gives for a number that is too
/// big. To find out, makes `too_big` overflow on the host.
template <class T> VGPU_INLINE f16 overflowed_half(T too_big, u16 sign) {
    constexpr T to_overflow = sizeof(T) == 4 ? static_cast<T>(0x1p112) : static_cast<T>(0x1p1008);
    const bool infinite = absolute(too_big * to_overflow) > std::numeric_limits<T>::max();
    return {static_cast<u16>(sign | (infinite ? 0x7c00 : 0x7bff))};
}

/// Rounds `a` to half precision. For that, adds and then subtracts `big`, a number of the same sign
/// whose last bit has the weight of the last bit of the half. This works in every rounding mode.
template <class T> VGPU_INLINE f16 round_to_half(T a) {
    using F = FloatTraits<T>;
    using B = typename F::Bits;
    const B sign = bits_of(a) & F::kSign;
    const u16 sign16 = static_cast<u16>(sign >> (sizeof(T) * 8 - 16));
    const int exponent = exponent_of(a);
    if (exponent == F::kMaxExponent) {
        const B payload = bits_of(a) & ((B{1} << F::kMantissa) - 1);
        const u16 nan = static_cast<u16>(0x7e00 | (payload >> (F::kMantissa - 10)));
        return {static_cast<u16>(sign16 | (payload != 0 ? nan : 0x7c00))};
    }
    if (exponent > F::kBias + 40) return overflowed_half(a, sign16);
    const int min = F::kBias - 14;
    const int shift = (exponent < min ? min : exponent) + F::kMantissa - 10;
    const T big =
        from_bits<T>(sign | (static_cast<B>(shift) << F::kMantissa) | (B{1} << (F::kMantissa - 1)));
    const T rounded = (a + big) - big;
    const T magnitude = absolute(rounded);
    if (magnitude >= T{65536}) return overflowed_half(rounded, sign16);
    const T unit = magnitude * T{0x1p24};  // a whole number of the smallest denormals
    const u64 whole = static_cast<u64>(static_cast<i64>(unit));
    if (whole < 1024) return {static_cast<u16>(sign16 | whole)};
    const int top = 63 - std::countl_zero(whole);
    const u64 fraction_bits = (whole >> (top - 10)) & 0x3ff;
    return {static_cast<u16>(sign16 | (static_cast<u64>(top - 9) << 10) | fraction_bits)};
}
VGPU_INLINE f16 to_f16(f32 a) {
    return round_to_half(a);
}
/// Rounds toward zero, regardless of the rounding mode. A finite number that is too big becomes the
/// largest half.
VGPU_INLINE f16 to_f16_toward_zero(f32 a) {
    const u32 bits = std::bit_cast<u32>(a);
    const u16 sign = static_cast<u16>((bits >> 16) & 0x8000);
    const f32 magnitude = absolute(a);
    if (a != a) return round_to_half(a);
    if (magnitude >= 65504.0f)
        return {static_cast<u16>(
            sign | (magnitude == std::numeric_limits<f32>::infinity() ? 0x7c00 : 0x7bff))};
    if (magnitude < 0x1p-14f)
        return {static_cast<u16>(sign | static_cast<u32>(static_cast<i32>(magnitude * 0x1p24f)))};
    return {static_cast<u16>(sign | (((bits & 0x7fffffff) - (112u << 23)) >> 13))};
}
VGPU_INLINE f16 fma_of(f16 a, f16 b, f16 c) {
    return round_to_half(__builtin_fma(f64{to_f32(a)}, f64{to_f32(b)}, f64{to_f32(c)}));
}
VGPU_INLINE f16 flushed(f16 a) {
    return (a.bits & 0x7c00) == 0 ? f16{static_cast<u16>(a.bits & 0x8000)} : a;
}
/// The unfused half-precision multiply-add flushes denormals, whatever MODE says.
VGPU_INLINE f16 mad_of(f16 a, f16 b, f16 c) {
    const f16 product = flushed(to_f16(to_f32(flushed(a)) * to_f32(flushed(b))));
    return flushed(to_f16(to_f32(product) + to_f32(flushed(c))));
}
#define VGPU_COMPARE_HALVES(op)                  \
    VGPU_INLINE bool operator op(f16 a, f16 b) { \
        return to_f32(a) op to_f32(b);           \
    }
VGPU_COMPARE_HALVES(<)
VGPU_COMPARE_HALVES(>)
VGPU_COMPARE_HALVES(<=)
VGPU_COMPARE_HALVES(>=)
VGPU_COMPARE_HALVES(==)
VGPU_COMPARE_HALVES(!=)
VGPU_INLINE f16 min_of(f16 a, f16 b, bool ieee) {
    return to_f16(min_of(to_f32(a), to_f32(b), ieee));
}
VGPU_INLINE f16 max_of(f16 a, f16 b, bool ieee) {
    return to_f16(max_of(to_f32(a), to_f32(b), ieee));
}
VGPU_INLINE f16 median_of(f16 a, f16 b, f16 c, bool ieee) {
    return to_f16(median_of(to_f32(a), to_f32(b), to_f32(c), ieee));
}
/// `a` minus its floor, at most 0x1.ffcp-1, the largest half below 1.
VGPU_INLINE f16 fraction(f16 a) {
    const f32 r = to_f32(a) - floor_of(to_f32(a));
    return to_f16(r > 0x1.ffcp-1f ? 0x1.ffcp-1f : r);
}
VGPU_INLINE bool is_class(f16 a, u32 classes) {
    const u32 magnitude = a.bits & 0x7fffu;
    const f32 wide = to_f32(a);
    const bool is_half_denormal = magnitude != 0 && magnitude < 0x400;
    const bool is_signalling_half = magnitude > 0x7c00 && (magnitude & 0x200) == 0;
    if (is_half_denormal) return ((classes >> ((a.bits & 0x8000) != 0 ? 4 : 7)) & 1) != 0;
    if (is_signalling_half) return (classes & 1) != 0;
    return is_class(wide, classes);
}
VGPU_INLINE f16 div_fixup(f16 a, f16 b, f16 c) {
    return to_f16(div_fixup(to_f32(a), to_f32(b), to_f32(c)));
}

}  // namespace vgpu::softgpu::isa::VGPU_ISA_VARIANT
