// SPDX-License-Identifier: MIT
//
// World switches under running kernels: by pointer and by true copy, which poisons what it saved.
#include <gtest/gtest.h>

#include <chrono>

#include "tests/scenario/gpu/guest.h"

namespace vgpu::test {
namespace {

class WorldSwitch : public ::testing::TestWithParam<SwitchMode> {
protected:
    /// Short against a kernel, long enough that copies of the state leave time for it.
    static std::uint32_t quantum_us() { return GetParam() == SwitchMode::Pointer ? 200 : 1000; }
};

TEST_P(WorldSwitch, KernelSpanningFiftyQuantaIsBitExact) {
    GpuStack stack({.mode = GetParam()});
    stack.set_quantum(500);
    stack.provision(1);
    stack.provision(2);
    Guest one(stack, 1);
    Guest two(stack, 2);
    Program first(*one.process, "long_running", Load::Heavy);
    Program second(*two.process, "long_running", Load::Heavy);
    const auto first_done = one.process->create_signal();
    const auto second_done = two.process->create_signal();
    const auto before = stack.pf().vf(1).switches;
    int rounds = 0;
    // a fast machine repeats until the kernel has been interrupted often enough
    do {
        first.start(*one.queue, first_done);
        second.start(*two.queue, second_done);
        // with true copy and such short quanta most of the time goes into copying
        one.process->wait(first_done, milliseconds(60000));
        two.process->wait(second_done, milliseconds(60000));
        ASSERT_TRUE(first.is_exact()) << first.difference();
        ASSERT_TRUE(second.is_exact()) << second.difference();
    } while (stack.pf().vf(1).switches - before < 50 && ++rounds < 20);
    EXPECT_GE(stack.pf().vf(1).switches - before, 50u);
}

TEST_P(WorldSwitch, BarriersLdsAndScratchSurviveIt) {
    GpuStack stack({.mode = GetParam()});
    stack.set_quantum(quantum_us());
    stack.provision(1);
    stack.provision(2);
    Guest one(stack, 1);
    Guest two(stack, 2);
    const auto busy = start_endless(two);
    wait_progress(busy);
    const auto done = one.process->create_signal();
    for (const auto* name : {"matmul", "lds_neighbours", "scratch", "sha256"}) {
        Program program(*one.process, name, Load::Heavy, Optimised::O0);
        program.start(*one.queue, done);
        // half of an engine under sanitizers, which other tests may share
        one.process->wait(done, std::chrono::minutes(1));
        EXPECT_TRUE(program.is_exact()) << program.difference();
    }
}

TEST_P(WorldSwitch, CopiesInFlightSurviveIt) {
    GpuStack stack({.mode = GetParam()});
    stack.set_quantum(quantum_us());
    stack.provision(1);
    stack.provision(2);
    Guest one(stack, 1);
    Guest two(stack, 2);
    const auto busy = start_endless(two);
    wait_progress(busy);
    constexpr std::uint64_t kBytes = 8u << 20;
    const auto from = one.process->allocate(kBytes);
    const auto to = one.process->allocate(kBytes, Place::Vram);
    for (std::uint64_t i = 0; i < kBytes; i += 4) from.store(i, static_cast<std::uint32_t>(i * 7));
    const auto done = one.process->create_signal();
    one.process->create_sdma_queue(0).copy(to.address, from.address, kBytes, done);
    one.process->wait(done);
    EXPECT_TRUE(std::ranges::equal(from.cpu, to.cpu));
}

INSTANTIATE_TEST_SUITE_P(Modes, WorldSwitch,
                         ::testing::Values(SwitchMode::Pointer, SwitchMode::TrueCopy),
                         [](const auto& mode) {
                             return mode.param == SwitchMode::Pointer ? "Pointer" : "TrueCopy";
                         });

TEST(RunTable, EndlessKernelKeepsItsShareAndIsNotReset) {
    GpuStack stack;
    stack.provision(1);
    stack.provision(2);
    Guest one(stack, 1);
    Guest two(stack, 2);
    const auto first = start_endless(one);
    const auto second = start_endless(two);
    wait_progress(first);
    wait_progress(second);
    const auto start_one = stack.pf().vf(1).service_ns;
    const auto start_two = stack.pf().vf(2).service_ns;
    wait_for("200 ms of service each", milliseconds(20000), [&] {
        return stack.pf().vf(1).service_ns - start_one > 200'000'000 &&
               stack.pf().vf(2).service_ns - start_two > 200'000'000;
    });
    const auto one_ns = static_cast<double>(stack.pf().vf(1).service_ns - start_one);
    const auto two_ns = static_cast<double>(stack.pf().vf(2).service_ns - start_two);
    EXPECT_NEAR(one_ns / (one_ns + two_ns), 0.5, 0.03);
    EXPECT_EQ(stack.pf().vf(1).flrs, 0u);
    EXPECT_EQ(stack.pf().vf(2).flrs, 0u);
    EXPECT_EQ(stack.pf().vf(1).hangs + stack.pf().vf(2).hangs, 0u);
}

TEST(RunTable, SleepingGuestLosesNoWakeUp) {
    GpuStack stack;
    stack.provision(1);
    stack.provision(2);
    Guest sleeper(stack, 1);
    Guest busy(stack, 2);
    wait_progress(start_endless(busy));
    // a barrier that only memory written by the guest can release, while the VF is off the engine
    const auto gate = sleeper.process->create_signal();
    const auto done = sleeper.process->create_signal();
    for (int i = 0; i < 20; ++i) {
        gate.set(1);
        done.set(1);
        sleeper.queue->barrier_and(std::array{gate}, done);
        gate.set(0);
        sleeper.process->wait(done, milliseconds(5000));
    }
}

}  // namespace
}  // namespace vgpu::test
