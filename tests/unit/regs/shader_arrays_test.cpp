// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/regs/shader_arrays.h"

#include <gtest/gtest.h>

#include <bit>

#include "pf-driver/hw/fields.h"

namespace vgpu::softgpu::regs {
namespace {

/// CUs the driver counts: it selects each engine and looks at the inactive mask.
unsigned counted(RegisterFile& file) {
    unsigned cus = 0;
    for (std::uint32_t engine = 0; engine < ShaderArrays::kEngines; ++engine) {
        file.write(RegisterIndex{REG_GC_GRBM_GFX_INDEX},
                   HW_PREP(GRBM_GFX_INDEX, SE, engine) | HW_PREP(GRBM_GFX_INDEX, SH_BROADCAST, 1));
        const std::uint32_t config =
            file.mmio_read(RegisterIndex{REG_GC_CC_GC_SHADER_ARRAY_CONFIG});
        const std::uint32_t inactive = HW_GET(CC_GC_SHADER_ARRAY_CONFIG, INACTIVE_CUS, config);
        cus += ShaderArrays::kCusPerArray - static_cast<unsigned>(std::popcount(inactive));
    }
    return cus;
}

TEST(ShaderArrays, TheDriverCountsExactlyTheCusOfTheMask) {
    RegisterFile file(Role::Vf);
    ShaderArrays arrays(file);
    for (unsigned count = 0; count <= 64; ++count) {
        arrays.set_cu_mask(count == 64 ? ~0ull : (1ull << count) - 1);
        EXPECT_EQ(counted(file), count);
    }
}

TEST(ShaderArrays, ScatteredMasksCountTheSame) {
    RegisterFile file(Role::Vf);
    ShaderArrays arrays(file);
    arrays.set_cu_mask(0x8001'0000'0000'8001ull);
    EXPECT_EQ(counted(file), 4u);
}

TEST(ShaderArrays, EightCusAreTwoPerEngine) {
    RegisterFile file(Role::Vf);
    ShaderArrays arrays(file);
    arrays.set_cu_mask(0xff);
    for (std::uint32_t engine = 0; engine < ShaderArrays::kEngines; ++engine) {
        file.write(RegisterIndex{REG_GC_GRBM_GFX_INDEX}, HW_PREP(GRBM_GFX_INDEX, SE, engine));
        EXPECT_EQ(file.read(RegisterIndex{REG_GC_CC_GC_SHADER_ARRAY_CONFIG}), 0xfffc0000u);
    }
}

TEST(ShaderArrays, BroadcastReadsTheFirstEngine) {
    RegisterFile file(Role::Vf);
    ShaderArrays arrays(file);
    arrays.set_cu_mask(1);
    file.write(RegisterIndex{REG_GC_GRBM_GFX_INDEX},
               HW_PREP(GRBM_GFX_INDEX, SE_BROADCAST, 1) | HW_PREP(GRBM_GFX_INDEX, SE, 3));
    EXPECT_EQ(file.read(RegisterIndex{REG_GC_CC_GC_SHADER_ARRAY_CONFIG}), 0xfffe0000u);
}

}  // namespace
}  // namespace vgpu::softgpu::regs
