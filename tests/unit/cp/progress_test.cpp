// SPDX-License-Identifier: MIT
//
// Packets that take several steps: to which packet the progress belongs, and what is repeated.
#include <gtest/gtest.h>

#include <numeric>

#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/tc_op.h"
#include "tests/unit/cp/cp_rig.h"

namespace vgpu::test {
namespace {

/// More values than one step writes.
constexpr std::uint32_t kMany = 200;

class Progress : public testing::Test {
protected:
    void SetUp() override {
        rig.start_kiq();
        rig.registers.claim(
            softgpu::RegisterIndex{REG_GC_CP_MEC_CNTL}, 1, {},
            [this](softgpu::RegisterIndex, std::uint32_t value) { seen.push_back(value); });
    }
    /// A packet that writes all values to one register.
    static Words writes(hw_reg which, const Words& values) {
        const Words body =
            Words{HW_PREP(WRITE_DATA_1, ONE_ADDR, 1), static_cast<std::uint32_t>(which), 0} +
            values;
        return Words{PM4_HEADER_OF(PM4_OP_WRITE_DATA, static_cast<std::uint32_t>(body.size()))} +
               body;
    }
    static Words count_from(std::uint32_t first) {
        Words values(kMany);
        std::iota(values.begin(), values.end(), first);
        return values;
    }

    CpRig rig;
    Words seen;
};

TEST_F(Progress, APacketThatRestartsItsOwnRingIsOverAndTheNextBeginsAtItsStart) {
    rig.start_gfx();
    for (const std::uint32_t times : {1u, kMany}) {
        rig.submit(rig.gfx, write_data(rig.memory.allocate(8), 1) +
                                writes(REG_GC_CP_RB0_WPTR, Words(times, 0)));
        rig.pump();
        rig.gfx.wptr = 0;
        seen.clear();
        rig.submit(rig.gfx, writes(REG_GC_CP_MEC_CNTL, count_from(1)));
        rig.pump();
        EXPECT_EQ(seen, count_from(1)) << times;
        EXPECT_FALSE(rig.cp.has_work());
        rig.write(REG_GC_CP_RB0_WPTR, 0);
        rig.gfx.wptr = 0;
    }
    EXPECT_EQ(rig.cp.counters().bad_packets, 0u);
}

TEST_F(Progress, APacketInAMovedRingBeginsAtItsStart) {
    rig.submit(rig.kiq, writes(REG_GC_CP_MEC_CNTL, count_from(1)));
    (void)rig.cp.step();
    ASSERT_LT(seen.size(), std::size_t{kMany}) << "one step does a part";
    seen.clear();
    const std::uint64_t moved = rig.memory.allocate(rig.kiq.dwords * 4);
    const Words other = writes(REG_GC_CP_MEC_CNTL, count_from(1000));
    for (std::size_t i = 0; i < other.size(); ++i) rig.memory.put(moved + i * 4, other[i]);
    rig.write(REG_GC_CP_HQD_PQ_BASE, lo(moved >> 8));
    rig.write(REG_GC_CP_HQD_PQ_BASE_HI, hi(moved >> 8));
    rig.pump();
    EXPECT_EQ(seen, count_from(1000));
}

TEST_F(Progress, ALoopOfAnAtomicRepeatsTheOperationOncePerPoll) {
    const std::uint64_t cell = rig.memory.allocate(8);
    rig.submit(rig.kiq, pm4(PM4_OP_ATOMIC_MEM, {HW_PREP(ATOMIC_MEM_1, ATOMIC, TC_OP_ADD_32) |
                                                    HW_PREP(ATOMIC_MEM_1, COMMAND, 1),
                                                lo(cell), hi(cell), 2, 0, 6, 0, 0}) +
                            write_data(cell + 4, 1));
    for (std::uint32_t polls = 1; polls <= 3; ++polls) {
        EXPECT_NE(rig.cp.step(), softgpu::StepResult::Progress) << "it holds no worker";
        EXPECT_EQ(rig.memory.get<std::uint32_t>(cell), 2 * polls);
        EXPECT_TRUE(rig.cp.has_work());
        EXPECT_TRUE(rig.cp.needs_polling());
    }
    rig.pump();
    EXPECT_EQ(rig.memory.get<std::uint32_t>(cell), 8u) << "it found 6";
    EXPECT_EQ(rig.memory.get<std::uint32_t>(cell + 4), 1u);
    EXPECT_FALSE(rig.cp.needs_polling());
}

}  // namespace
}  // namespace vgpu::test
