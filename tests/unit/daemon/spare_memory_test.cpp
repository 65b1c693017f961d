// SPDX-License-Identifier: MIT
#include "daemon/adapters/spare_memory.h"
#include "tests/unit/daemon/fake_pf.h"

#include <gtest/gtest.h>

namespace vgpu::daemon::adapters {
namespace {

using testing::VirtualClock;

TEST(SpareMemory, IsLookedForOnceAfterEachBurstOfWork) {
    VirtualClock clock;
    SpareMemory spare(clock);
    EXPECT_FALSE(spare.next_step()) << "an idle daemon is not woken";
    spare.note_work();
    clock.advance(SpareMemory::kQuiet / 2);
    spare.note_work();
    clock.advance(SpareMemory::kQuiet / 2);
    EXPECT_FALSE(spare.step()) << "not while requests come";
    ASSERT_TRUE(spare.next_step());
    clock.advance(SpareMemory::kQuiet / 2);
    EXPECT_EQ(*spare.next_step(), clock.now());
    EXPECT_TRUE(spare.step());
    EXPECT_FALSE(spare.next_step());
    EXPECT_FALSE(spare.step());
}

}  // namespace
}  // namespace vgpu::daemon::adapters
