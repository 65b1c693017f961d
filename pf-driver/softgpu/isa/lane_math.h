// SPDX-License-Identifier: MIT
//
// The integer functions that the value expressions of ops/*.def call, for scalars or for one lane.
// Functions for one lane are written so that a loop over lanes vectorises. Each execute unit
// (unit_*.cpp) includes this file into the namespace of its build (VGPU_ISA_VARIANT). So the linker
// cannot replace a function of one build by that of a build for another processor.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "pf-driver/softgpu/isa/env.h"

namespace vgpu::softgpu::isa::VGPU_ISA_VARIANT {

/// Types of ops/*.def for which C++ has no name: no operand, one bit per lane, a half (16-bit
/// float).
struct none {};
struct mask {};
struct f16 {
    u16 bits;
};

inline Outcome do_nothing(Env&, const Instruction&) {
    return Outcome::Next;
}

// ---- integers

/// field_*(): the field of `value` that has `count` bits and begins at bit `first`.
VGPU_INLINE u32 field_u32(u32 value, u32 first, u32 count) {
    return static_cast<u32>((u64{value} >> first) & ((u64{1} << (count > 32 ? 32 : count)) - 1));
}
/// Sign-extends the field. The bits of the field above bit 31 are copies of bit 31.
VGPU_INLINE i32 field_i32(u32 value, u32 first, u32 count) {
    if (count == 0) return 0;
    const u32 shift = count >= 32 ? 0 : 32 - count;
    const u32 moved = static_cast<u32>(static_cast<i32>(value) >> first);
    return static_cast<i32>(moved << shift) >> shift;
}
VGPU_INLINE u64 field_u64(u64 value, u32 first, u32 count) {
    return (value >> first) & (count >= 64 ? ~u64{0} : (u64{1} << count) - 1);
}
VGPU_INLINE i64 field_i64(u64 value, u32 first, u32 count) {
    if (count == 0) return 0;
    const u32 shift = count >= 64 ? 0 : 64 - count;
    const u64 moved = static_cast<u64>(static_cast<i64>(value) >> first);
    return static_cast<i64>(moved << shift) >> shift;
}
/// The result is unsigned, because the distance between two 32-bit numbers may need all 32 bits.
VGPU_INLINE u32 absdiff(i32 a, i32 b) {
    return a > b ? static_cast<u32>(a) - static_cast<u32>(b)
                 : static_cast<u32>(b) - static_cast<u32>(a);
}
VGPU_INLINE u32 mul_hi(u32 a, u32 b) {
    return static_cast<u32>((u64{a} * b) >> 32);
}
VGPU_INLINE i32 mul_hi(i32 a, i32 b) {
    return static_cast<i32>((i64{a} * b) >> 32);
}
VGPU_INLINE u32 popcount(u32 a) {
    return static_cast<u32>(std::popcount(a));
}
VGPU_INLINE u32 popcount(u64 a) {
    return static_cast<u32>(std::popcount(a));
}
/// Number of the lowest bit that is set; ~0 if no bit is set.
template <class T> VGPU_INLINE u32 first_one(T a) {
    return a == 0 ? ~0u : static_cast<u32>(std::countr_zero(a));
}
/// Number of zeros above the highest bit that is set; ~0 if no bit is set.
template <class T> VGPU_INLINE u32 leading_zeros(T a) {
    return a == 0 ? ~0u : static_cast<u32>(std::countl_zero(a));
}
/// Number of bits, beginning with the sign bit, that equal the sign bit; ~0 if all bits do.
template <class T> VGPU_INLINE u32 leading_signs(T a) {
    const T folded = (a >> (sizeof(T) * 8 - 1)) != 0 ? static_cast<T>(~a) : a;
    return leading_zeros(folded);
}
VGPU_INLINE u32 reverse_bits(u32 a) {
    a = ((a >> 1) & 0x55555555) | ((a & 0x55555555) << 1);
    a = ((a >> 2) & 0x33333333) | ((a & 0x33333333) << 2);
    a = ((a >> 4) & 0x0f0f0f0f) | ((a & 0x0f0f0f0f) << 4);
    a = ((a >> 8) & 0x00ff00ff) | ((a & 0x00ff00ff) << 8);
    return (a >> 16) | (a << 16);
}
VGPU_INLINE u64 reverse_bits(u64 a) {
    return (u64{reverse_bits(static_cast<u32>(a))} << 32) | reverse_bits(static_cast<u32>(a >> 32));
}
/// Sets all four bits of a quad that has any bit set (S_WQM).
template <class T> VGPU_INLINE T whole_quads(T a) {
    const T any =
        static_cast<T>((a | (a >> 1) | (a >> 2) | (a >> 3)) & static_cast<T>(0x1111111111111111));
    return static_cast<T>(any * 15);
}
/// One bit per quad: set if any of its four bits is set (S_QUADMASK).
template <class T> VGPU_INLINE T quad_mask(T a) {
    T out = 0;
    for (unsigned quad = 0; quad < sizeof(T) * 2; ++quad)
        out = static_cast<T>(out | (T{((a >> (4 * quad)) & 15) != 0} << quad));
    return out;
}
/// Bits 2 * n and 2 * n + 1 of the result are bit n of `a` (S_BITREPLICATE).
VGPU_INLINE u64 replicate_bits(u32 a) {
    u64 out = 0;
    for (unsigned i = 0; i < 32; ++i) out |= (u64{(a >> i) & 1} * 3) << (2 * i);
    return out;
}
/// The operands are the low 24 bits, sign-extended; the product has 48 bits.
VGPU_INLINE i64 mul_i24(u32 a, u32 b) {
    return i64{static_cast<i32>(a << 8) >> 8} * i64{static_cast<i32>(b << 8) >> 8};
}
VGPU_INLINE u64 mul_u24(u32 a, u32 b) {
    return u64{a & 0xffffff} * u64{b & 0xffffff};
}
template <class T> VGPU_INLINE T min3(T a, T b, T c) {
    const T low = a < b ? a : b;
    return low < c ? low : c;
}
template <class T> VGPU_INLINE T max3(T a, T b, T c) {
    const T high = a > b ? a : b;
    return high > c ? high : c;
}
template <class T> VGPU_INLINE T med3(T a, T b, T c) {
    const T low = a < b ? a : b;
    const T high = a < b ? b : a;
    return c < low ? low : (c > high ? high : c);
}
/// The value of T that is nearest to `value`: the effect of CLAMP on an integer result.
template <class T, class Wide> VGPU_INLINE T saturate(Wide value) {
    constexpr auto low = std::numeric_limits<T>::min();
    constexpr auto high = std::numeric_limits<T>::max();
    if (std::cmp_less(value, low)) return low;
    return std::cmp_greater(value, high) ? high : static_cast<T>(value);
}
/// V_MBCNT_LO: a mask of those of the lanes 0 to 31 that are below `lane`.
VGPU_INLINE u32 lanes_below_lo(u32 lane) {
    return lane >= 32 ? ~0u : (1u << lane) - 1;
}
/// V_MBCNT_HI: a mask of those of the lanes 32 to 63 that are below `lane`.
VGPU_INLINE u32 lanes_below_hi(u32 lane) {
    return lane <= 32 ? 0 : (1u << (lane - 32)) - 1;
}

VGPU_INLINE u32 byte_of(u32 a, u32 i) {
    return (a >> (8 * i)) & 0xff;
}
VGPU_INLINE u32 byte_difference(u32 a, u32 b, u32 i) {
    const u32 x = byte_of(a, i);
    const u32 y = byte_of(b, i);
    return x > y ? x - y : y - x;
}
/// Sum of the absolute differences of four bytes.
VGPU_INLINE u32 sad_u8(u32 a, u32 b) {
    return byte_difference(a, b, 0) + byte_difference(a, b, 1) + byte_difference(a, b, 2) +
           byte_difference(a, b, 3);
}
/// Like sad_u8(), but a position where the byte of `b` (the reference) is 0 does not count.
VGPU_INLINE u32 msad_u8(u32 a, u32 b) {
    u32 sum = 0;
    for (u32 i = 0; i < 4; ++i) sum += byte_of(b, i) == 0 ? 0 : byte_difference(a, b, i);
    return sum;
}
VGPU_INLINE u32 sad_u16(u32 a, u32 b) {
    const u32 a0 = a & 0xffff, b0 = b & 0xffff, a1 = a >> 16, b1 = b >> 16;
    return (a0 > b0 ? a0 - b0 : b0 - a0) + (a1 > b1 ? a1 - b1 : b1 - a1);
}
/// Four sums of absolute differences. Sum i compares `b` with the four bytes of `a` from byte i on,
/// and adds 16-bit word i of `c`. Each sum saturates at 0xffff.
template <u32 (*Sad)(u32, u32)> VGPU_INLINE u64 sums_pk(u64 a, u32 b, u64 c) {
    u64 out = 0;
    for (u32 i = 0; i < 4; ++i) {
        const u64 sum = Sad(static_cast<u32>(a >> (8 * i)), b) + ((c >> (16 * i)) & 0xffff);
        out |= (sum > 0xffff ? 0xffff : sum) << (16 * i);
    }
    return out;
}
/// The average of each byte of `a` and `b`, rounded up if bit 0 of the same byte of `c` is set,
/// else down.
VGPU_INLINE u32 lerp_u8(u32 a, u32 b, u32 c) {
    u32 out = 0;
    for (u32 i = 0; i < 4; ++i)
        out |= ((byte_of(a, i) + byte_of(b, i) + (byte_of(c, i) & 1)) >> 1) << (8 * i);
    return out;
}
VGPU_INLINE u32 insert_byte(u32 into, u32 index, u32 byte) {
    return (into & ~(0xffu << (8 * index))) | ((byte & 0xff) << (8 * index));
}
/// Selectors 0 to 7 select a byte. Selectors 8 to 11 give eight copies of the sign of byte 1, 3, 5
/// or 7; 12 gives 0, and 13 or more gives 0xff (Vega ISA manual, V_PERM_B32).
VGPU_INLINE u32 permuted_byte(u64 bytes, u32 selector) {
    if (selector < 8) return static_cast<u32>(bytes >> (8 * selector)) & 0xff;
    if (selector >= 13) return 0xff;
    if (selector == 12) return 0;
    return ((bytes >> (16 * (selector - 8) + 15)) & 1) != 0 ? 0xff : 0;
}
VGPU_INLINE u32 permute_bytes(u64 bytes, u32 selectors) {
    u32 out = 0;
    for (u32 i = 0; i < 4; ++i) out |= permuted_byte(bytes, byte_of(selectors, i)) << (8 * i);
    return out;
}
VGPU_INLINE u32 pack_saturated_u8(u32 a) {
    const u32 low = saturate<u8>(static_cast<i32>(static_cast<i16>(a)));
    const u32 high = saturate<u8>(static_cast<i32>(static_cast<i16>(a >> 16)));
    return low | (high << 8);
}
VGPU_INLINE u32 pack16(u16 a, u16 b) {
    return u32{a} | (u32{b} << 16);
}
VGPU_INLINE u32 pack16(i16 a, i16 b) {
    return pack16(static_cast<u16>(a), static_cast<u16>(b));
}
VGPU_INLINE u32 pack16(f16 a, f16 b) {
    return pack16(a.bits, b.bits);
}
/// Bit 64 of `a` * `b` + `c`, where the product and `c` are sign-extended.
VGPU_INLINE bool mad_i64_carry(i32 a, i32 b, u64 c) {
    const i64 product = i64{a} * b;
    const u64 sum = static_cast<u64>(product) + c;
    const bool carry = sum < c;
    const bool product_sign = product < 0;
    const bool c_sign = static_cast<i64>(c) < 0;
    return (product_sign != c_sign) != carry;
}
VGPU_INLINE u64 mad_i64_saturated(i32 a, i32 b, u64 c) {
    const i64 product = i64{a} * b;
    i64 sum = 0;
    if (!__builtin_add_overflow(product, static_cast<i64>(c), &sum)) return static_cast<u64>(sum);
    return static_cast<u64>(product < 0 ? std::numeric_limits<i64>::min()
                                        : std::numeric_limits<i64>::max());
}
/// DS_CONDXCHG32_RTN_B64: if the top bit of a 32-bit half of `a` is set, that half of `a`, without
/// the top bit, replaces the same half of `d`.
VGPU_INLINE u64 conditional_exchange(u64 d, u64 a) {
    const u32 low = static_cast<u32>(a), high = static_cast<u32>(a >> 32);
    const u32 new_low = (low >> 31) != 0 ? low & 0x7fffffff : static_cast<u32>(d);
    const u32 new_high = (high >> 31) != 0 ? high & 0x7fffffff : static_cast<u32>(d >> 32);
    return u64{new_low} | (u64{new_high} << 32);
}

}  // namespace vgpu::softgpu::isa::VGPU_ISA_VARIANT
