// SPDX-License-Identifier: MIT
//
// A guest that waits for every packet before it submits the next, beside one that never rests.
#include <gtest/gtest.h>

#include "tests/scenario/gpu/guest.h"
#include "tests/support/deadline.h"

namespace vgpu::test {
namespace {

/// Polls without sleeping: the guest is as quick as a driver that polls its signal.
void await(const Signal& signal) {
    const Deadline deadline(milliseconds(10000));
    while (signal.value() > 0) ASSERT_FALSE(deadline.passed());
}

TEST(Trickle, ManyPacketsShareASliceBesideABusyNeighbour) {
    // longer than a busy host keeps the guest from running
    GpuStack stack({.idle_grace_us = 50'000});
    stack.set_quantum(20'000);
    stack.provision(1);
    stack.provision(2);
    Guest trickle(stack, 1);
    Guest busy(stack, 2);
    wait_progress(start_endless(busy));
    const auto done = trickle.process->create_signal();
    constexpr std::uint64_t kPackets = 400;
    const auto before = stack.pf().vf(1).switches;
    for (std::uint64_t i = 0; i < kPackets; ++i) {
        done.set(1);
        trickle.queue->barrier_and(std::span<const Signal>{}, done);
        await(done);
    }
    const auto switches = stack.pf().vf(1).switches - before;
    EXPECT_GT(switches, 0u);
    EXPECT_LT(switches, kPackets / 4) << "the slice was given up with (nearly) every packet";
}

}  // namespace
}  // namespace vgpu::test
