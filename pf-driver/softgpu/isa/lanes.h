// SPDX-License-Identifier: MIT
//
// Handlers of operations on 64 lanes. They fetch the operands as rows of 64 words, compute lane by
// lane in a loop that the compiler vectorises, and write the result to the active lanes, whose bit
// in EXEC is set. If all lanes are active and the whole result is written unmodified, the loop
// writes directly to the destination register. Otherwise the handler computes into a separate row,
// and blends this row into the destination (masked stores would be several times slower).
//
// Most execute units (unit_*.cpp) include this file, each into the namespace of its build
// (lane_math.h).
#pragma once

#include <utility>

#if defined(__AVX2__)
#include <immintrin.h>
#else
#include <emmintrin.h>
#endif

#include "pf-driver/softgpu/isa/float_math.h"

// VGPU_LANES precedes a loop over lanes. It promises the compiler that the iterations do not depend
// on each other.
#if defined(__clang__)
#define VGPU_LANES _Pragma("clang loop vectorize(assume_safety) interleave(disable)")
#else
#define VGPU_LANES _Pragma("GCC ivdep")
#endif

namespace vgpu::softgpu::isa::VGPU_ISA_VARIANT {

/// One word of each lane, on the stack.
struct alignas(64) Row {
    u32 lane[kLanes];
};

/// An operand: low words, and high words if the operand has 64 bits. The pointers point into the
/// vector register file or to rows on the stack; this struct owns neither.
struct Rows {
    const u32* low = nullptr;
    const u32* high = nullptr;
};

/// True if T occupies two registers per lane: low words in the first, high words in the second.
template <class T> inline constexpr bool kIsWide = sizeof(T) == 8;
template <class T>
inline constexpr bool kIsFloat =
    std::is_same_v<T, f16> || std::is_same_v<T, f32> || std::is_same_v<T, f64>;

inline void fill(Row& row, u32 value) {
    for (unsigned l = 0; l < kLanes; ++l) row.lane[l] = value;
}

/// Writes all ones to the lanes whose bit is set in `bits`, and 0 to all other lanes.
inline void expand(u64 bits, u32* out) {
#if defined(__AVX2__)
    const __m256i lane_bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    for (unsigned k = 0; k < 8; ++k) {
        const __m256i byte = _mm256_set1_epi32(static_cast<int>((bits >> (8 * k)) & 0xff));
        const __m256i lanes = _mm256_cmpeq_epi32(_mm256_and_si256(byte, lane_bits), lane_bits);
        _mm256_storeu_si256(static_cast<__m256i*>(static_cast<void*>(out + 8 * k)), lanes);
    }
#else
    const __m128i lane_bits = _mm_setr_epi32(1, 2, 4, 8);
    for (unsigned k = 0; k < 16; ++k) {
        const __m128i nibble = _mm_set1_epi32(static_cast<int>((bits >> (4 * k)) & 0xf));
        const __m128i lanes = _mm_cmpeq_epi32(_mm_and_si128(nibble, lane_bits), lane_bits);
        _mm_storeu_si128(static_cast<__m128i*>(static_cast<void*>(out + 4 * k)), lanes);
    }
#endif
}

/// A mask whose bit n is the top bit of word n.
VGPU_INLINE u64 pack(const u32* row) {
    u64 out = 0;
#if defined(__AVX2__)
    for (unsigned k = 0; k < 8; ++k) {
        const __m256i part =
            _mm256_loadu_si256(static_cast<const __m256i*>(static_cast<const void*>(row + 8 * k)));
        const int bits = _mm256_movemask_ps(_mm256_castsi256_ps(part));
        out |= static_cast<u64>(static_cast<u32>(bits)) << (8 * k);
    }
#else
    for (unsigned k = 0; k < 16; ++k) {
        const __m128i part =
            _mm_loadu_si128(static_cast<const __m128i*>(static_cast<const void*>(row + 4 * k)));
        const int bits = _mm_movemask_ps(_mm_castsi128_ps(part));
        out |= static_cast<u64>(static_cast<u32>(bits)) << (4 * k);
    }
#endif
    return out;
}

/// Copies the lanes in which `where` is all ones; in all other lanes `where` must be 0. Has no
/// branches, so that the loop vectorises.
VGPU_INLINE void blend(u32* to, const u32* from, const u32* where) {
    VGPU_LANES
    for (unsigned l = 0; l < kLanes; ++l) to[l] = (from[l] & where[l]) | (to[l] & ~where[l]);
}

/// Copies the lanes whose bit in `lanes` is set; `lanes` is usually EXEC.
VGPU_INLINE void blend_lanes(u32* to, const u32* from, u64 lanes) {
#if defined(__AVX2__)
    const __m256i lane_bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    for (unsigned first = 0; first < kLanes; first += 8) {
        const __m256i byte = _mm256_set1_epi32(static_cast<int>((lanes >> first) & 0xff));
        const __m256i where = _mm256_cmpeq_epi32(_mm256_and_si256(byte, lane_bits), lane_bits);
        auto* const old = static_cast<__m256i*>(static_cast<void*>(to + first));
        const auto* const value =
            static_cast<const __m256i*>(static_cast<const void*>(from + first));
        _mm256_storeu_si256(
            old, _mm256_blendv_epi8(_mm256_loadu_si256(old), _mm256_loadu_si256(value), where));
    }
#else
    Row where;
    expand(lanes, where.lane);
    blend(to, from, where.lane);
#endif
}

/// Applies ABS, then NEG, of a float operand. `sign` is the sign bit in each word of `row`.
inline void modify(u32* row, const Operand& operand, u32 sign) {
    const u32 keep = operand.absolute ? ~sign : ~0u;
    const u32 flip = operand.negate ? sign : 0;
    for (unsigned l = 0; l < kLanes; ++l) row[l] = (row[l] & keep) ^ flip;
}

/// The sign bit in the word that holds the sign of a float T; 0 if T is not a float.
template <class T> constexpr u32 sign_bit() {
    if constexpr (std::is_same_v<T, f16>) return 0x8000;
    return kIsFloat<T> ? 0x80000000u : 0u;
}

[[gnu::noinline]] inline void fetch_slow(const Env& env, const Operand& operand, u32 sign,
                                         Row& low) {
    if (operand.kind == OperandKind::Vgpr)
        std::memcpy(low.lane, env.v[operand.value].lane.data(), sizeof low.lane);
    else
        fill(low, env.scalar32(operand));
    if (sign != 0) modify(low.lane, operand, sign);
}

[[gnu::noinline]] inline void fetch_slow_wide(const Env& env, const Operand& operand, u32 sign,
                                              Row& low, Row& high) {
    if (operand.kind == OperandKind::Vgpr) {
        std::memcpy(low.lane, env.v[operand.value].lane.data(), sizeof low.lane);
        std::memcpy(high.lane, env.v[operand.value + 1].lane.data(), sizeof high.lane);
    } else {
        const u64 value = env.scalar64(operand);
        fill(low, static_cast<u32>(value));
        fill(high, static_cast<u32>(value >> 32));
    }
    if (sign != 0) modify(high.lane, operand, sign);
}

/// The operand as rows. An unmodified VGPR stays in the vector register file; any other operand is
/// copied to `low` and `high`. A mask becomes all ones in each lane whose bit is set, else 0.
template <class T>
VGPU_INLINE Rows fetch(const Env& env, const Operand& operand, Row& low, Row& high) {
    if constexpr (std::is_same_v<T, none>) return {};
    if constexpr (std::is_same_v<T, mask>) {
        expand(env.scalar64(operand), low.lane);
        return {low.lane, nullptr};
    }
    const bool is_plain =
        operand.kind == OperandKind::Vgpr && !(kIsFloat<T> && (operand.negate || operand.absolute));
    if constexpr (kIsWide<T>) {
        if (is_plain) [[likely]]
            return {env.v[operand.value].lane.data(), env.v[operand.value + 1].lane.data()};
        fetch_slow_wide(env, operand, sign_bit<T>(), low, high);
        return {low.lane, high.lane};
    } else {
        if (is_plain) [[likely]]
            return {env.v[operand.value].lane.data(), nullptr};
        fetch_slow(env, operand, sign_bit<T>(), low);
        return {low.lane, nullptr};
    }
}

/// The operand's value in lane `l`.
template <class T> VGPU_INLINE auto lane_of(const Rows& rows, unsigned l) {
    if constexpr (std::is_same_v<T, none>)
        return none{};
    else if constexpr (std::is_same_v<T, mask>)
        return rows.low[l] != 0;
    else if constexpr (std::is_same_v<T, f16>)
        return f16{static_cast<u16>(rows.low[l])};
    else if constexpr (kIsWide<T>)
        return std::bit_cast<T>(u64{rows.low[l]} | (u64{rows.high[l]} << 32));
    else if constexpr (sizeof(T) == 4)
        return std::bit_cast<T>(rows.low[l]);
    else
        return static_cast<T>(rows.low[l]);
}

/// Writes one lane. A 16-bit result is zero-extended. If the instruction has keep_high, commit()
/// later adds the old high half.
template <class T> VGPU_INLINE void put_lane(u32* low, u32* high, unsigned l, T value) {
    if constexpr (kIsWide<T>) {
        const u64 bits = std::bit_cast<u64>(value);
        low[l] = static_cast<u32>(bits);
        high[l] = static_cast<u32>(bits >> 32);
    } else if constexpr (std::is_same_v<T, f16>) {
        low[l] = value.bits;
    } else if constexpr (sizeof(T) == 2) {
        low[l] = static_cast<u16>(value);
    } else {
        low[l] = std::bit_cast<u32>(value);
    }
}

/// Converts the value of an expression of ops/*.def to the result type. Integers are truncated.
template <class T, class V> VGPU_INLINE T result_of(V value) {
    if constexpr (std::is_same_v<T, V>)
        return value;
    else
        return static_cast<T>(value);
}

/// Applies OMOD and CLAMP to one float. OMOD adds T{0}, which turns -0 into +0. CLAMP turns a NaN
/// into 0 if `dx10` (MODE.DX10_CLAMP) is set.
template <class T> VGPU_INLINE T output_modified(T value, u32 omod, bool clamp, bool dx10) {
    constexpr std::array<f32, 4> kFactors{1.0f, 2.0f, 4.0f, 0.5f};
    if (omod != 0) value = value * static_cast<T>(kFactors[omod]) + T{0};
    if (!clamp) return value;
    if (value != value) return dx10 ? T{0} : value;
    return value < T{0} ? T{0} : (value > T{1} ? T{1} : value);
}

/// The OMOD to apply to a result of type T: 0 if MODE allows denormal results of this type or sets
/// IEEE (Vega ISA manual, "Output Modifiers").
template <class T> u32 effective_omod(const Env& env, const Instruction& i) {
    constexpr u32 shift =
        std::is_same_v<T, f32> ? mode::kDenormSingleShift : mode::kDenormDoubleShift;
    const bool allows_denormals = ((env.wave.mode >> (shift + 1)) & 1) != 0;
    return allows_denormals || env.ieee() ? 0 : i.omod;
}

template <class T>
[[gnu::noinline]] void modify_output(const Env& env, const Instruction& i, u32* low, u32* high) {
    const bool dx10 = (env.wave.mode & mode::kDx10Clamp) != 0;
    const u32 omod = effective_omod<T>(env, i);
    const Rows rows{low, high};
    for (unsigned l = 0; l < kLanes; ++l) {
        if constexpr (std::is_same_v<T, f16>) {
            const f32 wide = to_f32(lane_of<f16>(rows, l));
            put_lane(low, high, l, to_f16(output_modified(wide, omod, i.clamp, dx10)));
        } else {
            put_lane(low, high, l, output_modified(lane_of<T>(rows, l), omod, i.clamp, dx10));
        }
    }
}

/// The rows in which a result is computed: the destination itself if all lanes are active and the
/// whole result is written unmodified, else spare rows, which commit() writes to the destination.
/// The destination may also be a source, because each lane is read before it is written. Inactive
/// lanes keep their contents.
template <class D> struct Result {
    Row spare_low;
    Row spare_high;
    u32* low;
    u32* high = nullptr;
    bool in_place;

    VGPU_INLINE explicit Result(Env& env, const Instruction& i) {
        in_place = env.exec() == ~u64{0} && !i.keep_high && !i.clamp && i.omod == 0;
        low = in_place ? env.v[i.dst].lane.data() : spare_low.lane;
        if constexpr (kIsWide<D>) high = in_place ? env.v[i.dst + 1].lane.data() : spare_high.lane;
    }
    VGPU_INLINE void commit(Env& env, const Instruction& i) {
        if (!in_place) commit_slow(env, i);
    }
    [[gnu::noinline]] void commit_slow(Env& env, const Instruction& i) {
        if constexpr (kIsFloat<D>)
            if (i.clamp || i.omod != 0) modify_output<D>(env, i, low, high);
        u32* to = env.v[i.dst].lane.data();
        if (i.keep_high)
            for (unsigned l = 0; l < kLanes; ++l) low[l] = (low[l] & 0xffff) | (to[l] & 0xffff0000);
        blend_lanes(to, low, env.exec());
        if constexpr (kIsWide<D>) blend_lanes(env.v[i.dst + 1].lane.data(), high, env.exec());
    }
};

/// Executes an operation with up to three sources. M, the struct of the operation's row in
/// ops/*.def, has the types and value(), which computes one lane. The loop computes all 64 lanes,
/// so that it vectorises; commit() writes only the active lanes.
template <class M> Outcome vector_op(Env& env, const Instruction& i) {
    using D = typename M::D;
    Row t[6];
    const Rows a = fetch<typename M::A>(env, i.src[0], t[0], t[1]);
    const Rows b = fetch<typename M::B>(env, i.src[1], t[2], t[3]);
    const Rows c = fetch<typename M::C>(env, i.src[2], t[4], t[5]);
    const bool ieee = env.ieee();
    Result<D> r(env, i);
    u32* const low = r.low;
    u32* const high = r.high;
    if constexpr (M::kSaturates)
        if (i.clamp) {
            for (unsigned l = 0; l < kLanes; ++l)
                put_lane<D>(
                    low, high, l,
                    saturate<D>(M::value(lane_of<typename M::A>(a, l), lane_of<typename M::B>(b, l),
                                         lane_of<typename M::C>(c, l), l, ieee)));
            r.commit(env, i);
            return Outcome::Next;
        }
    VGPU_LANES
    for (unsigned l = 0; l < kLanes; ++l)
        put_lane<D>(
            low, high, l,
            result_of<D>(M::value(lane_of<typename M::A>(a, l), lane_of<typename M::B>(b, l),
                                  lane_of<typename M::C>(c, l), l, ieee)));
    r.commit(env, i);
    return Outcome::Next;
}

/// Like vector_op(), but also writes a mask of carries. With CLAMP the result is M::clamped().
template <class M> Outcome carry_op(Env& env, const Instruction& i) {
    using D = typename M::D;
    Row t[6];
    Row carries;
    const bool clamp = i.clamp;
    const Rows a = fetch<typename M::A>(env, i.src[0], t[0], t[1]);
    const Rows b = fetch<typename M::B>(env, i.src[1], t[2], t[3]);
    const Rows c = fetch<typename M::C>(env, i.src[2], t[4], t[5]);
    Result<D> r(env, i);
    u32* const low = r.low;
    u32* const high = r.high;
    VGPU_LANES
    for (unsigned l = 0; l < kLanes; ++l) {
        const auto x = lane_of<typename M::A>(a, l);
        const auto y = lane_of<typename M::B>(b, l);
        const auto z = lane_of<typename M::C>(c, l);
        const D value = result_of<D>(M::value(x, y, z));
        const bool carry = M::carry(x, y, z, value);
        carries.lane[l] = carry ? ~0u : 0u;
        put_lane<D>(low, high, l, clamp ? M::clamped(x, y, z, value, carry) : value);
    }
    const u64 mask_bits = pack(carries.lane) & env.exec();
    r.commit(env, i);
    env.set_pair(i.sdst, mask_bits);
    return Outcome::Next;
}

/// Computes the mask of the active lanes for which the comparison is true. Writes the mask to the
/// scalar pair `sdst` and, if kWritesExec, to EXEC.
template <class M> Outcome compare_op(Env& env, const Instruction& i) {
    Row t[4];
    Row held;
    const Rows a = fetch<typename M::A>(env, i.src[0], t[0], t[1]);
    const Rows b = fetch<typename M::B>(env, i.src[1], t[2], t[3]);
    VGPU_LANES
    for (unsigned l = 0; l < kLanes; ++l)
        held.lane[l] =
            M::holds(lane_of<typename M::A>(a, l), lane_of<typename M::B>(b, l)) ? ~0u : 0u;
    const u64 bits = pack(held.lane) & env.exec();
    env.set_pair(i.sdst, bits);
    if constexpr (M::kWritesExec) env.set_exec(bits);
    return Outcome::Next;
}

}  // namespace vgpu::softgpu::isa::VGPU_ISA_VARIANT
