// SPDX-License-Identifier: MIT
#include "tests/unit/mem/memory_rig.h"

#include <fcntl.h>

namespace vgpu::softgpu::test {

namespace {

constexpr std::uint64_t kRoot = 0x1000;       // in PF VRAM
constexpr std::uint64_t kLeafTable = 0x2000;  // in PF VRAM
constexpr std::uint32_t kContextOn = HW_PREP(VM_CONTEXT_CNTL, ENABLE, 1);

}  // namespace

OwnedFd make_memfd(Bytes size, Seal seal) {
    OwnedFd fd(memfd_create("test-ram", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_TRUE(fd);
    EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(size.count)), 0);
    if (seal == Seal::Shrink) {
        EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    }
    return fd;
}

std::vector<std::uint64_t> contiguous_leaves(std::uint64_t first, Bytes size) {
    std::vector<std::uint64_t> leaves;
    for (std::uint64_t at = 0; at < size.count; at += mem::DeviceVram::kLeafBytes)
        leaves.push_back(first + at);
    return leaves;
}

void write_vf_page_table(mem::DeviceVram& device, std::uint64_t root,
                         const std::vector<std::uint64_t>& leaves) {
    const std::uint64_t table = root + VF_PAGE_TABLE_BYTES;
    const std::uint64_t directory = table | VF_PAGE_TABLE_VALID;
    EXPECT_TRUE(device.write(DeviceOffset{root}, bytes_of(directory)));
    for (std::size_t i = 0; i < leaves.size(); ++i) {
        const std::uint64_t leaf = leaves[i] | VF_PAGE_TABLE_VALID;
        EXPECT_TRUE(device.write(DeviceOffset{table + i * sizeof(leaf)}, bytes_of(leaf)));
    }
}

MemoryRig::MemoryRig(Bytes vf_bytes) {
    device = std::move(*mem::DeviceVram::create(mem::DeviceVram::kPfBytes + vf_bytes + kVfBytes));
    vram = std::make_unique<mem::VfVram>(*device, VfId{1});
    write_vf_page_table(*device, kRoot,
                        contiguous_leaves(mem::DeviceVram::kPfBytes.count, vf_bytes));
    static_assert(kLeafTable == kRoot + VF_PAGE_TABLE_BYTES);
    EXPECT_TRUE(vram->commit(DeviceOffset{kRoot}, vf_bytes));
    bus_fd = make_memfd(kBusBytes);
    EXPECT_TRUE(system.map({Iova{kBusBase}, kBusBytes, bus_fd.get(), 0, kBusReadWrite}));
    gpuvm = std::make_unique<mem::GpuVm>(regs, *vram, system);
    gpuvm->vram_changed();
    const auto revoke = [this] {
        gpuvm->invalidate_all();
        gpuvm->await_holds();
    };
    vram->set_revocation(revoke);
    system.set_revocation(revoke);
}

void MemoryRig::enable_context(unsigned vmid, std::uint64_t root) {
    const std::uint32_t control = kContextOn | HW_PREP(VM_CONTEXT_CNTL, DEPTH, 3);
    const std::uint64_t value = root | GPUVM_ROOT_VALID;
    for (const std::uint32_t base : {REG_GC_VM_CONTEXT0_PAGE_TABLE_BASE_ADDR_LO32,
                                     REG_MMHUB_VM_CONTEXT0_PAGE_TABLE_BASE_ADDR_LO32}) {
        write_reg(base + 2 * vmid, low32(value));
        write_reg(base + 2 * vmid + 1, high32(value));
    }
    for (const std::uint32_t end : {REG_GC_VM_CONTEXT0_PAGE_TABLE_END_ADDR_LO32,
                                    REG_MMHUB_VM_CONTEXT0_PAGE_TABLE_END_ADDR_LO32}) {
        write_reg(end + 2 * vmid, 0xffffffff);
        write_reg(end + 2 * vmid + 1, 0xf);
    }
    write_reg(REG_GC_VM_CONTEXT0_CNTL + vmid, control);
    write_reg(REG_MMHUB_VM_CONTEXT0_CNTL + vmid, control);
}

void MemoryRig::enable_gart(std::uint64_t table, std::uint64_t pages) {
    for (const std::uint32_t base : {REG_GC_VM_CONTEXT0_PAGE_TABLE_BASE_ADDR_LO32,
                                     REG_MMHUB_VM_CONTEXT0_PAGE_TABLE_BASE_ADDR_LO32})
        write_reg(base, low32(table | GPUVM_ROOT_VALID));
    for (const std::uint32_t end : {REG_GC_VM_CONTEXT0_PAGE_TABLE_END_ADDR_LO32,
                                    REG_MMHUB_VM_CONTEXT0_PAGE_TABLE_END_ADDR_LO32})
        write_reg(end, low32(pages - 1));
    write_reg(REG_GC_VM_CONTEXT0_CNTL, kContextOn);
    write_reg(REG_MMHUB_VM_CONTEXT0_CNTL, kContextOn);
}

std::uint64_t MemoryRig::new_table() {
    const std::uint64_t table = next_table_;
    next_table_ += GPUVM_ENTRIES * sizeof(std::uint64_t);
    return table;
}

void MemoryRig::map_huge(std::uint64_t root, std::uint64_t va, unsigned level,
                         std::uint64_t entry) {
    std::uint64_t table = root;
    for (unsigned at = GPUVM_LEVELS; at-- > 0;) {
        const unsigned shift = GPUVM_PAGE_SHIFT + GPUVM_LEVEL_BITS * at;
        const std::uint64_t slot =
            table + bits(va, shift, GPUVM_LEVEL_BITS) * sizeof(std::uint64_t);
        if (at == level) {
            put(slot, entry);
            return;
        }
        if ((get<std::uint64_t>(slot) & GPUVM_PTE_VALID) == 0)
            put(slot, new_table() | GPUVM_PTE_VALID);
        table = get<std::uint64_t>(slot) & GPUVM_PDE_ADDR_MASK;
    }
}

void MemoryRig::map_page(std::uint64_t root, std::uint64_t va, std::uint64_t entry) {
    map_huge(root, va, 0, entry);
}

void MemoryRig::invalidate(unsigned vmid, mem::Hub hub) {
    const std::uint32_t request =
        hub == mem::Hub::Gfx ? REG_GC_VM_INVALIDATE_ENG0_REQ : REG_MMHUB_VM_INVALIDATE_ENG0_REQ;
    write_reg(request + 17, HW_PREP(VM_INVALIDATE_REQ, VMIDS, 1u << vmid));
}

}  // namespace vgpu::softgpu::test
