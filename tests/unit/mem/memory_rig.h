// SPDX-License-Identifier: MIT
//
// MemoryRig: one VF's memory path with nothing faked: device VRAM, a VF page table written as the
// PF core would, the register bank, GPUVM, and bus memory behind a sealed memfd. Helpers write page
// tables and values as a guest driver would. Small: 16 MiB for the PF, 16 MiB for the VF unless
// told otherwise.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/gpuvm.h"
#include "pf-driver/hw/regs.h"
#include "pf-driver/hw/vf_page_table.h"
#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/base/owned_fd.h"
#include "pf-driver/softgpu/mem/gpuvm.h"
#include "pf-driver/softgpu/mem/system_memory.h"
#include "pf-driver/softgpu/mem/vf_vram.h"
#include "pf-driver/softgpu/mem/vram.h"
#include "pf-driver/softgpu/regs/register_file.h"

namespace vgpu::softgpu::test {

inline constexpr Bytes kVfBytes = 16_MiB;
inline constexpr std::uint64_t kBusBase = 0x40000000;
inline constexpr Bytes kBusBytes = 4_MiB;
inline constexpr std::uint64_t kRwx =
    GPUVM_PTE_VALID | GPUVM_PTE_READABLE | GPUVM_PTE_WRITEABLE | GPUVM_PTE_EXECUTABLE;
inline constexpr std::uint8_t kBusReadWrite =
    static_cast<std::uint8_t>(mem::Access::Read) | static_cast<std::uint8_t>(mem::Access::Write);

/// A memfd of `size`, sealed as QEMU seals guest RAM unless told otherwise.
enum class Seal { Shrink, None };
OwnedFd make_memfd(Bytes size, Seal seal = Seal::Shrink);

/// Writes a VF page table at `root` (PF VRAM; one leaf table behind it): leaf i -> leaves[i].
void write_vf_page_table(mem::DeviceVram& device, std::uint64_t root,
                         const std::vector<std::uint64_t>& leaves);
/// Leaves of `size` bytes that lie one after the other from `first`.
std::vector<std::uint64_t> contiguous_leaves(std::uint64_t first, Bytes size);

class MemoryRig {
public:
    explicit MemoryRig(Bytes vf_bytes = kVfBytes);

    /// Programs VM_CONTEXTn of both hubs as amdgpu does: 4 levels, the whole address space.
    void enable_context(unsigned vmid, std::uint64_t root);
    /// GART: a flat table at VRAM offset `table` for pages [0, pages).
    void enable_gart(std::uint64_t table, std::uint64_t pages);
    /// Maps one page of a 4-level tree rooted at VRAM offset `root`; tables come from
    /// next_table_ on.
    void map_page(std::uint64_t root, std::uint64_t va, std::uint64_t entry);
    /// The same with the entry placed at level 1 (2 MiB) or 2 (1 GiB).
    void map_huge(std::uint64_t root, std::uint64_t va, unsigned level, std::uint64_t entry);
    [[nodiscard]] std::uint64_t new_table();
    /// By the register, as the driver does in full access.
    void invalidate(unsigned vmid, mem::Hub hub = mem::Hub::Gfx);

    template <typename T> void put(std::uint64_t vram_offset, const T& value) {
        EXPECT_TRUE(vram->write(VfOffset{vram_offset}, bytes_of(value)));
    }
    template <typename T> [[nodiscard]] T get(std::uint64_t vram_offset) const {
        T value{};
        EXPECT_TRUE(vram->read(VfOffset{vram_offset}, bytes_of(value)));
        return value;
    }
    template <typename T> void put_bus(std::uint64_t address, const T& value) {
        EXPECT_TRUE(system.write(Iova{address}, bytes_of(value)));
    }
    template <typename T> [[nodiscard]] T get_bus(std::uint64_t address) const {
        T value{};
        EXPECT_TRUE(system.read(Iova{address}, bytes_of(value)));
        return value;
    }
    void write_reg(std::uint32_t index, std::uint32_t value) {
        regs.write(RegisterIndex{index}, value);
    }
    [[nodiscard]] std::uint32_t read_reg(std::uint32_t index) {
        return regs.read(RegisterIndex{index});
    }

    std::unique_ptr<mem::DeviceVram> device;
    std::unique_ptr<mem::VfVram> vram;
    mem::SystemMemory system;
    OwnedFd bus_fd;
    regs::RegisterFile regs{regs::Role::Vf};
    std::unique_ptr<mem::GpuVm> gpuvm;

private:
    std::uint64_t next_table_ = 8 << 20;  // VRAM offsets from 8 MiB on hold page tables
};

}  // namespace vgpu::softgpu::test
