// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/video/encoder.h"

#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/mmsch.h"

namespace vgpu::softgpu::video {

namespace {

/// Indexed by Encoder.
constexpr std::array<EncoderRow, kEncoders.size()> kRows = {{
    {.doorbell = DOORBELL_UVD,
     .client = IH_CLIENT_UVD,
     .source = IH_SOURCE_UVD_ENC,
     .base_lo = REG_UVD_UVD_RB_BASE_LO,
     .base_hi = REG_UVD_UVD_RB_BASE_HI,
     .size = REG_UVD_UVD_RB_SIZE,
     .read_pointer = REG_UVD_UVD_RB_RPTR,
     .write_pointer = REG_UVD_UVD_RB_WPTR,
     .clock = {REG_UVD_UVD_VCPU_CNTL, HW_FIELD_MASK(UVD_VCPU_CNTL, CLK_EN)},
     .reset = {REG_UVD_UVD_SOFT_RESET, HW_FIELD_MASK(UVD_SOFT_RESET, VCPU_SOFT_RESET)},
     .loaded = {REG_UVD_UVD_STATUS, HW_FIELD_MASK(UVD_STATUS, FIRMWARE_LOADED)},
     .interrupts = {REG_UVD_UVD_MASTINT_EN,
                    HW_FIELD_MASK(UVD_MASTINT_EN, VCPU_EN) | HW_FIELD_MASK(UVD_MASTINT_EN, SYS_EN)},
     .first_register = MMSCH_UVD_REGISTER_FIRST,
     .end_register = MMSCH_UVD_REGISTER_END},
    {.doorbell = DOORBELL_VCE,
     .client = IH_CLIENT_VCE0,
     .source = IH_SOURCE_VCE_TRAP,
     .base_lo = REG_VCE_VCE_RB_BASE_LO,
     .base_hi = REG_VCE_VCE_RB_BASE_HI,
     .size = REG_VCE_VCE_RB_SIZE,
     .read_pointer = REG_VCE_VCE_RB_RPTR,
     .write_pointer = REG_VCE_VCE_RB_WPTR,
     .clock = {REG_VCE_VCE_VCPU_CNTL, HW_FIELD_MASK(VCE_VCPU_CNTL, CLK_EN)},
     .reset = {REG_VCE_VCE_SOFT_RESET, HW_FIELD_MASK(VCE_SOFT_RESET, ECPU_SOFT_RESET)},
     .loaded = {REG_VCE_VCE_STATUS, HW_FIELD_MASK(VCE_STATUS, FIRMWARE_LOADED)},
     .interrupts = {REG_VCE_VCE_SYS_INT_EN, HW_FIELD_MASK(VCE_SYS_INT_EN, TRAP_INTERRUPT_EN)},
     .first_register = MMSCH_VCE_REGISTER_FIRST,
     .end_register = MMSCH_VCE_REGISTER_END},
}};

bool are_set(const Bits& bits, const regs::RegisterFile& regs) {
    return (regs.get(RegisterIndex{bits.reg}) & bits.mask) == bits.mask;
}

}  // namespace

const EncoderRow& row_of(Encoder encoder) {
    return kRows[static_cast<std::size_t>(encoder)];
}

bool runs_firmware(const EncoderRow& row, const regs::RegisterFile& regs) {
    return are_set(row.clock, regs) && !are_set(row.reset, regs);
}

bool has_interrupts(const EncoderRow& row, const regs::RegisterFile& regs) {
    return are_set(row.interrupts, regs);
}

/// Each read of a status register computes the bits `loaded` from clock and reset.
void claim_status(regs::RegisterFile& regs) {
    for (const EncoderRow& row : kRows)
        regs.claim(RegisterIndex{row.loaded.reg}, 1,
                   [&row, &regs](RegisterIndex, std::uint32_t stored) {
                       const std::uint32_t others = stored & ~row.loaded.mask;
                       return runs_firmware(row, regs) ? others | row.loaded.mask : others;
                   },
                   {});
}

}  // namespace vgpu::softgpu::video
