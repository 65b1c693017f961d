// SPDX-License-Identifier: MIT
//
// Ids of the software GPU. Each id has its own type, so that a VMID cannot be passed where a VF
// number is required. An id has the value that the hardware uses. VfId has exceptions: the bit
// masks of GPU-IOV (VF1 is bit 0, iov::vf_bit()) and some registers of GPU-IOV (hw/gpuiov.h) count
// VFs from 0.
#pragma once

#include <cstdint>
#include <type_traits>

namespace vgpu::softgpu {

/// Number of a PCI function of the GPU: 0 is the PF, 1 to 16 are the VFs. A VfId that comes from a
/// register or a configuration may name a VF that does not exist: check the VfId against the number
/// of VFs.
enum class VfId : std::uint8_t {};
inline constexpr VfId kPf{0};

/// Number of a GPUVM address space inside one VF, 0..15.
enum class Vmid : std::uint8_t {};

/// Offset into the doorbell BAR (BAR2) in dwords, the unit that MQDs, packets and registers use.
/// The offset in bytes is four times the index (Linux 6.12, amdgpu/amdgpu_doorbell.h).
enum class DoorbellIndex : std::uint32_t {};

/// Register number: dword offset into BAR5.
enum class RegisterIndex : std::uint32_t {};

/// GPUVM virtual address, as shaders and packets use it; 48 significant bits.
enum class GpuVa : std::uint64_t {};

/// Bus (DMA) address as one function uses it; each function has its own mappings.
enum class Iova : std::uint64_t {};

/// Offset into the VRAM of one VF (before the VF page table).
enum class VfOffset : std::uint64_t {};

/// Offset into the VRAM of the whole device (after the VF page table).
enum class DeviceOffset : std::uint64_t {};

/// The plain number of an id, for arithmetic.
template <typename Id> constexpr auto raw(Id id) noexcept {
    return static_cast<std::underlying_type_t<Id>>(id);
}

}  // namespace vgpu::softgpu
