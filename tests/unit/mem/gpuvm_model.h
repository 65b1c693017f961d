// SPDX-License-Identifier: MIT
//
// An independent reading of the GPUVM facts for tests and fuzzing: what a 4-level translation must
// give, computed from the bytes of VRAM and bus memory. Shares no code with mem/gpuvm.cpp.
#pragma once

#include <cstdint>

#include "tests/unit/mem/memory_rig.h"

namespace vgpu::softgpu::test {

struct Expected {
    mem::FaultKind kind = mem::FaultKind::None;
    std::byte* host = nullptr;
};

/// 8 bytes of VRAM or bus memory; false if there is nothing.
inline bool model_entry(const MemoryRig& rig, bool is_system, std::uint64_t address,
                        std::uint64_t& entry) {
    if (is_system) return rig.system.read(Iova{address}, bytes_of(entry));
    if (address > kVfBytes.count - 8) return false;
    return rig.device->read(DeviceOffset{mem::DeviceVram::kPfBytes.count + address},
                            bytes_of(entry));
}

inline Expected model_page(const MemoryRig& rig, std::uint64_t pte, std::uint64_t va, int level,
                           mem::Access access) {
    const std::uint64_t run = std::uint64_t{4096} << (9 * level);
    const std::uint64_t field = (pte % (1ull << 48)) / 4096 * 4096;
    const std::uint64_t address = field + va % run;
    const auto wanted = static_cast<std::uint64_t>(access);
    if ((pte & wanted) == 0) return {mem::FaultKind::Permission, nullptr};
    if ((pte & 2) == 0) {
        if (address >= kVfBytes.count) return {mem::FaultKind::OutOfRange, nullptr};
        const std::uint64_t at = mem::DeviceVram::kPfBytes.count + address;
        return {mem::FaultKind::None, rig.device->host(DeviceOffset{0}) + at};
    }
    if (address < kBusBase || address - kBusBase >= kBusBytes.count)
        return {mem::FaultKind::OutOfRange, nullptr};
    const std::uint64_t offset = address - kBusBase;
    std::byte* const page = rig.system.find(Iova{kBusBase}).host;
    return {mem::FaultKind::None, page + offset};
}

inline Expected model_level(const MemoryRig& rig, std::uint64_t pde, std::uint64_t va, int level,
                            mem::Access access) {
    const std::uint64_t index = (va / (std::uint64_t{4096} << (9 * level))) % 512;
    const std::uint64_t table = (pde % (1ull << 48)) / 64 * 64;
    std::uint64_t entry = 0;
    if (!model_entry(rig, (pde & 2) != 0, table + 8 * index, entry))
        return {mem::FaultKind::OutOfRange, nullptr};
    const bool is_valid = entry % 2 == 1;
    const bool is_page = level == 0 || (entry >> 54) % 2 == 1;
    if (is_valid)
        return is_page ? model_page(rig, entry, va, level, access)
                       : model_level(rig, entry, va, level - 1, access);
    const bool is_prt = is_page && (entry >> 51) % 2 == 1;
    return {is_prt ? mem::FaultKind::None : mem::FaultKind::NotPresent, nullptr};
}

/// `root` is the VRAM offset of a PDB2; `va` a 48-bit address.
inline Expected model_translate(const MemoryRig& rig, std::uint64_t root, std::uint64_t va,
                                mem::Access access) {
    return model_level(rig, root | 1, va, 3, access);
}

/// `host` belongs to the VF's VRAM or to bus memory the client mapped.
inline bool is_inside_slice(const MemoryRig& rig, const std::byte* host) {
    const std::byte* const vram = rig.device->host(DeviceOffset{mem::DeviceVram::kPfBytes.count});
    const std::byte* const bus = rig.system.find(Iova{kBusBase}).host;
    const bool is_in_vram = host >= vram && host < vram + kVfBytes.count;
    return is_in_vram || (bus != nullptr && host >= bus && host < bus + kBusBytes.count);
}

}  // namespace vgpu::softgpu::test
