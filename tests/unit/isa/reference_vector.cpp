// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "tests/unit/isa/reference.h"
#include "tests/unit/isa/soft_float.h"

namespace vgpu::test {

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;
using Wide = __int128;

i64 s32(u64 x) {
    return static_cast<std::int32_t>(x);
}
i64 s16(u64 x) {
    return static_cast<std::int16_t>(x);
}
u64 u16(u64 x) {
    return x & 0xffff;
}
u64 low(i64 x) {
    return static_cast<u32>(x);
}
u64 low16(i64 x) {
    return static_cast<std::uint16_t>(x);
}
i64 s24(u64 x) {
    const i64 field = static_cast<i64>(x & 0xffffff);
    return field >= 0x800000 ? field - 0x1000000 : field;
}
u64 byte(u64 x, unsigned i) {
    return (x >> (8 * i)) & 0xff;
}
i64 distance(i64 a, i64 b) {
    return a > b ? a - b : b - a;
}

// ---- floats

using Unpack = Quad (*)(u64);

u64 to_single(Quad x) {
    return pack(x, kSingle);
}
u64 to_double(Quad x) {
    return pack(x, kDouble);
}
u64 to_half(Quad x) {
    return pack(x, kHalf);
}
u64 flush(u64 x) {
    return kSingle.flushed(x & 0xffffffff);
}
u64 flush_half(u64 x) {
    return kHalf.flushed(x & 0xffff);
}
/// The unfused multiply-add without denormals.
u64 mad(u64 a, u64 b, u64 c) {
    const u64 product = flush(to_single(single(flush(a)) * single(flush(b))));
    return flush(to_single(sum(single(product), single(flush(c)))));
}
u64 mad_half(u64 a, u64 b, u64 c) {
    const u64 product = flush_half(to_half(half(flush_half(a)) * half(flush_half(b))));
    return flush_half(to_half(half(product) + half(flush_half(c))));
}
bool is_zero(Quad x) {
    return x == 0;
}
bool is_nan(Quad x) {
    return x != x;
}
bool is_infinite(Quad x) {
    return !is_nan(x) && is_nan(x - x);
}
Quad magnitude(Quad x) {
    return is_negative(x) ? -x : x;
}
/// Product for which zero times anything is zero.
Quad legacy(u64 a, u64 b) {
    return is_zero(single(a)) || is_zero(single(b)) ? Quad{0} : single(a) * single(b);
}

/// The function on numbers, in 64 bits of precision: enough for 1 ULP of a double.
template <long double (*F)(long double)> Quad real(Quad x) {
    return static_cast<Quad>(F(static_cast<long double>(x)));
}
long double floor_l(long double x) {
    return std::floor(x);
}
long double ceil_l(long double x) {
    return std::ceil(x);
}
long double trunc_l(long double x) {
    return std::trunc(x);
}
long double rint_l(long double x) {
    return std::rint(x);
}
long double exp2_l(long double x) {
    return std::exp2(x);
}
long double log2_l(long double x) {
    return std::log2(x);
}
long double sqrt_l(long double x) {
    return std::sqrt(x);
}
long double rsqrt_l(long double x) {
    return 1.0L / std::sqrt(x);
}
long double sin_l(long double x) {
    return std::sin(2 * std::numbers::pi_v<long double> * (x - std::floor(x)));
}
long double cos_l(long double x) {
    return std::cos(2 * std::numbers::pi_v<long double> * (x - std::floor(x)));
}
/// -0 stays -0 where the library says so; fmin of the standard leaves zeros unordered, this not.
u64 min(u64 a, u64 b, FloatFormat format, Unpack value, bool greatest) {
    if (format.is_nan(a) && (a & format.quiet()) != format.quiet()) return a | format.quiet();
    if (format.is_nan(b) && (b & format.quiet()) != format.quiet()) return b | format.quiet();
    if (format.is_nan(a)) return b;
    if (format.is_nan(b)) return a;
    if (is_zero(value(a)) && is_zero(value(b)))
        return ((a & format.sign()) != 0) != greatest ? a : b;
    return (value(a) < value(b)) != greatest ? a : b;
}
template <const FloatFormat& F, Unpack V> u64 min_of(u64 a, u64 b) {
    return min(a & (F.sign() | (F.sign() - 1)), b & (F.sign() | (F.sign() - 1)), F, V, false);
}
template <const FloatFormat& F, Unpack V> u64 greatest_of(u64 a, u64 b) {
    return min(a & (F.sign() | (F.sign() - 1)), b & (F.sign() | (F.sign() - 1)), F, V, true);
}
template <const FloatFormat& F, Unpack V> u64 median_of(u64 a, u64 b, u64 c) {
    const u64 bits = F.sign() | (F.sign() - 1);
    if (F.is_nan(a & bits) || F.is_nan(b & bits) || F.is_nan(c & bits))
        return min_of<F, V>(min_of<F, V>(a, b), c);
    std::array<u64, 3> sorted{a & bits, b & bits, c & bits};
    std::ranges::sort(sorted, [](u64 x, u64 y) {
        if (V(x) != V(y)) return V(x) < V(y);
        return (x & F.sign()) != 0 && (y & F.sign()) == 0;
    });
    return sorted[1];
}
template <class T> i64 truncated(Quad x) {
    if (is_nan(x)) return 0;
    const Quad low_end = static_cast<Quad>(std::numeric_limits<T>::min());
    const Quad high_end = static_cast<Quad>(std::numeric_limits<T>::max());
    return static_cast<i64>(x < low_end ? low_end : (x > high_end ? high_end : x));
}
u64 normalised(Quad x, Quad low_end, i64 top) {
    if (is_nan(x)) return 0;
    const Quad bounded = x < low_end ? low_end : (x > 1 ? Quad{1} : x);
    return low16(static_cast<i64>(real<rint_l>(bounded * static_cast<Quad>(top))));
}
u64 snorm(Quad x) {
    return normalised(x, -1, 32767);
}
u64 unorm(Quad x) {
    return normalised(x, 0, 65535);
}
int exponent_of(Quad x) {
    int out = 0;
    if (!is_nan(x) && !is_infinite(x)) (void)std::frexp(static_cast<long double>(x), &out);
    return out;
}
Quad mantissa_of(Quad x) {
    if (is_nan(x) || is_infinite(x)) return x;
    int out = 0;
    return static_cast<Quad>(std::frexp(static_cast<long double>(x), &out));
}
Quad scaled(Quad x, i64 exponent) {
    const auto bounded = static_cast<int>(std::clamp<i64>(exponent, -5000, 5000));
    return x * power_of_two(bounded);
}
/// x - floor(x), below 1.
template <const FloatFormat& F, Unpack V> u64 fraction(u64 x) {
    const Quad value = V(x);
    if (is_nan(value) || is_infinite(value)) return F.quiet();
    const u64 below_one = pack(1, F) - 1;
    return std::min(pack(value - real<floor_l>(value), F), below_one);
}
/// Ten classes: NaNs, then from minus to plus infinity.
u64 class_of(u64 x, FloatFormat format) {
    const bool negative = (x & format.sign()) != 0;
    if (format.is_nan(x)) return (x & format.quiet()) == format.quiet() ? 1u : 0u;
    if (format.is_infinite(x)) return negative ? 2 : 9;
    if ((x & (format.sign() - 1)) == 0) return negative ? 5 : 6;
    if (format.is_denormal(x)) return negative ? 4 : 7;
    return negative ? 3 : 8;
}
/// The last step of a division: quotient, denominator, numerator.
template <const FloatFormat& F, Unpack V> u64 fixup(u64 q, u64 d, u64 n, int too_small) {
    const u64 bits = F.sign() | (F.sign() - 1);
    q &= bits, d &= bits, n &= bits;
    const u64 sign = (d ^ n) & F.sign();
    if (F.is_nan(n)) return n | F.quiet();
    if (F.is_nan(d)) return d | F.quiet();
    const bool zero_d = is_zero(V(d)), zero_n = is_zero(V(n));
    if ((zero_d && zero_n) || (F.is_infinite(d) && F.is_infinite(n))) return F.sign() | F.quiet();
    if (zero_d || F.is_infinite(n)) return sign | F.infinity();
    if (F.is_infinite(d) || zero_n) return sign;
    const auto exponent = [](u64 x) {
        return static_cast<int>((x & (F.sign() - 1)) >> F.mantissa);
    };
    if (exponent(n) - exponent(d) < too_small) return sign;
    if (F.is_nan(q)) return sign | F.infinity();
    return sign | (q & (F.sign() - 1));
}

// ---- integers

u64 sad(u64 a, u64 b, bool masked) {
    u64 sum = 0;
    for (unsigned i = 0; i < 4; ++i)
        if (!masked || byte(b, i) != 0)
            sum += static_cast<u64>(
                distance(static_cast<i64>(byte(a, i)), static_cast<i64>(byte(b, i))));
    return sum;
}
u64 quad_sad(const Operands& o, bool masked) {
    u64 out = 0;
    for (unsigned i = 0; i < 4; ++i) {
        const u64 sum = sad(o.a >> (8 * i), o.b, masked) + u16(o.c >> (16 * i));
        out |= std::min<u64>(sum, 0xffff) << (16 * i);
    }
    return out;
}
u64 permuted(const Operands& o) {
    u64 out = 0;
    const u64 bytes = (o.a << 32) | (o.b & 0xffffffff);
    for (unsigned i = 0; i < 4; ++i) {
        const u64 s = byte(o.c, i);
        u64 value = s >= 13 ? 0xff : 0;
        if (s < 8) value = byte(bytes, static_cast<unsigned>(s));
        if (s >= 8 && s < 12)
            value = byte(bytes, static_cast<unsigned>(2 * (s - 8) + 1)) >= 0x80 ? 0xff : 0;
        out |= value << (8 * i);
    }
    return out;
}
u64 reversed(u64 x, unsigned bits) {
    u64 out = 0;
    for (unsigned i = 0; i < bits; ++i) out |= ((x >> i) & 1) << (bits - 1 - i);
    return out;
}
/// Place of the first bit that is `wanted`, from the top or the bottom; -1 if none is.
u64 place_of(u64 x, bool wanted, unsigned bits, bool from_top) {
    for (unsigned i = 0; i < bits; ++i)
        if ((((x >> (from_top ? bits - 1 - i : i)) & 1) != 0) == wanted) return i;
    return 0xffffffff;
}
u64 ones(u64 x, unsigned bits) {
    u64 out = 0;
    for (unsigned i = 0; i < bits; ++i) out += (x >> i) & 1;
    return out;
}
u64 below(u32 lane) {
    return (u64{1} << lane) - 1;
}
i64 sort_middle(i64 a, i64 b, i64 c) {
    return std::max(std::min(a, b), std::min(std::max(a, b), c));
}
u64 pack2(u64 a, u64 b) {
    return u16(a) | (u16(b) << 16);
}
i64 bounded(i64 x, i64 low_end, i64 high_end) {
    return std::clamp(x, low_end, high_end);
}

// cube maps
int axis(const Operands& o) {
    const Quad x = magnitude(single(o.a)), y = magnitude(single(o.b)), z = magnitude(single(o.c));
    if (z >= x && z >= y) return 2;
    return y >= x ? 1 : 0;
}
u64 of_axis(const Operands& o) {
    return axis(o) == 2 ? o.c : (axis(o) == 1 ? o.b : o.a);
}
u64 negated(u64 x) {
    return (x ^ 0x80000000) & 0xffffffff;
}

/// A packed operation on both halves.
template <class F> u64 both(const Operands& o, F f) {
    return u16(f(u16(o.a), u16(o.b), u16(o.c))) |
           (u16(f(u16(o.a >> 16), u16(o.b >> 16), u16(o.c >> 16))) << 16);
}
#define HALVES(expression)                                                                      \
    [](const Operands& o) {                                                                     \
        return both(o, [](u64 a, u64 b, [[maybe_unused]] u64 c) -> u64 { return expression; }); \
    }

#define VALUE(expression)                                     \
    [](const Operands& o) -> u64 {                            \
        [[maybe_unused]] const u64 a = o.a, b = o.b, c = o.c; \
        return expression;                                    \
    }

constexpr auto& F16 = kHalf;
constexpr auto& F32 = kSingle;
constexpr auto& F64 = kDouble;

constexpr std::pair<const char*, Reference> kRows[] = {
    // one source
    {"v_mov_b32", {VALUE(a)}},
    {"v_cvt_i32_f64", {VALUE(low(truncated<std::int32_t>(twice(a))))}},
    {"v_cvt_u32_f64", {VALUE(low(truncated<u32>(twice(a))))}},
    {"v_cvt_i32_f32", {VALUE(low(truncated<std::int32_t>(single(a))))}},
    {"v_cvt_u32_f32", {VALUE(low(truncated<u32>(single(a))))}},
    {"v_cvt_f64_i32", {VALUE(to_double(static_cast<Quad>(s32(a))))}},
    {"v_cvt_f64_u32", {VALUE(to_double(static_cast<Quad>(a)))}},
    {"v_cvt_f32_i32", {VALUE(to_single(static_cast<Quad>(s32(a))))}},
    {"v_cvt_f32_u32", {VALUE(to_single(static_cast<Quad>(a)))}},
    {"v_cvt_f16_f32", {VALUE(to_half(single(a)))}},
    {"v_cvt_f32_f16", {VALUE(to_single(half(a)))}},
    {"v_cvt_rpi_i32_f32",
     {VALUE(low(truncated<std::int32_t>(real<floor_l>(single(a) + Quad{1} / 2))))}},
    {"v_cvt_flr_i32_f32", {VALUE(low(truncated<std::int32_t>(real<floor_l>(single(a)))))}},
    {"v_cvt_off_f32_i4", {VALUE(to_single(static_cast<Quad>(s32(a << 28) / (1 << 28)) / 16))}},
    {"v_cvt_f32_f64", {VALUE(to_single(twice(a)))}},
    {"v_cvt_f64_f32", {VALUE(to_double(single(a)))}},
    {"v_cvt_f32_ubyte0", {VALUE(to_single(static_cast<Quad>(byte(a, 0))))}},
    {"v_cvt_f32_ubyte1", {VALUE(to_single(static_cast<Quad>(byte(a, 1))))}},
    {"v_cvt_f32_ubyte2", {VALUE(to_single(static_cast<Quad>(byte(a, 2))))}},
    {"v_cvt_f32_ubyte3", {VALUE(to_single(static_cast<Quad>(byte(a, 3))))}},
    {"v_trunc_f64", {VALUE(to_double(real<trunc_l>(twice(a))))}},
    {"v_ceil_f64", {VALUE(to_double(real<ceil_l>(twice(a))))}},
    {"v_rndne_f64", {VALUE(to_double(real<rint_l>(twice(a))))}},
    {"v_floor_f64", {VALUE(to_double(real<floor_l>(twice(a))))}},
    {"v_trunc_f32", {VALUE(to_single(real<trunc_l>(single(a))))}},
    {"v_ceil_f32", {VALUE(to_single(real<ceil_l>(single(a))))}},
    {"v_rndne_f32", {VALUE(to_single(real<rint_l>(single(a))))}},
    {"v_floor_f32", {VALUE(to_single(real<floor_l>(single(a))))}},
    {"v_trunc_f16", {VALUE(to_half(real<trunc_l>(half(a))))}},
    {"v_ceil_f16", {VALUE(to_half(real<ceil_l>(half(a))))}},
    {"v_rndne_f16", {VALUE(to_half(real<rint_l>(half(a))))}},
    {"v_floor_f16", {VALUE(to_half(real<floor_l>(half(a))))}},
    {"v_fract_f64", {VALUE((fraction<F64, twice>(a)))}},
    {"v_fract_f32", {VALUE((fraction<F32, single>(a & 0xffffffff)))}},
    {"v_fract_f16", {VALUE((fraction<F16, half>(u16(a))))}},
    {"v_exp_f32", {VALUE(single(a) < -126 ? 0 : to_single(real<exp2_l>(single(a)))), nullptr, 1}},
    {"v_exp_legacy_f32",
     {VALUE(single(a) < -126 ? 0 : to_single(real<exp2_l>(single(a)))), nullptr, 1}},
    {"v_log_f32", {VALUE(to_single(real<log2_l>(single(flush(a))))), nullptr, 1}},
    {"v_log_legacy_f32", {VALUE(to_single(real<log2_l>(single(flush(a))))), nullptr, 1}},
    {"v_rcp_f32", {VALUE(flush(to_single(1 / single(flush(a))))), nullptr, 1}},
    {"v_rcp_iflag_f32", {VALUE(flush(to_single(1 / single(flush(a))))), nullptr, 1}},
    {"v_rsq_f32", {VALUE(to_single(real<rsqrt_l>(single(flush(a))))), nullptr, 1}},
    {"v_sqrt_f32", {VALUE(to_single(real<sqrt_l>(single(a)))), nullptr, 1}},
    {"v_rcp_f64", {VALUE(to_double(1 / twice(a))), nullptr, 1}},
    {"v_rsq_f64", {VALUE(to_double(real<rsqrt_l>(twice(a)))), nullptr, 2}},
    {"v_sqrt_f64", {VALUE(to_double(real<sqrt_l>(twice(a)))), nullptr, 1}},
    {"v_sin_f32",
     {VALUE(magnitude(single(a)) > 256 && !is_infinite(single(a))
                ? 0
                : to_single(real<sin_l>(single(a)))),
      nullptr, 2, 1e-12}},
    {"v_cos_f32",
     {VALUE(magnitude(single(a)) > 256 && !is_infinite(single(a))
                ? to_single(1)
                : to_single(real<cos_l>(single(a)))),
      nullptr, 2, 1e-12}},
    {"v_rcp_f16", {VALUE(to_half(1 / half(a))), nullptr, 1}},
    {"v_sqrt_f16", {VALUE(to_half(real<sqrt_l>(half(a)))), nullptr, 1}},
    {"v_rsq_f16", {VALUE(to_half(real<rsqrt_l>(half(a)))), nullptr, 1}},
    {"v_log_f16", {VALUE(to_half(real<log2_l>(half(a)))), nullptr, 1}},
    {"v_exp_f16", {VALUE(to_half(real<exp2_l>(half(a)))), nullptr, 1}},
    {"v_sin_f16", {VALUE(to_half(real<sin_l>(half(a)))), nullptr, 1, 1e-12}},
    {"v_cos_f16", {VALUE(to_half(real<cos_l>(half(a)))), nullptr, 1, 1e-12}},
    {"v_not_b32", {VALUE(~a & 0xffffffff)}},
    {"v_bfrev_b32", {VALUE(reversed(a, 32))}},
    {"v_ffbh_u32", {VALUE(place_of(a, true, 32, true))}},
    {"v_ffbl_b32", {VALUE(place_of(a, true, 32, false))}},
    {"v_ffbh_i32", {VALUE(place_of(a, (a >> 31) == 0, 32, true))}},
    {"v_frexp_exp_i32_f64", {VALUE(low(exponent_of(twice(a))))}},
    {"v_frexp_mant_f64", {VALUE(to_double(mantissa_of(twice(a))))}},
    {"v_frexp_exp_i32_f32", {VALUE(low(exponent_of(single(a))))}},
    {"v_frexp_mant_f32", {VALUE(to_single(mantissa_of(single(a))))}},
    {"v_frexp_exp_i16_f16", {VALUE(low16(exponent_of(half(a))))}},
    {"v_frexp_mant_f16", {VALUE(to_half(mantissa_of(half(a))))}},
    {"v_cvt_f16_u16", {VALUE(to_half(static_cast<Quad>(u16(a))))}},
    {"v_cvt_f16_i16", {VALUE(to_half(static_cast<Quad>(s16(a))))}},
    {"v_cvt_u16_f16", {VALUE(low16(truncated<std::uint16_t>(half(a))))}},
    {"v_cvt_i16_f16", {VALUE(low16(truncated<std::int16_t>(half(a))))}},
    {"v_cvt_norm_i16_f16", {VALUE(snorm(half(a)))}},
    {"v_cvt_norm_u16_f16", {VALUE(unorm(half(a)))}},
    {"v_sat_pk_u8_i16",
     {VALUE(static_cast<u64>(bounded(s16(a), 0, 255) | (bounded(s16(a >> 16), 0, 255) << 8)))}},
    // two sources
    {"v_cndmask_b32", {VALUE(c != 0 ? b : a)}},
    {"v_add_f32", {VALUE(to_single(single(a) + single(b)))}},
    {"v_sub_f32", {VALUE(to_single(single(a) - single(b)))}},
    {"v_subrev_f32", {VALUE(to_single(single(b) - single(a)))}},
    {"v_mul_legacy_f32", {VALUE(to_single(legacy(a, b)))}},
    {"v_mul_f32", {VALUE(to_single(single(a) * single(b)))}},
    {"v_mul_i32_i24", {VALUE(low(s24(a) * s24(b)))}},
    {"v_mul_hi_i32_i24", {VALUE(low((s24(a) * s24(b)) >> 32))}},
    {"v_mul_u32_u24", {VALUE(((a & 0xffffff) * (b & 0xffffff)) & 0xffffffff)}},
    {"v_mul_hi_u32_u24", {VALUE(((a & 0xffffff) * (b & 0xffffff)) >> 32)}},
    {"v_min_f32", {VALUE((min_of<F32, single>(a, b)))}},
    {"v_max_f32", {VALUE((greatest_of<F32, single>(a, b)))}},
    {"v_min_i32", {VALUE(low(std::min(s32(a), s32(b))))}},
    {"v_max_i32", {VALUE(low(std::max(s32(a), s32(b))))}},
    {"v_min_u32", {VALUE(std::min(a, b))}},
    {"v_max_u32", {VALUE(std::max(a, b))}},
    {"v_lshrrev_b32", {VALUE(b >> (a % 32))}},
    {"v_ashrrev_i32", {VALUE(low(s32(b) >> (a % 32)))}},
    {"v_lshlrev_b32", {VALUE((b << (a % 32)) & 0xffffffff)}},
    {"v_and_b32", {VALUE(a & b)}},
    {"v_or_b32", {VALUE(a | b)}},
    {"v_xor_b32", {VALUE(a ^ b)}},
    {"v_mac_f32", {VALUE(mad(a, b, c))}},
    {"v_add_co_u32", {VALUE((a + b) & 0xffffffff), VALUE((a + b) >> 32)}},
    {"v_sub_co_u32", {VALUE((a - b) & 0xffffffff), VALUE(a < b)}},
    {"v_subrev_co_u32", {VALUE((b - a) & 0xffffffff), VALUE(b < a)}},
    {"v_addc_co_u32", {VALUE((a + b + c) & 0xffffffff), VALUE((a + b + c) >> 32)}},
    {"v_subb_co_u32", {VALUE((a - b - c) & 0xffffffff), VALUE(a < b + c)}},
    {"v_subbrev_co_u32", {VALUE((b - a - c) & 0xffffffff), VALUE(b < a + c)}},
    {"v_add_f16", {VALUE(to_half(half(a) + half(b)))}},
    {"v_sub_f16", {VALUE(to_half(half(a) - half(b)))}},
    {"v_subrev_f16", {VALUE(to_half(half(b) - half(a)))}},
    {"v_mul_f16", {VALUE(to_half(half(a) * half(b)))}},
    {"v_mac_f16", {VALUE(mad_half(a, b, c))}},
    {"v_add_u16", {VALUE(u16(a + b))}},
    {"v_sub_u16", {VALUE(u16(a - b))}},
    {"v_subrev_u16", {VALUE(u16(b - a))}},
    {"v_mul_lo_u16", {VALUE(u16(u16(a) * u16(b)))}},
    {"v_lshlrev_b16", {VALUE(u16(u16(b) << (a % 16)))}},
    {"v_lshrrev_b16", {VALUE(u16(b) >> (a % 16))}},
    {"v_ashrrev_i16", {VALUE(low16(s16(b) >> (a % 16)))}},
    {"v_max_f16", {VALUE((greatest_of<F16, half>(a, b)))}},
    {"v_min_f16", {VALUE((min_of<F16, half>(a, b)))}},
    {"v_max_u16", {VALUE(std::max(u16(a), u16(b)))}},
    {"v_max_i16", {VALUE(low16(std::max(s16(a), s16(b))))}},
    {"v_min_u16", {VALUE(std::min(u16(a), u16(b)))}},
    {"v_min_i16", {VALUE(low16(std::min(s16(a), s16(b))))}},
    {"v_ldexp_f16", {VALUE(to_half(scaled(half(a), s16(b))))}},
    {"v_add_u32", {VALUE((a + b) & 0xffffffff)}},
    {"v_sub_u32", {VALUE((a - b) & 0xffffffff)}},
    {"v_subrev_u32", {VALUE((b - a) & 0xffffffff)}},
    // three sources
    {"v_mad_legacy_f32",
     {VALUE(flush(
         to_single(single(flush(to_single(legacy(flush(a), flush(b))))) + single(flush(c)))))}},
    {"v_mad_f32", {VALUE(mad(a, b, c))}},
    {"v_mad_i32_i24", {VALUE(low(s24(a) * s24(b) + s32(c)))}},
    {"v_mad_u32_u24", {VALUE(((a & 0xffffff) * (b & 0xffffff) + c) & 0xffffffff)}},
    {"v_cubeid_f32", {VALUE(to_single(2 * axis(o) + (single(of_axis(o)) < 0 ? 1 : 0)))}},
    {"v_cubesc_f32",
     {VALUE(axis(o) == 2   ? (single(c) < 0 ? negated(a) : a)
            : axis(o) == 1 ? a
                           : (single(a) < 0 ? c : negated(c)))}},
    {"v_cubetc_f32", {VALUE(axis(o) != 1 ? negated(b) : (single(b) < 0 ? negated(c) : c))}},
    {"v_cubema_f32", {VALUE(to_single(2 * single(of_axis(o))))}},
    {"v_bfe_u32", {VALUE((a >> (b % 32)) & ((u64{1} << (c % 32)) - 1))}},
    {"v_bfe_i32",
     {VALUE(c % 32 == 0 ? 0
                        : low(static_cast<std::int32_t>(static_cast<u32>(s32(a) >> (b % 32))
                                                        << (32 - c % 32)) >>
                              (32 - c % 32)))}},
    {"v_bfi_b32", {VALUE((a & b) | (~a & c))}},
    {"v_fma_f32", {VALUE(to_single(sum(single(a) * single(b), single(c))))}},
    {"v_fma_f64", {VALUE(to_double(sum(twice(a) * twice(b), twice(c))))}},
    {"v_lerp_u8",
     {VALUE(((byte(a, 0) + byte(b, 0) + (c & 1)) >> 1) |
            (((byte(a, 1) + byte(b, 1) + ((c >> 8) & 1)) >> 1) << 8) |
            (((byte(a, 2) + byte(b, 2) + ((c >> 16) & 1)) >> 1) << 16) |
            (((byte(a, 3) + byte(b, 3) + ((c >> 24) & 1)) >> 1) << 24))}},
    {"v_alignbit_b32", {VALUE((((a << 32) | b) >> (c % 32)) & 0xffffffff)}},
    {"v_alignbyte_b32", {VALUE((((a << 32) | b) >> (8 * (c % 4))) & 0xffffffff)}},
    {"v_min3_f32", {VALUE((min_of<F32, single>(min_of<F32, single>(a, b), c)))}},
    {"v_min3_i32", {VALUE(low(std::min({s32(a), s32(b), s32(c)})))}},
    {"v_min3_u32", {VALUE(std::min({a, b, c}))}},
    {"v_max3_f32", {VALUE((greatest_of<F32, single>(greatest_of<F32, single>(a, b), c)))}},
    {"v_max3_i32", {VALUE(low(std::max({s32(a), s32(b), s32(c)})))}},
    {"v_max3_u32", {VALUE(std::max({a, b, c}))}},
    {"v_med3_f32", {VALUE((median_of<F32, single>(a, b, c)))}},
    {"v_med3_i32", {VALUE(low(sort_middle(s32(a), s32(b), s32(c))))}},
    {"v_med3_u32",
     {VALUE(low(sort_middle(static_cast<i64>(a), static_cast<i64>(b), static_cast<i64>(c))))}},
    {"v_sad_u8", {VALUE((sad(a, b, false) + c) & 0xffffffff)}},
    {"v_sad_hi_u8", {VALUE(((sad(a, b, false) << 16) + c) & 0xffffffff)}},
    {"v_sad_u16",
     {VALUE((static_cast<u64>(
                 distance(static_cast<i64>(u16(a)), static_cast<i64>(u16(b))) +
                 distance(static_cast<i64>(u16(a >> 16)), static_cast<i64>(u16(b >> 16)))) +
             c) &
            0xffffffff)}},
    {"v_sad_u32",
     {VALUE((static_cast<u64>(distance(static_cast<i64>(a), static_cast<i64>(b))) + c) &
            0xffffffff)}},
    {"v_cvt_pk_u8_f32",
     {VALUE(
         (c & ~(u64{0xff} << (8 * (b % 4))) & 0xffffffff) |
         (static_cast<u64>(truncated<std::uint8_t>(real<rint_l>(single(a)))) << (8 * (b % 4))))}},
    {"v_cvt_pkaccum_u8_f32",
     {VALUE(
         (c & ~(u64{0xff} << (8 * (b % 4))) & 0xffffffff) |
         (static_cast<u64>(truncated<std::uint8_t>(real<rint_l>(single(a)))) << (8 * (b % 4))))}},
    {"v_div_fixup_f32", {VALUE((fixup<F32, single>(a, b, c, -150)))}},
    {"v_div_fixup_f64", {VALUE((fixup<F64, twice>(a, b, c, -1075)))}},
    {"v_div_fixup_f16", {VALUE((fixup<F16, half>(a, b, c, -150)))}},
    {"v_div_fixup_legacy_f16", {VALUE((fixup<F16, half>(a, b, c, -150)))}},
    {"v_msad_u8", {VALUE((sad(a, b, true) + c) & 0xffffffff)}},
    {"v_qsad_pk_u16_u8", {VALUE(quad_sad(o, false))}},
    {"v_mqsad_pk_u16_u8", {VALUE(quad_sad(o, true))}},
    {"v_mad_u64_u32",
     {VALUE(a * b + c),
      VALUE(static_cast<u64>((static_cast<unsigned __int128>(a * b) + c) >> 64))}},
    {"v_mad_i64_i32",
     {VALUE(static_cast<u64>(s32(a) * s32(b)) + c),
      VALUE(static_cast<u64>((Wide{s32(a) * s32(b)} + Wide{static_cast<i64>(c)}) >> 64) & 1)}},
    {"v_mad_legacy_f16", {VALUE(mad_half(a, b, c))}},
    {"v_mad_legacy_u16", {VALUE(u16(u16(a) * u16(b) + u16(c)))}},
    {"v_mad_legacy_i16", {VALUE(low16(s16(a) * s16(b) + s16(c)))}},
    {"v_perm_b32", {VALUE((void(a), permuted(o)))}},
    {"v_fma_legacy_f16", {VALUE(to_half(sum(half(a) * half(b), half(c))))}},
    {"v_mad_u32_u16", {VALUE((u16(a) * u16(b) + c) & 0xffffffff)}},
    {"v_mad_i32_i16", {VALUE(low(s16(a) * s16(b) + s32(c)))}},
    {"v_xad_u32", {VALUE(((a ^ b) + c) & 0xffffffff)}},
    {"v_min3_f16", {VALUE((min_of<F16, half>(min_of<F16, half>(a, b), c)))}},
    {"v_min3_i16", {VALUE(low16(std::min({s16(a), s16(b), s16(c)})))}},
    {"v_min3_u16", {VALUE(std::min({u16(a), u16(b), u16(c)}))}},
    {"v_max3_f16", {VALUE((greatest_of<F16, half>(greatest_of<F16, half>(a, b), c)))}},
    {"v_max3_i16", {VALUE(low16(std::max({s16(a), s16(b), s16(c)})))}},
    {"v_max3_u16", {VALUE(std::max({u16(a), u16(b), u16(c)}))}},
    {"v_med3_f16", {VALUE((median_of<F16, half>(a, b, c)))}},
    {"v_med3_i16", {VALUE(low16(sort_middle(s16(a), s16(b), s16(c))))}},
    {"v_med3_u16",
     {VALUE(low16(sort_middle(static_cast<i64>(u16(a)), static_cast<i64>(u16(b)),
                              static_cast<i64>(u16(c)))))}},
    {"v_lshl_add_u32", {VALUE(((a << (b % 32)) + c) & 0xffffffff)}},
    {"v_add_lshl_u32", {VALUE((((a + b) & 0xffffffff) << (c % 32)) & 0xffffffff)}},
    {"v_add3_u32", {VALUE((a + b + c) & 0xffffffff)}},
    {"v_lshl_or_b32", {VALUE(((a << (b % 32)) | c) & 0xffffffff)}},
    {"v_and_or_b32", {VALUE((a & b) | c)}},
    {"v_or3_b32", {VALUE(a | b | c)}},
    {"v_mad_f16", {VALUE(mad_half(a, b, c))}},
    {"v_mad_u16", {VALUE(u16(u16(a) * u16(b) + u16(c)))}},
    {"v_mad_i16", {VALUE(low16(s16(a) * s16(b) + s16(c)))}},
    {"v_fma_f16", {VALUE(to_half(sum(half(a) * half(b), half(c))))}},
    {"v_add_f64", {VALUE(to_double(twice(a) + twice(b)))}},
    {"v_mul_f64", {VALUE(to_double(twice(a) * twice(b)))}},
    {"v_min_f64", {VALUE((min_of<F64, twice>(a, b)))}},
    {"v_max_f64", {VALUE((greatest_of<F64, twice>(a, b)))}},
    {"v_ldexp_f64", {VALUE(to_double(scaled(twice(a), s32(b))))}},
    {"v_mul_lo_u32", {VALUE((a * b) & 0xffffffff)}},
    {"v_mul_hi_u32", {VALUE((a * b) >> 32)}},
    {"v_mul_hi_i32", {VALUE(low((s32(a) * s32(b)) >> 32))}},
    {"v_ldexp_f32", {VALUE(to_single(scaled(single(a), s32(b))))}},
    {"v_bcnt_u32_b32", {VALUE((ones(a, 32) + b) & 0xffffffff)}},
    {"v_mbcnt_lo_u32_b32", {VALUE((ones(a & below(o.lane), 32) + b) & 0xffffffff)}},
    {"v_mbcnt_hi_u32_b32", {VALUE((ones(a & (below(o.lane) >> 32), 32) + b) & 0xffffffff)}},
    {"v_lshlrev_b64", {VALUE(b << (a % 64))}},
    {"v_lshrrev_b64", {VALUE(b >> (a % 64))}},
    {"v_ashrrev_i64", {VALUE(static_cast<u64>(static_cast<i64>(b) >> (a % 64)))}},
    {"v_bfm_b32", {VALUE((((u64{1} << (a % 32)) - 1) << (b % 32)) & 0xffffffff)}},
    {"v_cvt_pknorm_i16_f32", {VALUE(pack2(snorm(single(a)), snorm(single(b))))}},
    {"v_cvt_pknorm_u16_f32", {VALUE(pack2(unorm(single(a)), unorm(single(b))))}},
    {"v_cvt_pkrtz_f16_f32",
     {VALUE(
         pack2(pack(single(a), kHalf, Rounding::Zero), pack(single(b), kHalf, Rounding::Zero)))}},
    {"v_cvt_pk_u16_u32", {VALUE(pack2(std::min<u64>(a, 65535), std::min<u64>(b, 65535)))}},
    {"v_cvt_pk_i16_i32",
     {VALUE(pack2(low16(bounded(s32(a), -32768, 32767)), low16(bounded(s32(b), -32768, 32767))))}},
    {"v_cvt_pknorm_i16_f16", {VALUE(pack2(snorm(half(a)), snorm(half(b))))}},
    {"v_cvt_pknorm_u16_f16", {VALUE(pack2(unorm(half(a)), unorm(half(b))))}},
    {"v_add_i32", {VALUE((a + b) & 0xffffffff)}},
    {"v_sub_i32", {VALUE((a - b) & 0xffffffff)}},
    {"v_add_i16", {VALUE(u16(a + b))}},
    {"v_sub_i16", {VALUE(u16(a - b))}},
    {"v_pack_b32_f16", {VALUE(pack2(a, b))}},
    // packed
    {"v_pk_mad_i16", {HALVES(a * b + c)}},
    {"v_pk_mul_lo_u16", {HALVES(a * b)}},
    {"v_pk_add_i16", {HALVES(a + b)}},
    {"v_pk_sub_i16", {HALVES(a - b)}},
    {"v_pk_lshlrev_b16", {HALVES(b << (a % 16))}},
    {"v_pk_lshrrev_b16", {HALVES(b >> (a % 16))}},
    {"v_pk_ashrrev_i16", {HALVES(low16(s16(b) >> (a % 16)))}},
    {"v_pk_max_i16", {HALVES(low16(std::max(s16(a), s16(b))))}},
    {"v_pk_min_i16", {HALVES(low16(std::min(s16(a), s16(b))))}},
    {"v_pk_mad_u16", {HALVES(a * b + c)}},
    {"v_pk_add_u16", {HALVES(a + b)}},
    {"v_pk_sub_u16", {HALVES(a - b)}},
    {"v_pk_max_u16", {HALVES(std::max(a, b))}},
    {"v_pk_min_u16", {HALVES(std::min(a, b))}},
    {"v_pk_fma_f16", {HALVES(to_half(sum(half(a) * half(b), half(c))))}},
    {"v_pk_add_f16", {HALVES(to_half(half(a) + half(b)))}},
    {"v_pk_mul_f16", {HALVES(to_half(half(a) * half(b)))}},
    {"v_pk_min_f16", {HALVES((min_of<F16, half>(a, b)))}},
    {"v_pk_max_f16", {HALVES((greatest_of<F16, half>(a, b)))}},
    {"v_mad_mix_f32", {VALUE(mad(a, b, c))}},
    {"v_mad_mixlo_f16", {VALUE(to_half(single(mad(a, b, c))))}},
    {"v_mad_mixhi_f16", {VALUE(to_half(single(mad(a, b, c))) << 16)}},
};

}  // namespace

const std::map<std::string, Reference>& vector_references() {
    static const std::map<std::string, Reference> kTable(std::begin(kRows), std::end(kRows));
    return kTable;
}

bool compare_reference(const std::string& name, const Operands& o) {
    const bool writes_exec = name.starts_with("v_cmpx_");
    const std::string rest = name.substr(writes_exec ? 7 : 6);
    const std::string how = rest.substr(0, rest.rfind('_'));
    const std::string type = rest.substr(rest.rfind('_') + 1);
    const FloatFormat format = type == "f16" ? kHalf : (type == "f32" ? kSingle : kDouble);
    const u64 mask = type.ends_with("16") ? 0xffff : (type.ends_with("32") ? 0xffffffff : ~u64{0});
    const u64 a = o.a & mask, b = o.b & mask;
    if (how == "class") return ((o.b >> class_of(a, format)) & 1) != 0;
    int order = 0;  // -1 less, 0 equal, 1 greater, 2 unordered
    if (type[0] == 'f') {
        const Quad x = unpack(a, format), y = unpack(b, format);
        order = is_nan(x) || is_nan(y) ? 2 : (x < y ? -1 : (x > y ? 1 : 0));
    } else if (type[0] == 'i') {
        const unsigned shift = type == "i16" ? 48 : (type == "i32" ? 32 : 0);
        const i64 x = static_cast<i64>(a << shift), y = static_cast<i64>(b << shift);
        order = x < y ? -1 : (x > y ? 1 : 0);
    } else {
        order = a < b ? -1 : (a > b ? 1 : 0);
    }
    static const std::map<std::string, std::array<bool, 4>> kHolds{
        //         less   equal  greater unordered
        {"f", {false, false, false, false}}, {"lt", {true, false, false, false}},
        {"eq", {false, true, false, false}}, {"le", {true, true, false, false}},
        {"gt", {false, false, true, false}}, {"lg", {true, false, true, false}},
        {"ge", {false, true, true, false}},  {"o", {true, true, true, false}},
        {"u", {false, false, false, true}},  {"nge", {true, false, false, true}},
        {"nlg", {false, true, false, true}}, {"ngt", {true, true, false, true}},
        {"nle", {false, false, true, true}}, {"neq", {true, false, true, true}},
        {"nlt", {false, true, true, true}},  {"tru", {true, true, true, true}},
        {"ne", {true, false, true, true}},   {"t", {true, true, true, true}},
    };
    return kHolds.at(how)[static_cast<std::size_t>(order + 1)];
}

}  // namespace vgpu::test
