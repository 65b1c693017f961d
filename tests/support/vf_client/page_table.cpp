// SPDX-License-Identifier: MIT
#include "tests/support/vf_client/page_table.h"

#include "pf-driver/hw/gpuvm.h"

namespace vgpu::test {
namespace {

constexpr unsigned kRootLevel = GPUVM_LEVELS - 1;
constexpr std::uint64_t kPage = 1u << GPUVM_PAGE_SHIFT;

std::uint64_t slot(std::uint64_t va, unsigned level) {
    return va >> (GPUVM_PAGE_SHIFT + GPUVM_LEVEL_BITS * level) & (GPUVM_ENTRIES - 1);
}

}  // namespace

PageTable::PageTable(VramHeap& vram) : vram_(vram) {
    tables_.push_back(vram_.allocate(kPage));
}

PageTable::~PageTable() {
    for (const auto& table : tables_) vram_.free(table);
}

std::uint64_t PageTable::root() const {
    return tables_.front().backing | GPUVM_ROOT_VALID;
}

Buffer PageTable::table(std::uint64_t va, unsigned level) {
    auto current = tables_.front();
    for (unsigned at = kRootLevel; at > level; --at) {
        const auto where = slot(va, at) * 8;
        auto pde = current.load<std::uint64_t>(where);
        if ((pde & GPUVM_PTE_VALID) == 0) {
            tables_.push_back(vram_.allocate(kPage));
            pde = tables_.back().backing | GPUVM_PTE_VALID;
            current.store(where, pde);
        }
        current = vram_.at(pde & GPUVM_PDE_ADDR_MASK, kPage);
    }
    return current;
}

void PageTable::set_entry(std::uint64_t va, unsigned level, std::uint64_t value) {
    table(va, level).store(slot(va, level) * 8, value);
}

std::uint64_t PageTable::entry(std::uint64_t va, unsigned level) {
    return table(va, level).load<std::uint64_t>(slot(va, level) * 8);
}

void PageTable::map(std::uint64_t va, std::uint64_t backing, std::uint64_t bytes,
                    std::uint64_t flags) {
    for (std::uint64_t done = 0; done < bytes; done += kPage)
        set_entry(va + done, 0, (backing + done) | flags);
}

void PageTable::map_huge(std::uint64_t va, std::uint64_t vram_offset, std::uint64_t flags) {
    set_entry(va, 1, vram_offset | flags | GPUVM_PDE_PTE);
}

void PageTable::unmap(std::uint64_t va, std::uint64_t bytes) {
    for (std::uint64_t done = 0; done < bytes; done += kPage) {
        const bool is_huge = (entry(va + done, 1) & GPUVM_PDE_PTE) != 0;
        set_entry(va + done, is_huge ? 1 : 0, 0);
    }
}

}  // namespace vgpu::test
