// SPDX-License-Identifier: MIT
//
// The two video encoders of a VF: UVD 7.0's encoder and VCE 4.0, each with one ring. Only the
// numbers of their registers, doorbells and interrupts differ. So one table holds these numbers
// (row_of()), and the rest of this folder treats both encoders alike. In softgpu, an encoder's
// processor (VCPU) "runs its firmware" as soon as the processor has a clock and is out of reset.
#pragma once

#include <array>
#include <cstdint>

#include "pf-driver/hw/doorbell.h"
#include "pf-driver/hw/ih.h"
#include "pf-driver/hw/regs.h"
#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/regs/register_file.h"

namespace vgpu::softgpu::video {

/// An encoder; also the index in arrays of rows, rings and lists of an init table.
enum class Encoder : std::uint8_t { Uvd, Vce };
inline constexpr std::array kEncoders{Encoder::Uvd, Encoder::Vce};

/// A condition: all bits of `mask` are set in register `reg`.
struct Bits {
    std::uint32_t reg;
    std::uint32_t mask;
};

/// The numbers of one encoder's registers, doorbell and interrupt (Linux 6.12, amdgpu/uvd_v7_0.c,
/// vce_v4_0.c). Registers are dword offsets in BAR5 (REG_* of hw/regs.h).
struct EncoderRow {
    doorbell_index doorbell;
    ih_client client;
    ih_source source;
    std::uint32_t base_lo;         ///< register with the address of the ring, low half
    std::uint32_t base_hi;         ///< the same, high half
    std::uint32_t size;            ///< register with the size of the ring in dwords
    std::uint32_t read_pointer;    ///< register with the read pointer in dwords
    std::uint32_t write_pointer;   ///< register with the write pointer in dwords
    Bits clock;                    ///< set: the VCPU has a clock
    Bits reset;                    ///< set: the VCPU is in reset
    Bits loaded;                   ///< softgpu shows these bits while the VCPU runs its firmware
    Bits interrupts;               ///< set: the encoder may raise interrupts
    std::uint32_t first_register;  ///< first register that an init table may access
    std::uint32_t end_register;    ///< one after the last register that an init table may access
};

[[nodiscard]] const EncoderRow& row_of(Encoder encoder);

/// True if the VCPU has a clock and is out of reset. softgpu loads and executes no firmware.
[[nodiscard]] bool runs_firmware(const EncoderRow& row, const regs::RegisterFile& regs);
/// True if the driver has enabled the encoder's interrupts.
[[nodiscard]] bool has_interrupts(const EncoderRow& row, const regs::RegisterFile& regs);

/// Claims the encoders' status registers (RegisterFile::claim()), so that these registers show
/// whether the firmware runs.
void claim_status(regs::RegisterFile& regs);

}  // namespace vgpu::softgpu::video
