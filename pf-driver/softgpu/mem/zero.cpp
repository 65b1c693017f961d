// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/mem/zero.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "pf-driver/softgpu/base/bits.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace vgpu::softgpu::mem {

namespace {

constexpr std::size_t kLineBytes = 64;

#if defined(__x86_64__)

void zero_line_sse2(std::byte* line) {
    void* at = line;
    auto* words = static_cast<__m128i*>(at);
    const __m128i zero = _mm_setzero_si128();
    for (int i = 0; i < 4; ++i) _mm_stream_si128(words + i, zero);
}

__attribute__((target("avx2"))) void zero_lines_avx2(std::span<std::byte> lines) {
    void* at = lines.data();
    auto* words = static_cast<__m256i*>(at);
    const __m256i zero = _mm256_setzero_si256();
    for (std::size_t i = 0; i < lines.size() / sizeof(__m256i); ++i)
        _mm256_stream_si256(words + i, zero);
}

void zero_lines(std::span<std::byte> lines) {
    if (__builtin_cpu_supports("avx2")) {
        zero_lines_avx2(lines);
    } else {
        for (std::size_t i = 0; i < lines.size(); i += kLineBytes) zero_line_sse2(lines.data() + i);
    }
    _mm_sfence();
}

#else

void zero_lines(std::span<std::byte> lines) {
    std::memset(lines.data(), 0, lines.size());
}

#endif

}  // namespace

/// On x86-64, uses non-temporal stores for whole cache lines, because ordinary stores would evict
/// other data from the caches when a whole VF is scrubbed. Ordinary stores zero the incomplete
/// cache lines at both ends.
void zero_non_temporal(std::span<std::byte> bytes) {
    void* start = bytes.data();
    std::size_t space = bytes.size();
    if (std::align(kLineBytes, kLineBytes, start, space) == nullptr) {
        std::memset(bytes.data(), 0, bytes.size());
        return;
    }
    const std::size_t head = bytes.size() - space;
    const std::size_t body = space / kLineBytes * kLineBytes;
    std::memset(bytes.data(), 0, head);
    zero_lines(bytes.subspan(head, body));
    std::memset(bytes.data() + head + body, 0, space - body);
}

std::size_t find_non_zero(std::span<const std::byte> bytes) {
    // Checks blocks of 32 words of 64 bits without a branch per word. Then searches byte by byte,
    // from the first block that is not zero or from the incomplete block at the end.
    constexpr std::size_t kBlock = 32 * sizeof(std::uint64_t);
    std::size_t at = 0;
    for (; at + kBlock <= bytes.size(); at += kBlock) {
        std::uint64_t seen = 0;
        for (std::size_t i = 0; i < kBlock; i += sizeof(std::uint64_t))
            seen |= load<std::uint64_t>(bytes, at + i);
        if (seen != 0) break;
    }
    const auto rest = bytes.subspan(at);
    const auto found = std::find_if(rest.begin(), rest.end(),
                                    [](std::byte value) { return value != std::byte{0}; });
    return at + static_cast<std::size_t>(found - rest.begin());
}

}  // namespace vgpu::softgpu::mem
