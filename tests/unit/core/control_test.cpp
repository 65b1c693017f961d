// SPDX-License-Identifier: MIT
//
// The life cycle: the table as a whole, and what each arrow does on a device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "pf-driver/core/resource/pf_vram.h"
#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/regs.h"
#include "tests/unit/core/rig.h"

namespace vgpu::test {
namespace {

struct Row {
    std::uint32_t from, event, to;
};

std::vector<Row> table() {
    std::vector<Row> rows;
    for (std::uint32_t s = 0; s < VGPU_PF_VF_STATES; ++s)
        for (std::uint32_t e = 1; e < VGPU_VF_EVENTS; ++e)
            if (const auto* cell = vgpu_pf_control_cell(s, e)) rows.push_back({s, e, cell->to});
    return rows;
}

bool has_cell(std::uint32_t from, std::uint32_t event) {
    return vgpu_pf_control_cell(from, event) != nullptr;
}

TEST(LifeCycleTable, NamesEveryStateAndEvent) {
    std::set<std::string> names;
    for (std::uint32_t s = 0; s < VGPU_PF_VF_STATES; ++s)
        names.insert(vgpu_pf_control_state_name(s));
    for (std::uint32_t e = 0; e < VGPU_VF_EVENTS; ++e) names.insert(vgpu_pf_control_event_name(e));
    EXPECT_EQ(names.size(), std::size_t{VGPU_PF_VF_STATES} + std::size_t{VGPU_VF_EVENTS});
    EXPECT_STREQ(vgpu_pf_control_state_name(99), "?");
    EXPECT_STREQ(vgpu_pf_control_event_name(99), "?");
}

TEST(LifeCycleTable, EveryStateIsReachedAndSurvivesTheLossOfTheDevice) {
    std::set<std::uint32_t> reached{VGPU_PF_VF_ABSENT, VGPU_PF_VF_MISMATCH};
    for (const auto& row : table()) reached.insert(row.to);
    EXPECT_EQ(reached.size(), std::size_t{VGPU_PF_VF_STATES});
    for (std::uint32_t s = 0; s < VGPU_PF_VF_STATES; ++s)
        EXPECT_TRUE(has_cell(s, VGPU_VF_EVENT_DEVICE_LOST)) << vgpu_pf_control_state_name(s);
}

TEST(LifeCycleTable, EveryStateWithResourcesCanBeReleasedOrLeavesByItself) {
    for (std::uint32_t s = 0; s < VGPU_PF_VF_STATES; ++s) {
        const bool is_exempt =
            s == VGPU_PF_VF_ABSENT || s == VGPU_PF_VF_RUNNING || s == VGPU_PF_VF_SCRUBBING;
        EXPECT_EQ(has_cell(s, VGPU_VF_EVENT_RELEASE), !is_exempt) << vgpu_pf_control_state_name(s);
    }
}

/// The words of the diagram at the head of control.c.
std::string diagram() {
    std::ifstream file(std::string(VGPU_SOURCE_DIR) + "/pf-driver/core/vf/control.c");
    std::stringstream all;
    all << file.rdbuf();
    const std::string text = all.str();
    return text.substr(0, text.find("*/"));
}

TEST(LifeCycleTable, EveryEventAndStateOfTheTableStandsInTheDiagram) {
    const std::string drawn = diagram();
    for (const auto& row : table()) {
        for (const char* name :
             {vgpu_pf_control_state_name(row.from), vgpu_pf_control_state_name(row.to)})
            EXPECT_THAT(drawn, testing::HasSubstr(name));
        std::string event = vgpu_pf_control_event_name(row.event);
        if (event == "SCRUB_DURABLE") event = "SCRUB_";  // drawn in two lines
        EXPECT_THAT(drawn, testing::HasSubstr(event));
    }
}

TEST(LifeCycleTable, EveryListedArrowOfTheDiagramStandsInTheTable) {
    // lines "A B C --- EVENT ---> TO"
    const std::regex arrow(R"(((?:[A-Z]+ )+)\s*--- ([A-Z_]+) ---> ([A-Z]+))");
    std::string drawn = std::regex_replace(diagram(), std::regex(R"(\n \*\s+(\|\s+)?)"), " . ");
    const auto state = [](const std::string& name) {
        for (std::uint32_t s = 0; s < VGPU_PF_VF_STATES; ++s)
            if (name == vgpu_pf_control_state_name(s)) return s;
        return std::uint32_t{VGPU_PF_VF_STATES};
    };
    int arrows = 0;
    for (std::sregex_iterator it(drawn.begin(), drawn.end(), arrow), end; it != end; ++it) {
        std::stringstream froms((*it)[1]);
        for (std::string from; froms >> from;) {
            if (state(from) == VGPU_PF_VF_STATES) continue;
            bool is_there = false;
            for (const auto& row : table())
                is_there |= row.from == state(from) && row.to == state((*it)[3]) &&
                            (*it)[2] == vgpu_pf_control_event_name(row.event);
            EXPECT_TRUE(is_there) << from << " --" << (*it)[2] << "--> " << (*it)[3];
            ++arrows;
        }
    }
    EXPECT_GE(arrows, 12);
}

TEST(LifeCycle, ImpossibleCellsLeadToMismatchWithADumpAndShutGates) {
    for (std::uint32_t s = 0; s < VGPU_PF_VF_STATES; ++s) {
        for (std::uint32_t e = 1; e < VGPU_VF_EVENTS; ++e) {
            if (has_cell(s, e) || s == VGPU_PF_VF_MISMATCH) continue;
            Rig rig;
            rig.provision(1);
            rig.vf(1).state = static_cast<vgpu_pf_vf_state>(s);
            const auto event = static_cast<vgpu_vf_event>(e);
            // a RUNNING one leaves the engine first
            if (vgpu_pf_control_allows(&rig.vf(1), event)) continue;
            rig.post(1, event, VGPU_PF_REASON_NONE);
            EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_MISMATCH)
                << vgpu_pf_control_state_name(s) << " x " << vgpu_pf_control_event_name(e);
            EXPECT_EQ(rig.gpu.bank(1, REG_VGPU_VF0_GATES), 0u);
            EXPECT_THAT(rig.gpu.log_lines, testing::Contains(testing::HasSubstr("MISMATCH")));
        }
    }
}

TEST(LifeCycle, OperatorRequestsThatTheStateDoesNotAllowAreRefusedWithoutEffect) {
    Rig rig;
    EXPECT_EQ(rig.control(1, VGPU_PF_PAUSE), -EINVAL);
    EXPECT_EQ(rig.message(), "VF1: PAUSE is not possible while ABSENT");
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_ABSENT);
    rig.provision(1);
    EXPECT_EQ(rig.control(1, VGPU_PF_RESUME), -EINVAL);
    EXPECT_EQ(rig.control(1, VGPU_PF_CLEAR_QUARANTINE), -EINVAL);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PROVISIONED);
}

TEST(LifeCycle, DriverLoadMakesReadyAndUnloadMakesProvisioned) {
    Rig rig;
    ASSERT_EQ(rig.provision(1), 0);
    rig.load_driver(1);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_READY);
    rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_FINI_ACCESS);
    rig.gpu.run_for(kMs);
    rig.gpu.guest_sends(1, MAILBOX_REL_GPU_FINI_ACCESS);
    rig.gpu.run_for(kMs);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PROVISIONED);
    EXPECT_EQ(HW_GET(VGPU_GATES, DOORBELL_EN, rig.gpu.bank(1, REG_VGPU_VF0_GATES)), 0u);
    EXPECT_EQ(HW_GET(VGPU_GATES, FB_EN, rig.gpu.bank(1, REG_VGPU_VF0_GATES)), 1u);
}

TEST(LifeCycle, PauseOfARunningVfEndsWhenItHasLeftTheEngine) {
    Rig rig;
    rig.make_busy(1);
    rig.gpu.run_for(kMs);
    ASSERT_EQ(rig.vf(1).state, VGPU_PF_VF_RUNNING);
    EXPECT_EQ(rig.control(1, VGPU_PF_PAUSE), 0);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PAUSED);
    EXPECT_EQ(rig.gpu.loaded(), 0u);
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.gpu.loaded(), 0u);
    EXPECT_EQ(rig.control(1, VGPU_PF_RESUME), 0);
    rig.gpu.run_for(kMs);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_RUNNING);
}

/// VF1, in the engine.
struct RunningVf : testing::Test {
    RunningVf() {
        rig.make_busy(1);
        rig.gpu.run_for(kMs);
    }
    /// What waits until it has left the engine.
    void keep_back(vgpu_vf_event event) {
        ASSERT_EQ(rig.vf(1).state, VGPU_PF_VF_RUNNING);
        rig.post(1, event, VGPU_PF_REASON_GUEST_REQUEST);
        ASSERT_EQ(rig.vf(1).state, VGPU_PF_VF_RUNNING);
    }
    int begin(vgpu_pf_control_action action) {
        control = {sizeof(control), 1, 0, static_cast<std::uint32_t>(action)};
        return vgpu_pf_request_run(rig.pf.get(), VGPU_PF_OP_CONTROL, &control, kToken);
    }
    /// As a platform does that first sees to it that no access reaches the device.
    void suspend() {
        rig.gpu.is_gone = true;
        vgpu_pf_suspend(rig.pf.get());
        rig.gpu.is_gone = false;
    }
    /// The device keeps its state, and with it the records from before.
    void suspend_and_attach() {
        suspend();
        ASSERT_EQ(vgpu_pf_attach(rig.pf.get()), 0) << rig.message();
        rig.gpu.run_for(20 * kMs);
    }
    static constexpr std::uint64_t kToken = 900;
    Rig rig;
    vgpu_pf_control control{};
};

TEST_F(RunningVf, IsNotSaidToBePausedWhereAResetCameFirst) {
    keep_back(VGPU_VF_EVENT_RESET);
    EXPECT_EQ(rig.control(1, VGPU_PF_PAUSE), -EINVAL);
    EXPECT_EQ(rig.message(), "VF1: PAUSE is not possible while RESETTING");
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_RESETTING);
}

TEST_F(RunningVf, IsNotSaidToBePausedWhereAResetOvertookThePause) {
    ASSERT_EQ(begin(VGPU_PF_PAUSE), -EINPROGRESS);
    keep_back(VGPU_VF_EVENT_RESET);
    rig.gpu.run_for(kMs);
    ASSERT_TRUE(rig.gpu.is_done(kToken));
    EXPECT_EQ(rig.gpu.done[kToken].first, -EINVAL);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_RESETTING);
}

TEST_F(RunningVf, IsPausedAfterItsDriverHasGone) {
    keep_back(VGPU_VF_EVENT_DRIVER_GONE);
    EXPECT_EQ(rig.control(1, VGPU_PF_PAUSE), 0);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PAUSED);
    EXPECT_EQ(rig.control(1, VGPU_PF_RESUME), 0);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PROVISIONED);
}

TEST_F(RunningVf, IsNotSaidToBePausedWhereAStopWasBegunBefore) {
    ASSERT_EQ(begin(VGPU_PF_STOP), -EINPROGRESS);
    vgpu_pf_request_cancel(rig.pf.get(), kToken);
    EXPECT_EQ(rig.control(1, VGPU_PF_PAUSE), -EINVAL);
    EXPECT_EQ(rig.message(), "VF1: PAUSE is not possible while STOPPED");
}

TEST_F(RunningVf, IsResetAfterAStopThatWasBegunBefore) {
    ASSERT_EQ(begin(VGPU_PF_STOP), -EINPROGRESS);
    vgpu_pf_request_cancel(rig.pf.get(), kToken);
    EXPECT_EQ(rig.control(1, VGPU_PF_RESET), 0);
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PROVISIONED);
}

TEST_F(RunningVf, IsPausedAsAskedForThoughTheDeviceIsLostFirst) {
    ASSERT_EQ(begin(VGPU_PF_PAUSE), -EINPROGRESS);
    rig.gpu.is_gone = true;
    vgpu_pf_surprise_remove(rig.pf.get());
    ASSERT_TRUE(rig.gpu.is_done(kToken));
    EXPECT_EQ(rig.gpu.done[kToken].first, 0);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PAUSED);
    EXPECT_EQ(rig.vf(1).last_error, VGPU_PF_REASON_DEVICE_LOST);
}

TEST_F(RunningVf, StaysUnderQuarantineThoughTheDeviceIsLostFirst) {
    keep_back(VGPU_VF_EVENT_QUARANTINE);
    rig.gpu.is_gone = true;
    vgpu_pf_surprise_remove(rig.pf.get());
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_QUARANTINED);
}

TEST_F(RunningVf, RunsOnWhenTheDeviceComesBackWithItsState) {
    suspend_and_attach();
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_RUNNING);
}

TEST_F(RunningVf, IsPausedAsAskedForThoughTheDeviceComesBackWithItsState) {
    ASSERT_EQ(begin(VGPU_PF_PAUSE), -EINPROGRESS);
    suspend_and_attach();
    EXPECT_EQ(rig.gpu.done[kToken].first, 0);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PAUSED);
    EXPECT_FALSE(rig.vf(1).guard.paused);
    EXPECT_EQ(rig.gpu.loaded(), 0u);
    EXPECT_EQ(rig.control(1, VGPU_PF_RESUME), 0);
    rig.gpu.run_for(kMs);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_RUNNING);
}

TEST_F(RunningVf, IsPausedByTheGuardThoughTheDeviceComesBackWithItsState) {
    rig.provoke_pause(1);
    ASSERT_EQ(rig.vf(1).state, VGPU_PF_VF_RUNNING);
    suspend_and_attach();
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PAUSED);
    EXPECT_TRUE(rig.vf(1).guard.paused);
}

TEST_F(RunningVf, IsStoppedAsAskedForThoughTheDeviceComesBackWithItsState) {
    ASSERT_EQ(begin(VGPU_PF_STOP), -EINPROGRESS);
    suspend_and_attach();
    EXPECT_EQ(rig.gpu.done[kToken].first, 0);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_STOPPED);
}

TEST_F(RunningVf, StaysUnderQuarantineThoughTheDeviceComesBackWithItsState) {
    keep_back(VGPU_VF_EVENT_QUARANTINE);
    suspend_and_attach();
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_QUARANTINED);
    EXPECT_EQ(rig.vf(1).last_error, VGPU_PF_REASON_GUARD);
}

TEST_F(RunningVf, IsScrubbedAfterItsReleaseThoughTheDeviceComesBackWithItsState) {
    vgpu_pf_vf_ref ref{sizeof(ref), 1, 0, 0};
    ASSERT_EQ(vgpu_pf_request_run(rig.pf.get(), VGPU_PF_OP_RELEASE, &ref, kToken), -EINPROGRESS);
    suspend_and_attach();
    EXPECT_EQ(rig.gpu.done[kToken].first, 0);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_SCRUBBING);
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.events(VGPU_PF_EVENT_SCRUBBED, 1).size(), 1u);
    EXPECT_EQ(rig.durable(1), 0);
}

TEST_F(RunningVf, IsNotSaidToBeResetWhereTheDeviceIsLostFirst) {
    ASSERT_EQ(begin(VGPU_PF_RESET), -EINPROGRESS);
    suspend_and_attach();
    EXPECT_EQ(rig.gpu.done[kToken].first, -ENODEV);
    EXPECT_EQ(rig.gpu.done[kToken].second, "the device was lost before the reset");
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_RUNNING);
}

/// Its page table is damaged meanwhile.
TEST_F(RunningVf, IsAbsentThoughAPauseWaitedWhereItCannotBeAdopted) {
    ASSERT_EQ(begin(VGPU_PF_PAUSE), -EINPROGRESS);
    suspend();
    for (std::uint64_t i = 0; i < VF_PAGE_TABLE_BYTES; ++i) rig.gpu.poke(pf_vram_leaf(1, 0) + i, 0);
    ASSERT_EQ(vgpu_pf_attach(rig.pf.get()), 0);
    rig.gpu.run_for(20 * kMs);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_ABSENT);
}

/// The core that comes next finds it as it is.
TEST_F(RunningVf, IsNotPausedByACoreThatLeaves) {
    ASSERT_EQ(begin(VGPU_PF_PAUSE), -EINPROGRESS);
    vgpu_pf_shutdown(rig.pf.get());
    ASSERT_TRUE(rig.gpu.is_done(kToken));
    EXPECT_EQ(rig.gpu.done[kToken].first, -ENODEV);
    rig.restart_core();
    rig.gpu.run_for(20 * kMs);  // it was on its way out
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_RUNNING);
}

TEST(Mismatch, EndsTheFullAccessOfItsVf) {
    Rig rig;
    rig.provision(1);
    rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_INIT_ACCESS);
    ASSERT_EQ(rig.get_vf(1).in_full_access, 1u);
    vgpu_pf_control_step(rig.pf.get(), &rig.vf(1), VGPU_VF_EVENT_SCRUB_DURABLE,
                         VGPU_PF_REASON_NONE);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_MISMATCH);
    EXPECT_EQ(rig.get_vf(1).in_full_access, 0u);
    rig.gpu.run_for(10 * kSecond);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_MISMATCH) << "no time limit of full access resets it";
}

/// VF1 hangs on its way out, VF2 is on its way in.
struct IncomingVf : testing::Test {
    IncomingVf() {
        rig.make_busy(1);
        rig.make_busy(2);
        rig.gpu.attach_client(2, true);
        rig.gpu.run_for(kMs);
        while (rig.gpu.loaded() != 1) rig.gpu.run_for(100 * kUs);
        rig.gpu.hang(1);
        while (!is_switching()) rig.gpu.run_for(100 * kUs);
    }
    [[nodiscard]] bool is_switching() const {
        return rig.pf->scheduler.state == VGPU_SCHEDULER_SWITCHING &&
               rig.pf->scheduler.next.vf == 2;
    }
    void expect_service() {
        rig.load_driver(2);
        rig.gpu.give_work(2, kEndless);
        const std::uint64_t before = rig.get_vf(2).service_ns;
        rig.gpu.run_for(2 * kSecond);
        EXPECT_GT(rig.get_vf(2).service_ns - before, kSecond);
    }
    Rig rig;
};

TEST_F(IncomingVf, IsPausedThoughTheSwitchToItFailed) {
    EXPECT_EQ(rig.control(2, VGPU_PF_PAUSE), 0);
    EXPECT_EQ(rig.vf(2).state, VGPU_PF_VF_PAUSED);
    EXPECT_EQ(rig.control(2, VGPU_PF_RESUME), 0);
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.vf(2).state, VGPU_PF_VF_RUNNING);
}

TEST_F(IncomingVf, ThatItsGuestResetsLoadsItsDriverAgain) {
    rig.gpu.guest_resets_function(2);
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.vf(2).state, VGPU_PF_VF_PROVISIONED);
    expect_service();
}

/// A VMM that resets the VF, and whose guest loads its driver before the hang is over.
TEST_F(IncomingVf, ThatIsResetAndAskedForAtOnceIsGrantedAfterIt) {
    rig.gpu.guest_resets_function(2);
    rig.gpu.vf(2).received.clear();
    rig.gpu.guest_sends(2, MAILBOX_REQ_GPU_INIT_ACCESS);
    ASSERT_TRUE(is_switching());
    rig.gpu.guest_sends(2, MAILBOX_LOG_VF_ERROR);  // the PF looks at the VF once more
    rig.gpu.run_for(kSecond);
    EXPECT_THAT(rig.gpu.vf(2).received, testing::ElementsAre(MAILBOX_VF_READY_TO_ACCESS_GPU));
    EXPECT_EQ(rig.get_vf(2).in_full_access, 1u);
    EXPECT_EQ(rig.get_vf(2).guard_events[VGPU_GUARD_FLR], 1u) << "it is one FLR";
}

TEST_F(IncomingVf, WhoseDriverHasGoneLoadsItAgain) {
    rig.gpu.guest_sends(2, MAILBOX_REL_GPU_FINI_ACCESS);
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.vf(2).state, VGPU_PF_VF_PROVISIONED);
    expect_service();
}

TEST_F(IncomingVf, ThatIsReleasedIsAHealthyVfToItsNextOwner) {
    EXPECT_EQ(rig.release(2), 0);
    rig.gpu.run_for(kSecond);
    ASSERT_EQ(rig.durable(2), 0);
    ASSERT_EQ(rig.provision(2), 0);
    expect_service();
}

TEST(LifeCycle, StopShutsAllGatesAndResetOpensThemAgain) {
    Rig rig;
    rig.make_busy(1);
    rig.gpu.run_for(kMs);
    ASSERT_EQ(rig.control(1, VGPU_PF_STOP), 0);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_STOPPED);
    EXPECT_EQ(rig.gpu.bank(1, REG_VGPU_VF0_GATES), 0u);
    EXPECT_EQ(rig.control(1, VGPU_PF_RESET), 0);
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PROVISIONED);
    EXPECT_EQ(rig.gpu.bank(1, REG_VGPU_VF0_GATES), HW_FIELD_MASK(VGPU_GATES, FB_EN));
}

TEST(LifeCycle, ReleaseOverridesAPauseThatWaitsForTheEngine) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    rig.gpu.run_for(kMs);
    const std::uint32_t vf = rig.gpu.loaded();
    vgpu_pf_control pause{sizeof(pause), vf, 0, VGPU_PF_PAUSE};
    ASSERT_EQ(vgpu_pf_request_run(rig.pf.get(), VGPU_PF_OP_CONTROL, &pause, 900), -EINPROGRESS);
    vgpu_pf_vf_ref release{sizeof(release), vf, 0, 0};
    EXPECT_EQ(vgpu_pf_request_run(rig.pf.get(), VGPU_PF_OP_RELEASE, &release, 901), -EBUSY);
    rig.gpu.run_for(kMs);
    EXPECT_TRUE(rig.gpu.is_done(900));
    EXPECT_EQ(rig.vf(vf).state, VGPU_PF_VF_PAUSED);
    EXPECT_EQ(rig.release(vf), 0);
    EXPECT_EQ(rig.vf(vf).state, VGPU_PF_VF_SCRUBBING);
}

TEST(LifeCycle, StateEventsTellOldAndNewState) {
    Rig rig;
    rig.provision(1);
    rig.control(1, VGPU_PF_PAUSE);
    const auto states = rig.events(VGPU_PF_EVENT_STATE, 1);
    ASSERT_EQ(states.size(), 2u);
    EXPECT_EQ(states[1].arg, VGPU_PF_VF_PAUSED);
    EXPECT_EQ(states[1].arg2, VGPU_PF_VF_PROVISIONED);
}

TEST(LifeCycle, ClientsAreNotifiedOfAttachAndADetachResetsTheVf) {
    Rig rig;
    rig.make_busy(1);
    rig.gpu.attach_client(1, true);
    rig.gpu.run_for(kMs);
    EXPECT_TRUE(rig.vf(1).attached);
    rig.gpu.attach_client(1, false);
    rig.gpu.run_for(10 * kMs);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PROVISIONED);
    EXPECT_EQ(rig.vf(1).last_error, VGPU_PF_REASON_DETACH);
    EXPECT_FALSE(rig.gpu.vf(1).flr_pending);
    const auto attach = rig.events(VGPU_PF_EVENT_ATTACH, 1);
    ASSERT_EQ(attach.size(), 2u);
    EXPECT_EQ(attach[0].arg, 1u);
    EXPECT_EQ(attach[1].arg, 0u);
}

TEST(LifeCycle, AGuestCannotResetItsWayOutOfAPause) {
    Rig rig;
    rig.make_busy(1);
    rig.gpu.attach_client(1, true);
    ASSERT_EQ(rig.control(1, VGPU_PF_PAUSE), 0);
    rig.gpu.guest_resets_function(1);
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PAUSED);
    EXPECT_FALSE(rig.gpu.vf(1).flr_pending);
    EXPECT_EQ(rig.control(1, VGPU_PF_RESUME), 0);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PROVISIONED);
}

TEST(LifeCycle, AResetThatAPausedGuestRequestsIsDoneWhenItResumes) {
    for (const auto& [message, answer] : kResetRequests) {
        Rig rig;
        rig.make_busy(1);
        ASSERT_EQ(rig.control(1, VGPU_PF_PAUSE), 0);
        rig.gpu.vf(1).received.clear();
        rig.gpu.guest_sends(1, message);
        rig.gpu.run_for(10 * kMs);
        EXPECT_THAT(rig.gpu.vf(1).received, ::testing::IsEmpty());
        EXPECT_EQ(rig.control(1, VGPU_PF_RESUME), 0);
        rig.gpu.run_for(10 * kMs);
        EXPECT_THAT(rig.gpu.vf(1).received, ::testing::ElementsAre(answer));
    }
}

}  // namespace
}  // namespace vgpu::test
