// SPDX-License-Identifier: MIT
//
// Driver load and unload of one and two guests, and the mailbox between guest and PF core.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "pf-driver/hw/mailbox.h"
#include "pf-driver/hw/regs.h"
#include "tests/scenario/gpu/boot_order.h"
#include "tests/scenario/gpu/guest.h"

namespace vgpu::test {
namespace {

TEST(Boot, FollowsTheOrderOfTheStockDriver) {
    GpuStack stack;
    stack.provision(1);
    VfClient vf(stack.vf_socket(1));
    vf.boot();
    const auto& events = vf.device().trace().events();
    EXPECT_EQ(check_order(events, boot_milestones()), "");
    EXPECT_EQ(stack.pf().vf(1).in_full_access, 0u);
}

// The stock driver must follow the milestones that vf_client is tested with. Rings, VBIOS and
// command buffers lie in memory, so a recording of traps shows only the other milestones.
TEST(Boot, StockDriverFollowsTheSameOrderInItsRecording) {
    const auto events = read_recording(VGPU_STOCK_BOOT);
    EXPECT_GT(events.size(), 1000u);
    std::vector<Milestone> visible;
    for (const auto& milestone : boot_milestones())
        if (milestone.kind != TraceKind::VramRead && milestone.kind != TraceKind::PspCommand &&
            milestone.kind != TraceKind::Packet)
            visible.push_back(milestone);
    EXPECT_GT(visible.size(), 25u);
    EXPECT_EQ(check_order(events, visible), "");
}

TEST(Boot, OrderCheckNoticesASwappedAndAMissingStep) {
    const auto& milestones = boot_milestones();
    const std::vector<TraceEvent> detect_only{
        {TraceKind::Read, REG_NBIO_RCC_IOV_FUNC_IDENTIFIER, 1}};
    EXPECT_EQ(check_order(detect_only, milestones), "\"ask for init data\" was not seen");
    const std::vector<TraceEvent> swapped{{TraceKind::MailboxSend, MAILBOX_REQ_GPU_INIT_DATA, 0},
                                          {TraceKind::Read, REG_NBIO_RCC_IOV_FUNC_IDENTIFIER, 1}};
    EXPECT_EQ(check_order(swapped, milestones), "\"ask for init data\" came only before its place");
}

// Clients bring descriptors, and the usual soft limit of 1024 is not much for 16 of them.
TEST(Boot, SoftgpuTakesAllDescriptorsThatItMayHave) {
    rlimit own_limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &own_limit), 0);
    const rlimit few{std::min<rlim_t>(512, own_limit.rlim_max), own_limit.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    GpuStack stack;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &own_limit), 0);
    rlimit softgpu_limit{};
    ASSERT_EQ(::prlimit(stack.softgpu().pid(), RLIMIT_NOFILE, nullptr, &softgpu_limit), 0);
    EXPECT_EQ(softgpu_limit.rlim_cur, own_limit.rlim_max);
}

TEST(Boot, SecondLoadWorksAfterUnload) {
    GpuStack stack;
    stack.provision(1);
    VfClient vf(stack.vf_socket(1));
    vf.boot();
    vf.unload();
    vf.boot();
    auto& process = vf.create_process();
    auto& queue = process.create_queue();
    EXPECT_EQ(run_programs(process, queue, {"array_increment"}), "");
}

TEST(Boot, NextGuestFindsTheVfAsNew) {
    GpuStack stack;
    stack.provision(1);
    {
        Guest first(stack, 1);
        EXPECT_EQ(first.run_all(), "");
    }
    Guest second(stack, 1);
    EXPECT_EQ(second.run_all(), "");
}

TEST(Boot, TwoGuestsBootAtTheSameTime) {
    GpuStack stack;
    stack.provision(1);
    stack.provision(2);
    std::array<std::string, 2> problems;
    const auto boot = [&](std::uint32_t vf) {
        try {
            VfClient(stack.vf_socket(vf)).boot();
        } catch (const VfError& error) {
            problems.at(vf - 1) = error.what();
        }
    };
    std::thread other([&] { boot(2); });
    boot(1);
    other.join();
    EXPECT_EQ(problems[0], "");
    EXPECT_EQ(problems[1], "");
}

TEST(Boot, RunTimeRegistersAreReachedByKiqPackets) {
    GpuStack stack;
    stack.provision(1);
    VfClient vf(stack.vf_socket(1));
    vf.boot();
    vf.kiq_write(REG_GC_SCRATCH_REG0, 0x12345678);
    EXPECT_EQ(vf.kiq_read(REG_GC_SCRATCH_REG0), 0x12345678u);
    // after the release a full-access register ignores MMIO
    const auto before = vf.device().read(REG_GC_CP_MAX_CONTEXT);
    vf.device().write(REG_GC_CP_MAX_CONTEXT, before + 1);
    EXPECT_EQ(vf.device().read(REG_GC_CP_MAX_CONTEXT), before);
    EXPECT_NE(vf.device().try_rlcg_write(REG_GC_RLC_CSIB_LENGTH, 1), 0u);
}

TEST(Mailbox, EveryRequestIsAnsweredWithinHalfTheGuestsLimit) {
    GpuStack stack;
    stack.provision(1);
    VfClient vf(stack.vf_socket(1));
    const std::chrono::milliseconds limit(MAILBOX_GUEST_MSG_LIMIT_MS / 2);
    vf.mailbox().request(MAILBOX_REQ_GPU_INIT_DATA, MAILBOX_VF_REQ_GPU_INIT_DATA_READY);
    EXPECT_LT(vf.mailbox().last_answer(), limit);
    vf.mailbox().request(MAILBOX_REQ_GPU_INIT_ACCESS, MAILBOX_VF_READY_TO_ACCESS_GPU);
    EXPECT_LT(vf.mailbox().last_answer(), limit);
    EXPECT_TRUE(vf.mailbox().send(MAILBOX_REL_GPU_INIT_ACCESS));
    vf.mailbox().request(MAILBOX_REQ_GPU_RESET_ACCESS, MAILBOX_VF_READY_TO_ACCESS_GPU);
    EXPECT_LT(vf.mailbox().last_answer(), limit);
    EXPECT_TRUE(vf.mailbox().send(MAILBOX_REL_GPU_INIT_ACCESS));
    vf.mailbox().request(MAILBOX_REQ_GPU_FINI_ACCESS, MAILBOX_VF_READY_TO_ACCESS_GPU);
    EXPECT_LT(vf.mailbox().last_answer(), limit);
    EXPECT_TRUE(vf.mailbox().send(MAILBOX_REL_GPU_FINI_ACCESS));
    EXPECT_TRUE(vf.mailbox().send(MAILBOX_LOG_VF_ERROR, {1, 2, 3}));
}

TEST(Mailbox, StaysUnansweredWhileThePfCoreIsGone) {
    GpuStack stack;
    stack.provision(1);
    VfClient vf(stack.vf_socket(1));
    stack.kill_pf();
    EXPECT_FALSE(vf.mailbox().send(MAILBOX_REQ_GPU_INIT_DATA));
    EXPECT_FALSE(vf.mailbox().peek(MAILBOX_VF_REQ_GPU_INIT_DATA_READY, milliseconds(1000)));
    stack.start_pf();
    vf.mailbox().request(MAILBOX_REQ_GPU_INIT_DATA, MAILBOX_VF_REQ_GPU_INIT_DATA_READY);
}

TEST(Mailbox, StaysUnansweredWhileThePfCoreIsStopped) {
    GpuStack stack;
    stack.provision(1);
    VfClient vf(stack.vf_socket(1));
    stack.pf_process().signal(SIGSTOP);
    EXPECT_FALSE(vf.mailbox().send(MAILBOX_REQ_GPU_INIT_ACCESS));
    EXPECT_FALSE(vf.mailbox().peek(MAILBOX_VF_READY_TO_ACCESS_GPU, milliseconds(1000)));
    stack.pf_process().signal(SIGCONT);
    vf.boot();
}

TEST(Mailbox, UnknownRequestsAreAcknowledgedAndCounted) {
    GpuStack stack;
    stack.provision(1);
    VfClient vf(stack.vf_socket(1));
    for (const std::uint32_t event : {0u, 99u, 0xffffffffu, 0x80000000u})
        EXPECT_TRUE(vf.mailbox().send(event, {~0u, ~0u, ~0u})) << event;
    EXPECT_EQ(stack.pf().vf(1).mailbox_unknown, 4u);
    vf.boot();
}

}  // namespace
}  // namespace vgpu::test
