// SPDX-License-Identifier: MIT
//
// World switches that go wrong, lost interrupts, and a lost device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pf-driver/hw/regs.h"
#include "tests/unit/core/rig.h"

namespace vgpu::test {
namespace {

struct Case {
    const char* name;
    gpuiov_command step;
    FaultKind kind;
    bool is_stepwise;
    vgpu_pf_reason reason;
    std::uint32_t guilty;
};

void PrintTo(const Case& c, std::ostream* out) {
    *out << c.name;
}

class FailingSwitch : public testing::TestWithParam<Case> {};

TEST_P(FailingSwitch, ResetsTheGuiltyVfAloneAndTheNeighboursGoOn) {
    const Case& c = GetParam();
    Rig rig({}, [&](vgpu_pf_params& params) { params.is_stepwise = c.is_stepwise; });
    rig.make_busy(1);
    rig.make_busy(2);
    rig.make_busy(3);
    rig.gpu.run_for(50 * kMs);
    rig.gpu.faults.push_back({c.step, c.guilty, c.kind});
    const std::uint64_t before = rig.gpu.now();
    while (rig.vf(c.guilty).reset.hang_count == 0 && rig.gpu.now() < before + 2 * kSecond)
        rig.gpu.run_for(kMs);
    ASSERT_EQ(rig.get_vf(c.guilty).hangs, 1u);
    EXPECT_EQ(rig.events(VGPU_PF_EVENT_HANG, c.guilty)[0].arg, c.reason);
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.vf(c.guilty).state, VGPU_PF_VF_PROVISIONED);
    EXPECT_EQ(rig.gpu.vf(c.guilty).generation, 1u) << "one FLR";
    EXPECT_EQ(rig.gpu.device_resets, 0u);
    std::uint64_t service[4];
    for (std::uint32_t vf = 1; vf <= 3; ++vf) service[vf] = rig.get_vf(vf).service_ns;
    rig.gpu.run_for(kSecond);
    for (std::uint32_t vf = 1; vf <= 3; ++vf) {
        const auto got = static_cast<double>(rig.get_vf(vf).service_ns - service[vf]);
        EXPECT_NEAR(got, vf == c.guilty ? 0 : 0.5e9, 0.02e9) << vf;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Every, FailingSwitch,
    testing::Values(
        Case{"IdleLost", GPUIOV_CMD_IDLE, FaultKind::Lost, false, VGPU_PF_REASON_IDLE_TIMEOUT, 2},
        Case{"SaveLost", GPUIOV_CMD_SAVE, FaultKind::Lost, false, VGPU_PF_REASON_SAVE_TIMEOUT, 2},
        Case{"LoadLost", GPUIOV_CMD_LOAD, FaultKind::Lost, false, VGPU_PF_REASON_LOAD_TIMEOUT, 2},
        Case{"RunLost", GPUIOV_CMD_RUN, FaultKind::Lost, false, VGPU_PF_REASON_RUN_TIMEOUT, 2},
        Case{"IdleAborted", GPUIOV_CMD_IDLE, FaultKind::Aborted, false, VGPU_PF_REASON_BAD_STATUS,
             2},
        Case{"SaveAborted", GPUIOV_CMD_SAVE, FaultKind::Aborted, false, VGPU_PF_REASON_BAD_STATUS,
             2},
        Case{"LoadAborted", GPUIOV_CMD_LOAD, FaultKind::Aborted, false, VGPU_PF_REASON_BAD_STATUS,
             2},
        Case{"RunAborted", GPUIOV_CMD_RUN, FaultKind::Aborted, false, VGPU_PF_REASON_BAD_STATUS, 2},
        Case{"StepwiseIdleLost", GPUIOV_CMD_IDLE, FaultKind::Lost, true,
             VGPU_PF_REASON_IDLE_TIMEOUT, 2},
        Case{"StepwiseSaveLost", GPUIOV_CMD_SAVE, FaultKind::Lost, true,
             VGPU_PF_REASON_SAVE_TIMEOUT, 2},
        Case{"StepwiseLoadLost", GPUIOV_CMD_LOAD, FaultKind::Lost, true,
             VGPU_PF_REASON_LOAD_TIMEOUT, 2},
        Case{"StepwiseRunLost", GPUIOV_CMD_RUN, FaultKind::Lost, true, VGPU_PF_REASON_RUN_TIMEOUT,
             2}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(WorldSwitch, AHangCostsTheNeighboursNoMoreThanThePreemptionTimeout) {
    Rig rig;
    vgpu_pf_provision request{};
    request.vf = 1;
    request.vram_bytes = 16u << 20;
    request.preempt_timeout_us = 20000;
    ASSERT_EQ(rig.request(VGPU_PF_OP_PROVISION, request), 0);
    rig.load_driver(1);
    rig.gpu.give_work(1, kEndless);
    rig.make_busy(2);
    rig.gpu.run_for(50 * kMs);
    std::uint64_t last = 0, gap = 0;
    rig.gpu.on_run = [&](const vgpu_hw_run_log_entry& entry) {
        if (entry.vf != 2) return;
        if (last != 0) gap = std::max(gap, entry.run_start_ns - last);
        last = entry.run_end_ns;
    };
    rig.gpu.faults.push_back({GPUIOV_CMD_IDLE, 1, FaultKind::Lost});
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.get_vf(1).hangs, 1u);
    // its own slice, the time-out, FLR and polls
    EXPECT_LE(gap, 6 * kMs + 20 * kMs + 12 * kMs);
}

TEST(WorldSwitch, ALateCommandIsNotAHang) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    rig.gpu.run_for(50 * kMs);
    rig.gpu.faults.push_back({GPUIOV_CMD_IDLE, 1, FaultKind::Late, 80 * kMs});
    rig.gpu.faults.push_back({GPUIOV_CMD_LOAD, 2, FaultKind::Late, 400 * kMs});
    rig.gpu.run_for(2 * kSecond);
    EXPECT_TRUE(rig.gpu.faults.empty());
    EXPECT_EQ(rig.get_vf(1).hangs, 0u);
    EXPECT_EQ(rig.get_vf(2).hangs, 0u);
    EXPECT_GE(rig.get_info().switch_max_ns, 400 * kMs);
}

TEST(WorldSwitch, TheGuestOfAHungVfIsNotifiedAndCanRecover) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    rig.gpu.run_for(50 * kMs);
    rig.gpu.vf(1).received.clear();
    rig.gpu.faults.push_back({GPUIOV_CMD_IDLE, 1, FaultKind::Lost});
    rig.gpu.run_for(200 * kMs);
    EXPECT_THAT(rig.gpu.vf(1).received, testing::ElementsAre(MAILBOX_VF_FLR_NOTIFICATION));
    rig.gpu.guest_sends(1, MAILBOX_READY_TO_RESET);
    rig.gpu.run_for(10 * kMs);
    EXPECT_EQ(rig.gpu.vf(1).received.back(), MAILBOX_VF_FLR_NOTIFICATION_CMPL);
    rig.load_driver(1);
    rig.gpu.give_work(1, kEndless);
    const std::uint64_t before = rig.get_vf(1).service_ns;
    rig.gpu.run_for(kSecond);
    EXPECT_NEAR(static_cast<double>(rig.get_vf(1).service_ns - before), 0.5e9, 0.02e9);
}

TEST(WorldSwitch, AHungVfCanBePausedOrReleasedInTheMeantime) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    rig.gpu.run_for(50 * kMs);
    while (rig.gpu.loaded() != 1) rig.gpu.run_for(100 * kUs);
    rig.gpu.faults.push_back({GPUIOV_CMD_IDLE, 1, FaultKind::Lost});
    vgpu_pf_vf_ref ref{sizeof(ref), 1, 0, 0};
    EXPECT_EQ(rig.request(VGPU_PF_OP_RELEASE, ref), 0);
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_SCRUBBING);
    EXPECT_EQ(rig.durable(1), 0);
    EXPECT_EQ(rig.gpu.loaded(), 2u);
}

TEST(WorldSwitch, FlrOfTheRunningVfByItsGuestLeavesTheOthersRunning) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    rig.gpu.attach_client(1, true);
    rig.gpu.run_for(50 * kMs);
    while (rig.gpu.loaded() != 1) rig.gpu.run_for(100 * kUs);
    rig.gpu.guest_resets_function(1);
    const std::uint64_t before = rig.get_vf(2).service_ns;
    rig.gpu.run_for(100 * kMs);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PROVISIONED);
    EXPECT_FALSE(rig.gpu.vf(1).flr_pending);
    rig.gpu.run_for(kSecond);
    EXPECT_GT(rig.get_vf(2).service_ns - before, 900 * kMs);
    EXPECT_EQ(rig.get_vf(1).hangs, 0u);
}

TEST(WorldSwitch, LostInterruptsSlowItDownButStopNothing) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    rig.gpu.run_for(50 * kMs);
    rig.gpu.lose_interrupts = true;
    std::uint64_t service[3] = {0, rig.get_vf(1).service_ns, rig.get_vf(2).service_ns};
    rig.gpu.run_for(5 * kSecond);
    for (std::uint32_t vf = 1; vf <= 2; ++vf)
        EXPECT_GT(rig.get_vf(vf).service_ns - service[vf], 400 * kMs) << vf;
    rig.gpu.vf(1).work_ns = rig.gpu.vf(2).work_ns = kMs;
    rig.gpu.run_for(5 * kSecond);
    rig.gpu.give_work(1, kEndless);
    rig.gpu.run_for(3 * kSecond);
    EXPECT_EQ(rig.gpu.loaded(), 1u) << "a wake that got lost is found";
}

TEST(WorldSwitch, StepwiseAndOneShotGiveTheSameService) {
    std::uint64_t service[2];
    for (const bool is_stepwise : {false, true}) {
        Rig rig({}, [&](vgpu_pf_params& params) { params.is_stepwise = is_stepwise; });
        rig.make_busy(1);
        rig.make_busy(2);
        rig.gpu.run_for(kSecond);
        service[is_stepwise] = rig.get_vf(1).service_ns;
    }
    EXPECT_NEAR(static_cast<double>(service[0]), static_cast<double>(service[1]), 20e6);
}

// --- device lost and back

TEST(DeviceLoss, StopsVfsAndProgramsThemAnewWhenAFreshDeviceComesBack) {
    Rig rig;
    rig.make_busy(1);
    rig.provision(2);
    rig.control(2, VGPU_PF_STOP);
    rig.gpu.run_for(50 * kMs);
    ASSERT_EQ(rig.set_table({{1, 777}}), 0);
    rig.gpu.is_gone = true;
    vgpu_pf_surprise_remove(rig.pf.get());
    EXPECT_EQ(rig.get_info().device_lost, 1u);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_STOPPED);
    EXPECT_EQ(rig.vf(1).last_error, VGPU_PF_REASON_DEVICE_LOST);
    EXPECT_EQ(rig.provision(3), -ENODEV);
    rig.gpu.is_gone = false;
    rig.gpu.power_cycle();
    ASSERT_EQ(vgpu_pf_attach(rig.pf.get()), 0);
    rig.gpu.run_for(kMs);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PROVISIONED);
    EXPECT_EQ(rig.vf(2).state, VGPU_PF_VF_STOPPED) << "an operator's stop stays";
    EXPECT_EQ(rig.gpu.bank(1, REG_VGPU_VF0_FB_SIZE_MB), 32u);
    EXPECT_EQ(rig.events(VGPU_PF_EVENT_DEVICE_LOST).size(), 1u);
    EXPECT_EQ(rig.events(VGPU_PF_EVENT_DEVICE_BACK).size(), 1u);
    EXPECT_EQ(rig.get_info().table_generation, 1u);
    rig.load_driver(1);
    rig.gpu.give_work(1, kEndless);
    rig.gpu.run_for(kMs);
    EXPECT_EQ(rig.gpu.loaded(), 1u);
}

TEST(DeviceLoss, ADeviceThatWentOnMeanwhileIsAdopted) {
    Rig rig;
    rig.make_busy(1);
    rig.gpu.run_for(50 * kMs);
    rig.gpu.is_gone = true;
    vgpu_pf_surprise_remove(rig.pf.get());
    rig.gpu.run_for(50 * kMs);
    rig.gpu.is_gone = false;
    ASSERT_EQ(vgpu_pf_attach(rig.pf.get()), 0);
    rig.gpu.run_for(10 * kMs);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_RUNNING);
    EXPECT_EQ(rig.gpu.vf(1).generation, 0u) << "nothing was reset";
}

/// As a platform does that serves nothing while the device is reset by others.
TEST(DeviceLoss, ATimerThatPassesUnservedMeanwhileIsNotTheLast) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    while (rig.vf(1).guard.level == 0) {
        rig.gpu.guest_sends(1, 999);
        rig.gpu.run_for(10 * kMs);
    }
    ASSERT_NE(rig.vf(1).timers_ns[VGPU_VF_TIMER_GUARD], 0u);
    vgpu_pf_suspend(rig.pf.get());
    rig.gpu.bind(nullptr);
    rig.gpu.run_for(2 * kSecond);
    rig.gpu.bind(rig.pf.get());
    rig.gpu.power_cycle();
    ASSERT_EQ(vgpu_pf_attach(rig.pf.get()), 0);
    for (const std::uint32_t vf : {1u, 2u}) {
        rig.load_driver(vf);
        rig.gpu.give_work(vf, kEndless);
    }
    const std::uint64_t before[] = {rig.get_vf(1).switches, rig.get_vf(2).switches};
    rig.gpu.run_for(kSecond);
    EXPECT_GT(rig.get_vf(1).switches, before[0] + 10);
    EXPECT_GT(rig.get_vf(2).switches, before[1] + 10);
    rig.gpu.run_for(61 * kSecond);
    EXPECT_EQ(rig.get_vf(1).guard_level, 0u) << "its windows are looked at again";
}

TEST(DeviceLoss, ADeviceThatIsParkedIsLostToItsVfsButNotInTheLog) {
    Rig rig;
    rig.make_busy(1);
    rig.gpu.log_lines.clear();
    vgpu_pf_suspend(rig.pf.get());
    EXPECT_EQ(rig.get_info().device_lost, 1u);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_STOPPED);
    EXPECT_EQ(rig.events(VGPU_PF_EVENT_DEVICE_LOST).size(), 1u);
    EXPECT_THAT(rig.gpu.log_lines, testing::Not(testing::Contains("device lost")));
    EXPECT_THAT(rig.gpu.log_lines, testing::Contains(testing::StartsWith("device suspended")));
}

// --- a core that ends in order

TEST(DeviceLoss, AnotherDeviceIsRefused) {
    Rig rig;
    rig.gpu.is_gone = true;
    vgpu_pf_surprise_remove(rig.pf.get());
    ModelGpu other({.total_vfs = 8});
    rig.gpu.bind(nullptr);
    rig.pf->os = other.os();
    EXPECT_EQ(vgpu_pf_attach(rig.pf.get()), -ENODEV);
    EXPECT_THAT(rig.message(), testing::HasSubstr("a different device"));
    rig.pf->os = rig.gpu.os();
}

TEST(DeviceLoss, EveryAccessMayBeTheOneThatFails) {
    for (std::uint64_t point = 0; point < 400; point += 3) {
        Rig rig;
        rig.make_busy(1);
        rig.make_busy(2);
        rig.gpu.fail_after = point;
        rig.gpu.run_for(300 * kMs);
        rig.gpu.fail_after.reset();
        rig.gpu.run_for(2 * kSecond);
        for (std::uint32_t vf = 1; vf <= 2; ++vf)
            EXPECT_NE(rig.vf(vf).state, VGPU_PF_VF_MISMATCH) << point;
    }
}

TEST(DeviceLoss, AVfIsNotPausedWhileItRunsWhicheverAccessFails) {
    constexpr vgpu_pf_control kPause{sizeof(vgpu_pf_control), 1, 0, VGPU_PF_PAUSE};
    for (std::uint64_t point = 0; point < 30; ++point) {
        Rig rig;
        rig.make_busy(1);
        rig.make_busy(2);
        while (!rig.gpu.is_running() || rig.gpu.loaded() != 1) rig.gpu.run_for(kUs);
        rig.gpu.fail_after = point;
        while (rig.gpu.fail_after) rig.gpu.run_for(kUs);
        vgpu_pf_control pause = kPause;
        vgpu_pf_request_run(rig.pf.get(), VGPU_PF_OP_CONTROL, &pause, 77);
        for (int i = 0; i < 1000; ++i) {
            const bool runs = rig.gpu.loaded() == 1 && rig.gpu.is_running();
            ASSERT_FALSE(runs && rig.vf(1).state == VGPU_PF_VF_PAUSED) << point;
            rig.gpu.run_for(kUs);
        }
    }
}

// --- adoption

}  // namespace
}  // namespace vgpu::test
