// SPDX-License-Identifier: MIT
//
// Identities of the software GPU, each a type of its own: a VMID cannot be passed where a VF
// number is wanted. Values are the hardware's own numbers; Function 0 is the PF and is named kPf.
#pragma once

#include <cstdint>
#include <type_traits>

namespace vgpu::softgpu {

/// PCI function as the GPU counts it: 0 is the PF, 1..16 are the VFs.
/// From a register or a configuration it is a number until it has been checked against the number
/// of VFs.
enum class VfId : std::uint8_t {};
inline constexpr VfId kPf{0};

/// Slot of a GPUVM address space inside one VF, 0..15.
enum class Vmid : std::uint8_t {};

/// Offset into a doorbell BAR in dwords, the unit of MQDs, packets and registers.
/// Not bytes: a BAR2 offset is four times this (Linux 6.12, amdgpu/amdgpu_doorbell.h).
enum class DoorbellIndex : std::uint32_t {};

/// Register number: dword offset into BAR5.
enum class RegisterIndex : std::uint32_t {};

/// Virtual address of a shader, packet or SDMA engine; 48 significant bits.
enum class GpuVa : std::uint64_t {};

/// Address on the bus: guest physical for a VF, host view physical for the PF.
enum class Iova : std::uint64_t {};

/// Offset into the VRAM of one VF (before the VF page table).
enum class VfOffset : std::uint64_t {};

/// Offset into the VRAM of the whole device (after the VF page table).
enum class DeviceOffset : std::uint64_t {};

/// The number behind an identity, for arithmetic at the edge of a block.
template <typename Id> constexpr auto raw(Id id) noexcept {
    return static_cast<std::underlying_type_t<Id>>(id);
}

}  // namespace vgpu::softgpu
