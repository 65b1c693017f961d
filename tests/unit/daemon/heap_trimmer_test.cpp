// SPDX-License-Identifier: MIT
#include "daemon/adapters/heap_trimmer.h"
#include "tests/unit/daemon/fake_pf.h"

#include <gtest/gtest.h>

namespace vgpu::daemon::adapters {
namespace {

using testing::VirtualClock;

TEST(HeapTrimmer, IsLookedForOnceAfterEachBurstOfWork) {
    VirtualClock clock;
    HeapTrimmer spare(clock);
    EXPECT_FALSE(spare.next_step()) << "an idle daemon is not woken";
    spare.record_work();
    clock.advance(HeapTrimmer::kQuiet / 2);
    spare.record_work();
    clock.advance(HeapTrimmer::kQuiet / 2);
    EXPECT_FALSE(spare.step()) << "not while requests come";
    ASSERT_TRUE(spare.next_step());
    clock.advance(HeapTrimmer::kQuiet / 2);
    EXPECT_EQ(*spare.next_step(), clock.now());
    EXPECT_TRUE(spare.step());
    EXPECT_FALSE(spare.next_step());
    EXPECT_FALSE(spare.step());
}

}  // namespace
}  // namespace vgpu::daemon::adapters
