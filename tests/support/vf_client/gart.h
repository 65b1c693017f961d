// SPDX-License-Identifier: MIT
//
// VramHeap and Gart: memory of the test's kernel driver (VMID 0). VRAM lies at MC addresses from
// the frame buffer base; guest RAM is reached through the flat GART table at VRAM 1 MiB, 512 MiB of
// addresses from 0. The hook of set_flush() flushes a new GART mapping: by MMIO during full access,
// by KIQ packets afterwards.
#pragma once

#include <cstdint>
#include <functional>

#include "tests/support/vf_client/device.h"
#include "tests/support/vf_client/memory_word.h"
#include "tests/support/vf_client/range_allocator.h"

namespace vgpu::test {

class VramHeap {
public:
    /// Allocates from the VRAM behind the GART table and the PSP's TMR.
    explicit VramHeap(VfDevice& device);

    /// Zeroed memory; its `address` is the MC address.
    [[nodiscard]] Buffer allocate(std::uint64_t bytes, std::uint64_t align = 4096);
    void free(const Buffer& buffer) { pages_.free(buffer.backing); }
    [[nodiscard]] Buffer at(std::uint64_t offset, std::uint64_t bytes) const;
    [[nodiscard]] std::uint64_t free_bytes() const { return pages_.free_bytes(); }

    static constexpr std::uint64_t kGartTable = 1u << 20;
    static constexpr std::uint64_t kTmr = 4u << 20;
    static constexpr std::uint64_t kTmrBytes = 4u << 20;

private:
    VfDevice& device_;
    std::uint64_t base_;
    RangeAllocator pages_;
};

class Gart {
public:
    static constexpr std::uint64_t kBytes = 512u << 20;

    explicit Gart(VfDevice& device);

    /// Guest RAM at a GART address.
    [[nodiscard]] Buffer allocate(std::uint64_t bytes);
    /// Clears the entries; the next allocate() flushes, as in a driver that delays flushes.
    void free(const Buffer& buffer);
    void set_flush(std::function<void()> flush) { flush_ = std::move(flush); }

private:
    void write_entries(std::uint64_t address, std::uint64_t iova, std::uint64_t bytes,
                       std::uint64_t flags);

    VfDevice& device_;
    RangeAllocator addresses_;
    std::function<void()> flush_;
};

}  // namespace vgpu::test
