// SPDX-License-Identifier: MIT
#include "daemon/adapters/heap_trimmer.h"
#include "tests/unit/daemon/fake_pf.h"

#include <gtest/gtest.h>

namespace vgpu::daemon::adapters {
namespace {

using testing::VirtualClock;

TEST(HeapTrimmer, WorksOnceAfterEachBurstOfRequests) {
    VirtualClock clock;
    HeapTrimmer trimmer(clock);
    EXPECT_FALSE(trimmer.next_step()) << "an idle daemon is not woken";
    trimmer.record_work();
    clock.advance(HeapTrimmer::kQuiet / 2);
    trimmer.record_work();
    clock.advance(HeapTrimmer::kQuiet / 2);
    trimmer.step();
    ASSERT_TRUE(trimmer.next_step()) << "not while requests come";
    clock.advance(HeapTrimmer::kQuiet / 2);
    EXPECT_EQ(*trimmer.next_step(), clock.now());
    trimmer.step();
    EXPECT_FALSE(trimmer.next_step());
}

}  // namespace
}  // namespace vgpu::daemon::adapters
