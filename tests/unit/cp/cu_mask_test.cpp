// SPDX-License-Identifier: MIT
//
// Which compute units the work-groups of a queue go to, as their waves read it in HW_ID.
#include <gtest/gtest.h>

#include <set>

#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/mqd.h"
#include "tests/unit/cp/cp_rig.h"

namespace vgpu::test {
namespace {

constexpr std::array kMasks = {MQD_STATIC_THREAD_MGMT_SE0, MQD_STATIC_THREAD_MGMT_SE1,
                               MQD_STATIC_THREAD_MGMT_SE2, MQD_STATIC_THREAD_MGMT_SE3};
using CuSet = std::set<std::pair<unsigned, unsigned>>;  ///< engine, CU of its array

/// 8 compute units: CU 0 and 1 of each of the 4 engines.
class CuMask : public testing::Test {
protected:
    CuMask() : rig({.compute_units = 8}) {
        rig.start_kiq();
        rig.start_hiq();
        queue = rig.make_aql_queue();
    }
    void set_masks(std::array<std::uint32_t, 4> masks) {
        for (unsigned i = 0; i < masks.size(); ++i) rig.set_mqd(queue, kMasks[i], masks[i]);
    }
    std::vector<std::uint32_t> run() {
        constexpr std::uint32_t kGroups = 64;
        const KernelCode code = rig.load_kernel("where");
        const std::uint64_t out = rig.memory.allocate(kGroups * 4);
        AqlKernel kernel;
        kernel.object = code.descriptor;
        kernel.arguments = rig.arguments(out);
        kernel.grid = {kGroups * 64, 1, 1};
        kernel.signal = rig.make_signal(1);
        rig.dispatch(queue, kernel);
        rig.map(queue);
        rig.pump();
        EXPECT_EQ(rig.signal_value(kernel.signal), 0);
        return rig.memory.download<std::uint32_t>(out, kGroups);
    }
    CuSet used() {
        CuSet cus;
        for (const std::uint32_t hw_id : run())
            cus.emplace(HW_GET(SQ_WAVE_HW_ID, SE_ID, hw_id), HW_GET(SQ_WAVE_HW_ID, CU_ID, hw_id));
        return cus;
    }
    CpRig rig;
    Ring queue;
};

TEST_F(CuMask, FullMaskUsesEveryUnit) {
    set_masks({~0u, ~0u, ~0u, ~0u});
    EXPECT_EQ(used(), (CuSet{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}, {3, 0}, {3, 1}}));
}

TEST_F(CuMask, WorkGroupsStayOnTheUnitsOfTheirQueue) {
    set_masks({0b10, 0, 0b01, 0});
    EXPECT_EQ(used(), (CuSet{{0, 1}, {2, 0}}));
}

TEST_F(CuMask, QueuesOfOneProcessHaveTheirOwn) {
    set_masks({1, 0, 0, 0});
    Ring other = rig.make_aql_queue();
    rig.set_mqd(other, MQD_STATIC_THREAD_MGMT_SE1, 1);
    EXPECT_EQ(used(), (CuSet{{0, 0}}));
    std::swap(queue, other);
    EXPECT_EQ(used(), (CuSet{{1, 0}}));
}

TEST_F(CuMask, UnitsThatTheVfLostAreNotUsed) {
    set_masks({~0u, ~0u, ~0u, ~0u});
    rig.cp.set_compute_units(0b1110'0000);
    // the three that are left are what the driver is told: CU 0 of engines 0, 1, 2
    EXPECT_EQ(used(), (CuSet{{0, 0}, {1, 0}, {2, 0}}));
}

TEST_F(CuMask, MaskWithoutAUnitOfTheVfIsNoMask) {
    set_masks({0x8000, 0, 0, 0});
    EXPECT_EQ(used().size(), 8u);
}

TEST_F(CuMask, HwIdNamesVmidAndQueue) {
    const std::uint32_t hw_id = run()[0];
    EXPECT_GE(HW_GET(SQ_WAVE_HW_ID, VM_ID, hw_id), std::uint32_t{CP_FIRST_KFD_VMID});
    EXPECT_EQ(HW_GET(SQ_WAVE_HW_ID, ME_ID, hw_id), 1u) << "MEC1";
}

}  // namespace
}  // namespace vgpu::test
