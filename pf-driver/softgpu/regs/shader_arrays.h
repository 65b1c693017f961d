// SPDX-License-Identifier: MIT
//
// The compute units that a VF's driver sees. The model is the real part's: 4 shader engines of one
// array with 16 CUs each. CC_GC_SHADER_ARRAY_CONFIG shows the inactive CUs of the engine that
// GRBM_GFX_INDEX selects (broadcast reads engine 0). The CUs of the mask are dealt to the engines
// round robin, so that every engine has work and the driver counts exactly the VF's CUs.
// Called with the VF's lock held.
#pragma once

#include <array>
#include <cstdint>

#include "pf-driver/softgpu/regs/register_file.h"

namespace vgpu::softgpu::regs {

class ShaderArrays {
public:
    /// Vega10: the number in the stock gpu_info firmware (Linux 6.12, amdgpu/amdgpu_device.c).
    static constexpr unsigned kEngines = 4;
    static constexpr unsigned kCusPerArray = 16;

    explicit ShaderArrays(RegisterFile& registers);
    ShaderArrays(const ShaderArrays&) = delete;
    ShaderArrays& operator=(const ShaderArrays&) = delete;

    /// `cu_mask`: bit per CU of the device the VF may use; at most 64 are shown.
    void set_cu_mask(std::uint64_t cu_mask);

private:
    /// CC_GC_SHADER_ARRAY_CONFIG: bits [31:16] mark the CUs that the VF does not have.
    [[nodiscard]] std::uint32_t config() const;

    RegisterFile& registers_;
    std::array<std::uint32_t, kEngines> active_{};
};

}  // namespace vgpu::softgpu::regs
