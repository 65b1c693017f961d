// SPDX-License-Identifier: MIT
//
// ShaderArrays: the compute units that a VF's driver sees. The layout is that of Vega10: 4 shader
// engines, each with one shader array of 16 CUs. CC_GC_SHADER_ARRAY_CONFIG shows the inactive CUs
// of the shader engine that GRBM_GFX_INDEX selects; with SE_BROADCAST, those of shader engine 0.
// set_cu_mask() deals the VF's CUs to the shader engines in turn. So the numbers of CUs of two
// shader engines differ by at most one, and the driver counts as many CUs as the VF may use.
//
// All calls are made with the VF's lock held.
#pragma once

#include <array>
#include <cstdint>

#include "pf-driver/softgpu/regs/register_file.h"

namespace vgpu::softgpu::regs {

class ShaderArrays {
public:
    /// Shader engines, and CUs of each shader array, in the gpu_info firmware of Vega10
    /// (Linux 6.12, amdgpu/amdgpu_device.c).
    static constexpr unsigned kEngines = 4;
    static constexpr unsigned kCusPerArray = 16;

    explicit ShaderArrays(RegisterFile& registers);
    ShaderArrays(const ShaderArrays&) = delete;
    ShaderArrays& operator=(const ShaderArrays&) = delete;

    /// `cu_mask` has a bit for each CU of the device that the VF may use. Before the first call,
    /// and after a mask of 0, the driver sees no CU.
    void set_cu_mask(std::uint64_t cu_mask);

private:
    /// CC_GC_SHADER_ARRAY_CONFIG: bits [31:16] mark the CUs that the VF does not have.
    [[nodiscard]] std::uint32_t config() const;

    RegisterFile& registers_;
    std::array<std::uint32_t, kEngines> active_{};  // by shader engine: bit per CU that the VF has
};

}  // namespace vgpu::softgpu::regs
