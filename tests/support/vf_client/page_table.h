// SPDX-License-Identifier: MIT
//
// PageTable: the 4-level GPUVM tables of one process, kept in VRAM and written by the CPU through
// BAR0. Tests may write any entry at any level; map() and unmap() write valid ones. Nothing here
// flushes a TLB: the caller does that, and some tests leave it out.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/support/vf_client/gart.h"

namespace vgpu::test {

class PageTable {
public:
    explicit PageTable(VramHeap& vram);
    ~PageTable();
    PageTable(const PageTable&) = delete;
    PageTable& operator=(const PageTable&) = delete;

    /// Root in PDE format, as MAP_PROCESS takes it.
    [[nodiscard]] std::uint64_t root() const;

    static constexpr std::uint64_t kSystemFlags = 0x77;  ///< V S C X R W
    static constexpr std::uint64_t kVramFlags = 0x71;    ///< V X R W

    /// Maps 4 KiB pages [va, va + bytes) to `backing`, a VRAM offset or a bus address.
    void map(std::uint64_t va, std::uint64_t backing, std::uint64_t bytes, std::uint64_t flags);
    /// Maps one 2 MiB page of VRAM by an entry at PDB0.
    void map_huge(std::uint64_t va, std::uint64_t vram_offset, std::uint64_t flags = kVramFlags);
    void unmap(std::uint64_t va, std::uint64_t bytes);

    /// Level 0 is PTB, 3 the root; missing tables on the way are made.
    void set_entry(std::uint64_t va, unsigned level, std::uint64_t value);
    [[nodiscard]] std::uint64_t entry(std::uint64_t va, unsigned level);

private:
    /// The table of `level` that covers `va`.
    Buffer table(std::uint64_t va, unsigned level);

    VramHeap& vram_;
    std::vector<Buffer> tables_;  // first is the root
};

}  // namespace vgpu::test
