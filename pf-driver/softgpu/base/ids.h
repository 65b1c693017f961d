// SPDX-License-Identifier: MIT
//
// Ids of the software GPU. Each id has its own type, so that a VMID cannot be passed where a VF
// number is required. Values are the hardware's numbers, but GPU-IOV counts VFs from 0
// (iov::vf_bit()). Function 0 is the PF and is named kPf.
#pragma once

#include <cstdint>
#include <type_traits>

namespace vgpu::softgpu {

/// Number of a PCI function of the GPU: 0 is the PF, 1 to 16 are the VFs. A VfId from a register or
/// a configuration may name no VF: check it against the number of VFs.
enum class VfId : std::uint8_t {};
inline constexpr VfId kPf{0};

/// A slot for a GPUVM address space inside one VF, 0..15.
enum class Vmid : std::uint8_t {};

/// Offset into a doorbell BAR in dwords, the unit of MQDs, packets and registers. A BAR2 offset in
/// bytes is four times the index (Linux 6.12, amdgpu/amdgpu_doorbell.h).
enum class DoorbellIndex : std::uint32_t {};

/// Register number: dword offset into BAR5.
enum class RegisterIndex : std::uint32_t {};

/// Virtual address of a shader, packet or SDMA engine; 48 significant bits.
enum class GpuVa : std::uint64_t {};

/// An address on the bus, as the function's client maps it (DMA_MAP).
enum class Iova : std::uint64_t {};

/// Offset into the VRAM of one VF (before the VF page table).
enum class VfOffset : std::uint64_t {};

/// Offset into the VRAM of the whole device (after the VF page table).
enum class DeviceOffset : std::uint64_t {};

/// The number behind an id, for arithmetic at the edge of a block.
template <typename Id> constexpr auto raw(Id id) noexcept {
    return static_cast<std::underlying_type_t<Id>>(id);
}

}  // namespace vgpu::softgpu
