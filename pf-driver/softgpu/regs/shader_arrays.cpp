// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/regs/shader_arrays.h"

#include <bit>

#include "pf-driver/hw/fields.h"

namespace vgpu::softgpu::regs {

ShaderArrays::ShaderArrays(RegisterFile& registers) : registers_(registers) {
    registers_.claim(RegisterIndex{REG_GC_CC_GC_SHADER_ARRAY_CONFIG}, 1,
                     [this](RegisterIndex, std::uint32_t) { return config(); }, {});
}

/// Shows only the number of CUs, because the driver must not learn which CUs of the device it uses.
void ShaderArrays::set_cu_mask(std::uint64_t cu_mask) {
    const auto count = static_cast<unsigned>(std::popcount(cu_mask));
    for (unsigned engine = 0; engine < kEngines; ++engine) {
        const unsigned cus = (count + kEngines - 1 - engine) / kEngines;
        active_[engine] = static_cast<std::uint32_t>((1ull << cus) - 1);
    }
}

std::uint32_t ShaderArrays::config() const {
    const std::uint32_t index = registers_.get(RegisterIndex{REG_GC_GRBM_GFX_INDEX});
    const bool is_broadcast = HW_GET(GRBM_GFX_INDEX, SE_BROADCAST, index) != 0;
    const unsigned engine = is_broadcast ? 0 : HW_GET(GRBM_GFX_INDEX, SE, index) % kEngines;
    return HW_PREP(CC_GC_SHADER_ARRAY_CONFIG, INACTIVE_CUS, ~active_[engine]);
}

}  // namespace vgpu::softgpu::regs
