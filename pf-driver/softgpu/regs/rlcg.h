// SPDX-License-Identifier: MIT
//
// RLCG: the path by which a VF's driver reaches GC and MMHUB registers during full access. On
// hardware, the firmware of the RLC (run list controller) performs these accesses. The driver puts
// command | dword offset into SCRATCH_REG1, and for a write the value into SCRATCH_REG0, then
// writes 1 to RLC_SPARE_INT. The device performs the access and answers in SCRATCH_REG1: the offset
// field is 0, and the error field is 0 or the reason why the device refused the access.
// SCRATCH_REG0 receives the value of a read. A refused access changes nothing else. RLC_SPARE_INT
// reads 0 after every access.
//
// While the register write gate is shut, the RLCG refuses every access (error 4), including reads,
// as on hardware. All calls are made with the VF's lock held.
#pragma once

#include <cstdint>
#include <functional>

#include "pf-driver/softgpu/regs/register_file.h"

namespace vgpu::softgpu::regs {

/// Source: Linux 6.12, amdgpu/amdgpu_virt.c (amdgpu_virt_rlcg_reg_rw), soc15_common.h.
class Rlcg {
public:
    /// `gate` returns the current state of the VF's register write gate.
    Rlcg(RegisterFile& registers, std::function<Gate()> gate);
    Rlcg(const Rlcg&) = delete;
    Rlcg& operator=(const Rlcg&) = delete;

    /// Number of refused accesses since the device started.
    [[nodiscard]] std::uint64_t refused() const { return refused_; }

private:
    /// Answer codes of SCRATCH_REG1; 0 is success.
    enum class Answer : std::uint8_t { Done = 0, NotInRange = 1, WrongOperation = 2, GateShut = 4 };

    /// Called when RLC_SPARE_INT is written with bit 0 set.
    void perform();
    /// `request` is SCRATCH_REG1 as the driver wrote it.
    Answer access(std::uint32_t request);

    RegisterFile& registers_;
    std::function<Gate()> gate_;
    std::uint64_t refused_ = 0;
};

}  // namespace vgpu::softgpu::regs
