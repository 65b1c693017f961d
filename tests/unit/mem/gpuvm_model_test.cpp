// SPDX-License-Identifier: MIT
//
// GPUVM against a second implementation: random page tables, random addresses. The model is written
// the other way round (recursion over arithmetic, no hub, no cache), and the property that matters
// is checked apart from it: no host address outside the VF's own pages or the DMA map ever comes
// out.
#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "tests/unit/mem/gpuvm_model.h"
#include "tests/unit/mem/memory_rig.h"

namespace vgpu::softgpu::mem {
namespace {

using test::kBusBase;
using test::kBusBytes;
using test::kVfBytes;

struct Generator {
    std::mt19937_64 random;
    const std::vector<std::uint64_t>& tables;

    std::uint64_t below(std::uint64_t n) { return random() % n; }

    /// Mostly plausible entries: a table, a page, a huge page, system memory; sometimes garbage.
    std::uint64_t entry() {
        const std::uint64_t flags = (random() & 0x70) | (below(8) != 0 ? 1 : 0);
        switch (below(8)) {
            case 0:
                return random();
            case 1:
                return (kBusBase + below(kBusBytes.count + 0x4000)) | flags | GPUVM_PTE_SYSTEM;
            case 2:
                return below(2 * kVfBytes.count) | flags | GPUVM_PDE_PTE;
            case 3:
                return GPUVM_PTE_PRT | (flags & ~GPUVM_PTE_VALID);
            case 4:
                return (below(2 * kVfBytes.count) & GPUVM_PTE_ADDR_MASK) | flags;
            default:
                return tables[below(tables.size())] | GPUVM_PTE_VALID;
        }
    }
};

TEST(GpuVmModel, RandomTablesTranslateAsTheModelSays) {
    test::MemoryRig rig;
    std::vector<std::uint64_t> tables;
    for (int i = 0; i < 24; ++i) tables.push_back(rig.new_table());
    Generator make{std::mt19937_64(20240711), tables};
    rig.enable_context(1, tables[0]);
    const auto port = rig.gpuvm->make_port(Vmid{1}, Hub::Gfx);
    std::uint64_t translated = 0;
    for (int round = 0; round < 150; ++round) {
        // Few distinct indices, so that random addresses meet the entries.
        for (const std::uint64_t table : tables)
            for (unsigned i = 0; i < 4; ++i) rig.put(table + i * 8, make.entry());
        rig.invalidate(1);
        for (int probe = 0; probe < 400; ++probe) {
            const std::uint64_t va = (make.below(4) << 39) | (make.below(4) << 30) |
                                     (make.below(4) << 21) | (make.below(4) << 12) |
                                     make.below(4096);
            const auto access = static_cast<Access>(1u << (4 + make.below(3)));
            port->clear_fault();
            std::byte* const host = port->at(GpuVa{va}, access);
            const test::Expected expected = test::model_translate(rig, tables[0], va, access);
            ASSERT_EQ(port->fault().kind, expected.kind) << std::hex << va;
            ASSERT_EQ(host, expected.host) << std::hex << va;
            ASSERT_TRUE(host == nullptr || test::is_inside_slice(rig, host));
            translated += host != nullptr;
        }
    }
    EXPECT_GT(translated, 1000u) << "the generator must reach memory to prove anything";
}

}  // namespace
}  // namespace vgpu::softgpu::mem
