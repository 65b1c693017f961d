// SPDX-License-Identifier: MIT
//
// Memory accesses of eight lanes at once; this file calls eight lanes a group. In global memory,
// the bytes of the group's active lanes must be in one page that has a host address, so the access
// needs at most one TLB lookup. In LDS, the bytes of all lanes of the wave must be inside the
// work-group's LDS, even those of inactive lanes. If these conditions do not hold, the callers
// access the lanes one by one.
//
// If the lanes' words are adjacent, one move loads or stores all eight (a store only if all lanes
// are active and each stores one word). If all lanes load the same word, it is loaded once. All
// other accesses of the group take a gather, or one or more moves for each lane.
//
// unit_memory.cpp and unit_lds.cpp include this file, each into the namespace of its build
// (lane_math.h).
#pragma once

#include "pf-driver/softgpu/isa/memory_access.h"

namespace vgpu::softgpu::isa::VGPU_ISA_VARIANT {

namespace {

/// Number of lanes in a group.
constexpr unsigned kGroup = 8;
/// The mask of a group whose lanes are all active.
constexpr u32 kWholeGroup = (1u << kGroup) - 1;

/// Offsets of eight lanes in a page or in LDS. In a page, inactive lanes have the offset of the
/// first active lane.
struct GroupOffsets {
    alignas(32) u32 at[kGroup];   ///< bytes
    bool is_consecutive = false;  ///< true if each offset is 4 bytes after the previous one
    bool is_uniform = false;      ///< true if all offsets are equal
};

#if defined(__AVX2__)
VGPU_INLINE __m256i load_vector(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}

VGPU_INLINE void store_vector(void* to, __m256i value) {
    _mm256_storeu_si256(static_cast<__m256i*>(to), value);
}

VGPU_INLINE bool is_zero(__m256i value) {
    return _mm256_testz_si256(value, value) != 0;
}

/// Sets is_consecutive and is_uniform.
VGPU_INLINE void find_pattern(GroupOffsets& offsets) {
    const __m256i at = load_vector(offsets.at);
    const __m256i distance =
        _mm256_sub_epi32(at, _mm256_broadcastd_epi32(_mm256_castsi256_si128(at)));
    const __m256i words = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    offsets.is_consecutive = is_zero(_mm256_xor_si256(distance, words));
    offsets.is_uniform = is_zero(distance);
}

/// Offsets, relative to `page`, of the four lanes that start at `first`. A lane whose bit in `on`
/// is clear gets the offset of the address `lead`.
VGPU_INLINE __m256i offsets_of_four(const u64* at, u64 page, u64 lead, u32 on, u32 first) {
    const __m256i bits = _mm256_slli_epi64(_mm256_setr_epi64x(1, 2, 4, 8), static_cast<int>(first));
    const __m256i is_off = _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(i64{on}), bits),
                                              _mm256_setzero_si256());
    const __m256i where = _mm256_blendv_epi8(load_vector(at + first),
                                             _mm256_set1_epi64x(static_cast<i64>(lead)), is_off);
    return _mm256_sub_epi64(where, _mm256_set1_epi64x(static_cast<i64>(page)));
}

/// Sets offsets.at. False if an active lane has bytes outside the page: then `reach`, which
/// combines the offsets of all first and last bytes, has a bit of kOutside.
VGPU_INLINE bool find_offsets(const u64* at, u64 page, u64 lead, u32 on, u32 size,
                              GroupOffsets& offsets) {
    // The two shuffles collect the low words of the eight 64-bit offsets.
    constexpr int kEvenWords = 0x88, kLowHalvesFirst = 0xd8;
    const __m256i low = offsets_of_four(at, page, lead, on, 0);
    const __m256i high = offsets_of_four(at, page, lead, on, 4);
    const __m256i last = _mm256_set1_epi64x(i64{size} - 1);
    const __m256i reach = _mm256_or_si256(_mm256_or_si256(low, _mm256_add_epi64(low, last)),
                                          _mm256_or_si256(high, _mm256_add_epi64(high, last)));
    const __m256i words = _mm256_castps_si256(
        _mm256_shuffle_ps(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high), kEvenWords));
    store_vector(offsets.at, _mm256_permute4x64_epi64(words, kLowHalvesFirst));
    constexpr i64 kOutside = ~static_cast<i64>(mem::Port::kPageBytes - 1);
    return _mm256_testz_si256(reach, _mm256_set1_epi64x(kOutside)) != 0;
}
#else
/// Sets is_consecutive and is_uniform.
VGPU_INLINE void find_pattern(GroupOffsets& offsets) {
    u32 wrong_words = 0, distances = 0;
    for (u32 l = 0; l < kGroup; ++l) {
        const u32 distance = offsets.at[l] - offsets.at[0];
        wrong_words |= distance ^ (l * 4);
        distances |= distance;
    }
    offsets.is_consecutive = wrong_words == 0;
    offsets.is_uniform = distances == 0;
}

/// Sets offsets.at. False if an active lane has bytes outside the page.
VGPU_INLINE bool find_offsets(const u64* at, u64 page, u64 lead, u32 on, u32 size,
                              GroupOffsets& offsets) {
    u64 reach = 0;
    for (unsigned l = 0; l < kGroup; ++l) {
        const u64 offset = (((on >> l) & 1) != 0 ? at[l] : lead) - page;
        reach |= offset | (offset + size - 1);
        offsets.at[l] = static_cast<u32>(offset);
    }
    return reach < mem::Port::kPageBytes;
}
#endif

/// Loads the word at `memory` plus the lane's offset, for each lane of the group.
VGPU_INLINE void gather_words(const std::byte* memory, const GroupOffsets& offsets, u32* to) {
    if (offsets.is_consecutive) {
        std::memcpy(to, memory + offsets.at[0], kGroup * sizeof(u32));
        return;
    }
    if (offsets.is_uniform) {
        u32 word = 0;
        std::memcpy(&word, memory + offsets.at[0], sizeof word);
        for (unsigned l = 0; l < kGroup; ++l) to[l] = word;
        return;
    }
#if defined(__AVX2__)
    const auto* const words = static_cast<const int*>(static_cast<const void*>(memory));
    store_vector(to, _mm256_i32gather_epi32(words, load_vector(offsets.at), 1));
#else
    for (unsigned l = 0; l < kGroup; ++l) std::memcpy(to + l, memory + offsets.at[l], sizeof(u32));
#endif
}

/// Like gather_words(), for values of T (8 or 16 bits), which are extended to words.
template <class T>
VGPU_INLINE void gather_parts(const std::byte* memory, const GroupOffsets& offsets, u32* to) {
    for (unsigned l = 0; l < kGroup; ++l) {
        T value;
        std::memcpy(&value, memory + offsets.at[l], sizeof value);
        to[l] = static_cast<u32>(i32{value});
    }
}

/// Finds the pages that an instruction accesses. Keeps the host address of the last page; the
/// address is valid at least until the instruction ends (port.h).
class PageCursor {
public:
    PageCursor(Env& env, Access access) : port_(env.context.port), access_(access) {}

    /// Host address of the page that holds `size` bytes at the address of each active lane. `at`
    /// has eight addresses; bit n of `on` is set if lane n of the group is active, and `on` is not
    /// 0. nullptr if the bytes are not in one page, if the page has no host address, or if the
    /// access faults. Sets offsets.at.
    VGPU_INLINE std::byte* find(const u64* at, u32 on, u32 size, GroupOffsets& offsets) {
        const u64 lead = at[std::countr_zero(on)];
        const u64 page = lead & ~(mem::Port::kPageBytes - 1);
        if (!find_offsets(at, page, lead, on, size, offsets)) return nullptr;
        if (page != page_) {
            page_ = page;
            host_ = port_.at(GpuVa{page}, access_);
            if (host_ == nullptr) port_.clear_fault();  // the lane-by-lane path reports the fault
        }
        return host_;
    }

private:
    mem::Port& port_;
    Access access_;
    u64 page_ = ~u64{0};
    std::byte* host_ = nullptr;
};

/// Loads `Count` words, or one smaller T, for each lane of the group that begins at lane `first`.
/// False if PageCursor::find() finds no page.
template <class T, unsigned Count>
VGPU_INLINE bool load_group(PageCursor& pages, const u64* at, u32 on, unsigned first, Row* rows) {
    GroupOffsets offsets;
    const std::byte* const host = pages.find(at + first, on, Count * sizeof(T), offsets);
    if (host == nullptr) return false;
    if constexpr (sizeof(T) == 4) {
        find_pattern(offsets);
        for (unsigned k = 0; k < Count; ++k)
            gather_words(host + k * sizeof(T), offsets, rows[k].lane + first);
    } else {
        gather_parts<T>(host, offsets, rows[0].lane + first);
    }
    return true;
}

/// For each active lane of the group that begins at lane `first`, stores `Count` registers from
/// `source` on, or one smaller T that begins at bit `shift`. False if PageCursor::find() finds no
/// page.
template <class T, unsigned Count>
VGPU_INLINE bool store_group(PageCursor& pages, const u64* at, u32 on, unsigned first,
                             const VgprRow* source, unsigned shift) {
    GroupOffsets offsets;
    std::byte* const host = pages.find(at + first, on, Count * sizeof(T), offsets);
    if (host == nullptr) return false;
    if constexpr (sizeof(T) == 4 && Count == 1) {
        find_pattern(offsets);
        if (offsets.is_consecutive && on == kWholeGroup) {
            std::memcpy(host + offsets.at[0], source->lane.data() + first, kGroup * sizeof(u32));
            return true;
        }
    }
    for (unsigned l = 0; l < kGroup; ++l) {
        if (((on >> l) & 1) == 0) continue;
        for (unsigned k = 0; k < Count; ++k) {
            const T value = static_cast<T>(source[k].lane[first + l] >> shift);
            std::memcpy(host + offsets.at[l] + k * sizeof(T), &value, sizeof value);
        }
    }
    return true;
}

}  // namespace

}  // namespace vgpu::softgpu::isa::VGPU_ISA_VARIANT
