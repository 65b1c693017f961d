// SPDX-License-Identifier: MIT
#include "tests/support/vf_client/gart.h"

#include <algorithm>

#include "pf-driver/hw/gpuvm.h"

namespace vgpu::test {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kGartFlags =
    GPUVM_PTE_VALID | GPUVM_PTE_SYSTEM | GPUVM_PTE_SNOOPED | GPUVM_PTE_EXECUTABLE |
    GPUVM_PTE_READABLE | GPUVM_PTE_WRITEABLE | (GPUVM_MTYPE_UC << GPUVM_PTE_MTYPE_SHIFT);

std::uint64_t round_up(std::uint64_t bytes) {
    return (bytes + kPage - 1) & ~(kPage - 1);
}

}  // namespace

VramHeap::VramHeap(VfDevice& device)
    : device_(device),
      base_(std::uint64_t{GPUVM_FB_LOCATION_BASE} << GPUVM_FB_LOCATION_SHIFT),
      pages_("VRAM", kTmr + kTmrBytes, device.vram().size()) {}

Buffer VramHeap::allocate(std::uint64_t bytes, std::uint64_t align) {
    const auto buffer = at(pages_.allocate(round_up(bytes), align), round_up(bytes));
    std::ranges::fill(buffer.cpu, std::byte{0});
    return buffer;
}

Buffer VramHeap::at(std::uint64_t offset, std::uint64_t bytes) const {
    return {base_ + offset, offset, device_.vram_at(offset, bytes), Place::Vram};
}

Gart::Gart(VfDevice& device)
    // address 0 stays unused so that a null pointer faults
    : device_(device), addresses_("GART", kPage, kBytes), flush_([] {}) {}

Buffer Gart::allocate(std::uint64_t bytes) {
    const auto size = round_up(bytes);
    const auto iova = device_.ram().allocate(size);
    const auto address = addresses_.allocate(size);
    write_entries(address, iova, size, kGartFlags);
    flush_();
    return {address, iova, device_.ram().at(iova, size), Place::System};
}

void Gart::free(const Buffer& buffer) {
    if (!device_.vram().empty()) write_entries(buffer.address, 0, buffer.size(), 0);
    addresses_.free(buffer.address);
    device_.ram().free(buffer.backing);
}

void Gart::write_entries(std::uint64_t address, std::uint64_t iova, std::uint64_t bytes,
                         std::uint64_t flags) {
    for (std::uint64_t done = 0; done < bytes; done += kPage) {
        const auto entry = VramHeap::kGartTable + (address + done) / kPage * sizeof(std::uint64_t);
        const auto value = flags == 0 ? 0 : (iova + done) | flags;
        store_shared<std::uint64_t>(device_.vram_at(entry, sizeof value).data(), value);
    }
}

}  // namespace vgpu::test
