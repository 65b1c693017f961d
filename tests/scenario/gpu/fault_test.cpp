// SPDX-License-Identifier: MIT
//
// What a guest sees when its program or its VF fails, and that its neighbours see nothing.
#include <gtest/gtest.h>

#include "tests/scenario/gpu/guest.h"

namespace vgpu::test {
namespace {

TEST(Faults, IllegalInstructionEndsTheWaveAndIsReportedToItsQueue) {
    GpuStack stack;
    stack.provision(1);
    Guest guest(stack, 1);
    const auto kernel = guest.process->load(kernel_file("illegal"), "illegal");
    const auto out = guest.process->allocate(4096);
    const auto done = guest.process->create_signal();
    guest.queue->dispatch(kernel, {.grid = {64, 1, 1}, .group = {64, 1, 1}}, args(out.address),
                          done);
    EXPECT_EQ(guest.process->wait_queue_error(*guest.queue), AQL_QUEUE_ERROR_ILLEGAL_INSTRUCTION);
    EXPECT_EQ(done.value(), 1) << "the kernel must not pretend to have completed";
    EXPECT_EQ(out.load<std::uint32_t>(), 1u);
    EXPECT_EQ(stack.pf().vf(1).illegal_instructions, 1u);
    EXPECT_NE(stack.softgpu().output().find("illegal"), std::string::npos);
    // a new queue of the same VF works
    auto& process = guest.client.create_process();
    EXPECT_EQ(run_programs(process, process.create_queue(), {"array_increment"}), "");
}

TEST(Faults, InjectedHangResetsTheCulpritAloneAndNeighboursFinish) {
    GpuStack stack;
    for (std::uint32_t vf = 1; vf <= 3; ++vf) stack.provision(vf);
    Guest culprit(stack, 1);
    Guest second(stack, 2);
    Guest third(stack, 3);
    wait_progress(start_endless(culprit));
    auto events = stack.pf().events();
    Program program(*second.process, "long_running", Load::Heavy);
    const auto done = second.process->create_signal();
    program.start(*second.queue, done);
    stack.inject(1, "save", "lost");
    events.wait([](const auto& event) { return event.type == VGPU_PF_EVENT_HANG && event.vf == 1; },
                milliseconds(10000));
    second.process->wait(done);
    EXPECT_TRUE(program.is_exact()) << program.difference();
    EXPECT_EQ(third.run_all(), "");
    wait_for("VF1 to be reset", milliseconds(10000), [&] { return stack.pf().vf(1).flrs >= 1; });
    EXPECT_EQ(stack.pf().vf(1).hangs, 1u);
    EXPECT_EQ(stack.pf().vf(2).flrs + stack.pf().vf(3).flrs, 0u);
    EXPECT_EQ(stack.pf().info().device_resets, 0u);
    EXPECT_NE(stack.softgpu().output().find("injected"), std::string::npos);
}

TEST(Faults, VfWorksAgainAfterAHang) {
    GpuStack stack;
    stack.provision(1);
    stack.provision(2);
    {
        Guest culprit(stack, 1);
        Guest neighbour(stack, 2);
        wait_progress(start_endless(culprit));
        wait_progress(start_endless(neighbour));
        stack.inject(1, "save", "lost");
        wait_for("VF1 to be reset", milliseconds(10000),
                 [&] { return stack.pf().vf(1).flrs >= 1; });
    }
    Guest again(stack, 1);
    EXPECT_EQ(again.run_all(), "");
}

TEST(Faults, ResetByTheOperatorLetsTheNeighboursRun) {
    GpuStack stack;
    stack.provision(1);
    stack.provision(2);
    Guest one(stack, 1);
    Guest two(stack, 2);
    wait_progress(start_endless(one));
    Program program(*two.process, "long_running", Load::Heavy);
    const auto done = two.process->create_signal();
    program.start(*two.queue, done);
    stack.pf().control(1, VGPU_PF_RESET);
    two.process->wait(done);
    EXPECT_TRUE(program.is_exact()) << program.difference();
    EXPECT_EQ(stack.pf().vf(2).flrs, 0u);
}

TEST(Faults, AnFlrThatNeverEndsResetsTheWholeDeviceAndItsVfsWorkAgain) {
    GpuStack stack;
    stack.provision(1);
    stack.provision(2);
    auto events = stack.pf().events();
    {
        Guest one(stack, 1);
        Guest two(stack, 2);
        wait_progress(start_endless(one));
        wait_progress(start_endless(two));
        stack.inject(1, "flr", "lost");
        stack.pf().control(1, VGPU_PF_RESET);
        events.wait([](const auto& event) { return event.type == VGPU_PF_EVENT_DEVICE_BACK; },
                    milliseconds(10000));
        EXPECT_EQ(stack.pf().info().device_resets, 1u);
    }
    for (const std::uint32_t vf : {1u, 2u}) {
        Guest again(stack, vf);
        EXPECT_EQ(again.run_all(), "");
    }
    EXPECT_EQ(stack.pf().info().device_resets, 1u);
}

TEST(Faults, InstructionsBeforeAResetAreCountedOnceAndLikeInTheRunLog) {
    GpuStack stack;
    stack.provision(1);
    Guest one(stack, 1);
    wait_progress(start_endless(one));
    stack.pf().control(1, VGPU_PF_RESET);
    wait_for("VF1 to be reset", milliseconds(10000), [&] { return stack.pf().vf(1).flrs >= 1; });
    const auto logged = stack.pf().vf(1).wave_instructions;
    const auto counted = stack.control({{"stats", nlohmann::json::object()}})
                             .at("vfs")
                             .at(0)
                             .at("wave_instructions")
                             .get<std::uint64_t>();
    EXPECT_GT(logged, 0u);
    EXPECT_EQ(counted, logged);
}

TEST(Faults, ResetByTheGuestsOwnVmmIsItsOwnAffair) {
    GpuStack stack;
    stack.provision(1);
    stack.provision(2);
    Guest one(stack, 1);
    Guest two(stack, 2);
    wait_progress(start_endless(one));
    one.client.device().reset();
    EXPECT_EQ(two.run_all(), "");
    EXPECT_EQ(stack.pf().vf(2).flrs, 0u);
    // the same guest may start over
    one.client.forget();
    one.client.boot();
    auto& process = one.client.create_process();
    EXPECT_EQ(run_programs(process, process.create_queue(), {"array_increment"}), "");
}

TEST(Faults, PausedVfGetsNoServiceAndResumes) {
    GpuStack stack;
    stack.provision(1);
    stack.provision(2);
    Guest one(stack, 1);
    Guest two(stack, 2);
    const auto progress = start_endless(one);
    wait_progress(progress);
    stack.pf().control(1, VGPU_PF_PAUSE);
    stack.pf().wait_state(1, VGPU_PF_VF_PAUSED);
    const auto frozen = progress.load<std::uint32_t>();
    EXPECT_EQ(two.run_all(), "");
    EXPECT_EQ(progress.load<std::uint32_t>(), frozen);
    stack.pf().control(1, VGPU_PF_RESUME);
    wait_progress(progress);
}

}  // namespace
}  // namespace vgpu::test
