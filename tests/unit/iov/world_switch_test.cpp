// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/iov/world_switch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

#include "tests/unit/iov/switch_rig.h"

namespace vgpu::softgpu::iov {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using S = SwitchState;
using E = SwitchEvent;

std::vector<S> all_states() {
    std::vector<S> states;
    for (std::size_t i = 0; i < kSwitchStates; ++i) states.push_back(static_cast<S>(i));
    return states;
}
std::vector<E> all_events() {
    std::vector<E> events;
    for (std::size_t i = 0; i < kSwitchEvents; ++i) events.push_back(static_cast<E>(i));
    return events;
}

/// "from --event--> to" of the list under the diagram, "any" and event lists expanded.
std::set<std::string> arrows_of_diagram() {
    std::ifstream file(std::string(VGPU_SOURCE_DIR) + "/pf-driver/softgpu/iov/world_switch.cpp");
    std::stringstream source;
    source << file.rdbuf();
    const std::string text = source.str();
    const std::size_t first = text.find("Every arrow, one per line");
    const std::string list = text.substr(first, text.find("#include", first) - first);
    const std::regex arrow(R"((\w+) --(\w+)--> (\w+))");
    std::set<std::string> arrows;
    for (std::sregex_iterator it(list.begin(), list.end(), arrow), end; it != end; ++it) {
        for (const S state : all_states()) {
            const bool is_from = (*it)[1] == "any" || (*it)[1].str() == WorldSwitch::name(state);
            if (is_from)
                arrows.insert(fmt::format("{} --{}--> {}", WorldSwitch::name(state), (*it)[2].str(),
                                          (*it)[3].str()));
        }
    }
    return arrows;
}

/// The same of the table: every cell that does something.
std::set<std::string> arrows_of_table() {
    std::set<std::string> arrows;
    for (const S state : all_states())
        for (const E event : all_events()) {
            const WorldSwitch::Cell& cell = WorldSwitch::cell(state, event);
            const bool is_stale = event == E::QuantumEnd && cell.to == state;
            if (cell.is_refused || is_stale || cell.to == S::Mismatch) continue;
            arrows.insert(fmt::format("{} --{}--> {}", WorldSwitch::name(state),
                                      WorldSwitch::name(event), WorldSwitch::name(cell.to)));
        }
    return arrows;
}

TEST(WorldSwitchTable, DiagramAndTableHaveTheSameArrows) {
    EXPECT_FALSE(arrows_of_diagram().empty());
    EXPECT_EQ(arrows_of_diagram(), arrows_of_table());
}

TEST(WorldSwitchTable, EveryCellIsAnArrowARefusalOrAMismatch) {
    for (const S state : all_states())
        for (const E event : all_events()) {
            const WorldSwitch::Cell& cell = WorldSwitch::cell(state, event);
            const bool is_command = event <= E::Clear;
            if (cell.is_refused) {
                EXPECT_TRUE(is_command && cell.to == state && cell.action == nullptr);
            }
            // Only the device's own events can be impossible; the PF's are answered.
            if (cell.to == S::Mismatch && state != S::Mismatch) {
                EXPECT_TRUE(event == E::Done || event == E::Lost) << WorldSwitch::name(event);
            }
        }
}

TEST(WorldSwitchTable, AResetLeadsOutOfEveryState) {
    for (const S state : all_states()) EXPECT_EQ(WorldSwitch::cell(state, E::Reset).to, S::Empty);
}

TEST(WorldSwitch, StepwiseSwitchDrivesTheEngineInOrder) {
    SwitchRig rig;
    EXPECT_EQ(rig.command(GPUIOV_CMD_LOAD, 1), GPUIOV_STATUS_DONE);
    EXPECT_EQ(rig.command(GPUIOV_CMD_RUN, 1), GPUIOV_STATUS_DONE);
    EXPECT_EQ(rig.command(GPUIOV_CMD_IDLE, 1), GPUIOV_STATUS_DONE);
    EXPECT_EQ(rig.command(GPUIOV_CMD_SAVE, 1), GPUIOV_STATUS_DONE);
    EXPECT_THAT(rig.engine.calls, ElementsAre("load 1", "run 1", "park 1", "save 1"));
    EXPECT_EQ(rig.machine.state(), S::Empty);
}

TEST(WorldSwitch, ContextSwitchIsAllFourStepsInOneCommand) {
    SwitchRig rig;
    rig.run_vf(1);
    (void)rig.engine.take_calls();
    EXPECT_EQ(rig.command(GPUIOV_CMD_CONTEXT_SWITCH, 1, 2), GPUIOV_STATUS_DONE);
    EXPECT_THAT(rig.engine.calls, ElementsAre("park 1", "save 1", "load 2", "run 2"));
    EXPECT_EQ(rig.machine.view().function, VfId{2});
    EXPECT_EQ(rig.machine.view().state, GPUIOV_FUNCTION_ACTIVE);
    EXPECT_FALSE(rig.is_executing());
    EXPECT_NE(rig.engine.interrupts & GPUIOV_INTR_GFX_CMD_COMPLETE, 0u);
}

TEST(WorldSwitch, ContextSwitchToThePfEmptiesTheEngine) {
    SwitchRig rig;
    rig.run_vf(3);
    EXPECT_EQ(rig.command(GPUIOV_CMD_CONTEXT_SWITCH, 3, 0), GPUIOV_STATUS_DONE);
    EXPECT_EQ(rig.machine.state(), S::Empty);
    EXPECT_EQ(rig.machine.view().function, std::nullopt);
}

struct WrongOrder {
    gpuiov_command command;
    unsigned vf;
};

TEST(WorldSwitch, CommandsInTheWrongOrderAreAbortedAndChangeNothing) {
    SwitchRig rig;
    for (const WrongOrder wrong : {WrongOrder{GPUIOV_CMD_RUN, 1}, WrongOrder{GPUIOV_CMD_IDLE, 1},
                                   WrongOrder{GPUIOV_CMD_SAVE, 1}}) {
        EXPECT_EQ(rig.command(wrong.command, wrong.vf), GPUIOV_STATUS_ABORTED);
        EXPECT_EQ(rig.machine.state(), S::Empty);
    }
    rig.run_vf(1);
    (void)rig.engine.take_calls();
    for (const WrongOrder wrong : {WrongOrder{GPUIOV_CMD_LOAD, 1}, WrongOrder{GPUIOV_CMD_LOAD, 2},
                                   WrongOrder{GPUIOV_CMD_SAVE, 1}, WrongOrder{GPUIOV_CMD_IDLE, 2},
                                   WrongOrder{GPUIOV_CMD_RUN, 2}, WrongOrder{GPUIOV_CMD_INIT, 1},
                                   WrongOrder{GPUIOV_CMD_CLEAR_VF_STATE, 1}}) {
        EXPECT_EQ(rig.command(wrong.command, wrong.vf), GPUIOV_STATUS_ABORTED);
        EXPECT_EQ(rig.machine.state(), S::Running);
    }
    EXPECT_THAT(rig.engine.calls, IsEmpty());
}

TEST(WorldSwitch, FunctionsThatDoNotExistAreAborted) {
    SwitchRig rig;
    EXPECT_EQ(rig.command(GPUIOV_CMD_LOAD, 5), GPUIOV_STATUS_ABORTED);
    rig.machine.command(GPUIOV_COMMAND(GPUIOV_CMD_LOAD, 0x7f, 0));
    rig.machine.process();
    EXPECT_EQ(rig.machine.view().status, GPUIOV_STATUS_ABORTED);
    rig.machine.command(GPUIOV_COMMAND(GPUIOV_CMD_LOAD, GPUIOV_FCN_PF, 0));
    rig.machine.process();
    EXPECT_EQ(rig.machine.view().status, GPUIOV_STATUS_ABORTED);
    rig.machine.command(GPUIOV_COMMAND(GPUIOV_CMD_LOAD, 0xff, 0));
    rig.machine.process();
    EXPECT_EQ(rig.machine.view().status, GPUIOV_STATUS_ABORTED);
}

TEST(WorldSwitch, UnknownCommandsAreUnsupported) {
    SwitchRig rig;
    for (const std::uint32_t code : {0u, 6u, 8u, 9u, 0xbu, 0xcu, 0xeu, 0xfu}) {
        rig.machine.command(GPUIOV_COMMAND(code, fcn(1), 0));
        rig.machine.process();
        EXPECT_EQ(rig.machine.view().status, GPUIOV_STATUS_UNSUPPORTED) << code;
        EXPECT_FALSE(rig.is_executing());
    }
}

TEST(WorldSwitch, ACommandIsPendingUntilTheDeviceThreadRuns) {
    SwitchRig rig;
    rig.machine.command(GPUIOV_COMMAND(GPUIOV_CMD_LOAD, fcn(1), 0));
    EXPECT_TRUE(rig.is_executing());
    EXPECT_EQ(rig.machine.view().status, GPUIOV_STATUS_PENDING);
    EXPECT_EQ(rig.wakes, 1);
    rig.machine.command(GPUIOV_COMMAND(GPUIOV_CMD_LOAD, fcn(2), 0));  // ignored while busy
    rig.machine.process();
    EXPECT_THAT(rig.engine.calls, ElementsAre("load 1"));
}

TEST(WorldSwitch, ADwordWithoutExecuteStartsNothing) {
    SwitchRig rig;
    rig.machine.command(GPUIOV_CMD_LOAD | fcn(1) << 8);
    rig.machine.process();
    EXPECT_EQ(rig.wakes, 0);
    EXPECT_THAT(rig.engine.calls, IsEmpty());
}

TEST(WorldSwitch, InitClearsTheStateBeforeLoading) {
    SwitchRig rig;
    EXPECT_EQ(rig.command(GPUIOV_CMD_INIT, 2), GPUIOV_STATUS_DONE);
    EXPECT_THAT(rig.engine.calls, ElementsAre("clear 2", "load 2"));
}

TEST(WorldSwitch, ClearAndShutdownNeedAnEmptyEngine) {
    SwitchRig rig;
    EXPECT_EQ(rig.command(GPUIOV_CMD_CLEAR_VF_STATE, 2), GPUIOV_STATUS_DONE);
    EXPECT_EQ(rig.command(GPUIOV_CMD_SHUTDOWN, 3), GPUIOV_STATUS_DONE);
    EXPECT_THAT(rig.engine.calls, ElementsAre("clear 2", "clear 3"));
}

TEST(WorldSwitch, RunOfTheRunningVfGivesItANewQuantum) {
    SwitchRig rig;
    rig.run_vf(1);
    rig.clock.advance(Nanoseconds{1000});
    EXPECT_EQ(rig.command(GPUIOV_CMD_RUN, 1), GPUIOV_STATUS_DONE);
    ASSERT_EQ(rig.engine.log.size(), 1u);
    EXPECT_EQ(rig.engine.log[0].run_end_ns - rig.engine.log[0].run_start_ns, 1000u);
    EXPECT_EQ(rig.machine.state(), S::Running);
}

TEST(WorldSwitch, QuantumEndHoldsTheVfAndTellsThePf) {
    SwitchRig rig;
    rig.run_vf(1);
    rig.engine.interrupts = 0;
    rig.clock.advance(Nanoseconds{2000});
    rig.machine.quantum_expired(rig.engine.end_run());
    rig.machine.process();
    EXPECT_EQ(rig.machine.state(), S::Loaded);
    EXPECT_EQ(rig.engine.interrupts, GPUIOV_INTR_GFX_QUANTUM_EXPIRED);
    ASSERT_EQ(rig.engine.log.size(), 1u);
    EXPECT_EQ(rig.engine.log[0].reason, VGPU_RUN_END_QUANTUM);
    EXPECT_EQ(rig.command(GPUIOV_CMD_RUN, 1), GPUIOV_STATUS_DONE);
    EXPECT_EQ(rig.machine.state(), S::Running);
}

TEST(WorldSwitch, AQuantumEndIsRecordedAndReportedWithoutTheDeviceThread) {
    SwitchRig rig;
    rig.run_vf(1);
    rig.engine.interrupts = 0;
    rig.wakes = 0;
    rig.machine.quantum_expired(rig.engine.end_run());
    EXPECT_EQ(rig.machine.state(), S::Loaded);
    EXPECT_EQ(rig.engine.interrupts, GPUIOV_INTR_GFX_QUANTUM_EXPIRED);
    EXPECT_EQ(rig.engine.log.size(), 1u);
    EXPECT_EQ(rig.wakes, 0);
}

TEST(WorldSwitch, AShortSwitchAwayFromAParkedVfHasEndedWhenTheWriteReturns) {
    SwitchRig rig;
    rig.run_vf(1);
    rig.machine.quantum_expired(rig.engine.end_run());
    rig.engine.is_short = true;
    rig.engine.calls.clear();
    rig.wakes = 0;
    rig.machine.command(GPUIOV_COMMAND(GPUIOV_CMD_CONTEXT_SWITCH, fcn(1), fcn(2)));
    EXPECT_THAT(rig.engine.calls, ElementsAre("save 1", "load 2", "run 2"));
    EXPECT_EQ(rig.machine.state(), S::Running);
    EXPECT_EQ(rig.machine.view().status, GPUIOV_STATUS_DONE);
    EXPECT_FALSE(rig.is_executing());
    EXPECT_EQ(rig.wakes, 0);
}

TEST(WorldSwitch, CommandsThatParkCopyOrClearAreLeftToTheDeviceThread) {
    const auto is_left = [](gpuiov_command command, unsigned vf, bool is_running, bool is_short) {
        SwitchRig rig;
        if (is_running) rig.run_vf(vf);
        rig.engine.is_short = is_short;
        rig.wakes = 0;
        rig.machine.command(GPUIOV_COMMAND(command, fcn(vf), fcn(2)));
        return rig.is_executing() && rig.wakes == 1;
    };
    EXPECT_TRUE(is_left(GPUIOV_CMD_CONTEXT_SWITCH, 1, true, true)) << "it parks";
    EXPECT_TRUE(is_left(GPUIOV_CMD_RUN, 1, true, true)) << "it parks";
    EXPECT_TRUE(is_left(GPUIOV_CMD_LOAD, 1, false, false)) << "it copies";
    EXPECT_TRUE(is_left(GPUIOV_CMD_INIT, 1, false, true)) << "it clears";
    EXPECT_TRUE(is_left(GPUIOV_CMD_CLEAR_VF_STATE, 1, false, true)) << "it clears";
    EXPECT_FALSE(is_left(GPUIOV_CMD_LOAD, 1, false, true));
}

TEST(WorldSwitch, ACommandDuringAResetWaitsForTheDeviceThread) {
    SwitchRig rig;
    rig.engine.is_short = true;
    rig.machine.reset(VfId{1}, [&rig] {
        std::thread([&rig] {
            rig.machine.command(GPUIOV_COMMAND(GPUIOV_CMD_LOAD, fcn(1), 0));
        }).join();
        EXPECT_THAT(rig.engine.calls, IsEmpty());
    });
    EXPECT_EQ(rig.wakes, 1);
    rig.machine.process();
    EXPECT_THAT(rig.engine.calls, ElementsAre("load 1"));
}

TEST(WorldSwitch, ALateStepOfAShortSwitchEndsOnTheDeviceThread) {
    SwitchRig rig;
    rig.engine.is_short = true;
    ASSERT_TRUE(rig.faults.add({.vf = VfId{1},
                                .point = FaultPoint::Load,
                                .effect = FaultEffect::Late,
                                .delay = Nanoseconds{500}}));
    rig.machine.command(GPUIOV_COMMAND(GPUIOV_CMD_LOAD, fcn(1), 0));
    EXPECT_TRUE(rig.is_executing());
    EXPECT_EQ(rig.wakes, 1) << "the device thread learns when the step is due";
    rig.clock.advance(Nanoseconds{500});
    rig.machine.process();
    EXPECT_EQ(rig.machine.view().status, GPUIOV_STATUS_DONE);
}

TEST(WorldSwitch, AQuantumEndThatCrossesAnIdleIsRecordedOnce) {
    SwitchRig rig;
    rig.run_vf(1);
    const cp::RunReport ended = rig.engine.end_run();  // parked, the news is on its way
    EXPECT_EQ(rig.command(GPUIOV_CMD_IDLE, 1), GPUIOV_STATUS_DONE);
    rig.machine.quantum_expired(ended);
    rig.machine.process();
    EXPECT_EQ(rig.machine.state(), S::Loaded);
    ASSERT_EQ(rig.engine.log.size(), 1u);
    EXPECT_EQ(rig.engine.log[0].reason, VGPU_RUN_END_QUANTUM);
}

/// The engine tells of the end while the command parks it.
struct CrossedQuantumEnd : testing::TestWithParam<gpuiov_command> {};

TEST_P(CrossedQuantumEnd, IsRecordedBeforeTheNextStayBegins) {
    SwitchRig rig;
    rig.run_vf(1);
    rig.clock.advance(Nanoseconds{2000});
    rig.engine.on_park = [&rig, has_ended = false]() mutable {
        if (std::exchange(has_ended, true)) return;
        std::thread([&rig] { rig.machine.quantum_expired(rig.engine.end_run()); }).join();
    };
    EXPECT_EQ(rig.command(GetParam(), 1, 2), GPUIOV_STATUS_DONE);
    EXPECT_EQ(rig.machine.state(), S::Running);
    EXPECT_TRUE(rig.engine.is_running);
    ASSERT_EQ(rig.engine.log.size(), 1u);
    EXPECT_EQ(rig.engine.log[0].vf, 1u);
    EXPECT_EQ(rig.engine.log[0].reason, VGPU_RUN_END_QUANTUM);
    EXPECT_EQ(rig.engine.log[0].run_end_ns - rig.engine.log[0].run_start_ns, 2000u);
}

INSTANTIATE_TEST_SUITE_P(Commands, CrossedQuantumEnd,
                         testing::Values(GPUIOV_CMD_RUN, GPUIOV_CMD_CONTEXT_SWITCH));

TEST(WorldSwitch, ALateQuantumEndDoesNotStopTheNextRun) {
    SwitchRig rig;
    rig.run_vf(1);
    const cp::RunReport old = rig.engine.end_run();
    EXPECT_EQ(rig.command(GPUIOV_CMD_RUN, 1), GPUIOV_STATUS_DONE);
    rig.machine.quantum_expired(old);
    rig.machine.process();
    EXPECT_EQ(rig.machine.state(), S::Running);
    EXPECT_TRUE(rig.engine.is_running);
}

TEST(WorldSwitch, AStayWithoutWorkSaysSo) {
    SwitchRig rig;
    rig.run_vf(1);
    rig.engine.is_busy = false;
    (void)rig.command(GPUIOV_CMD_IDLE, 1);
    ASSERT_EQ(rig.engine.log.size(), 1u);
    EXPECT_EQ(rig.engine.log[0].reason, VGPU_RUN_END_NO_WORK);
}

TEST(WorldSwitch, ALostStepNeverCompletesUntilItsVfIsReset) {
    for (const FaultPoint point :
         {FaultPoint::Idle, FaultPoint::Save, FaultPoint::Load, FaultPoint::Run}) {
        SwitchRig rig;
        const bool hits_second = point == FaultPoint::Load || point == FaultPoint::Run;
        rig.run_vf(1);
        ASSERT_TRUE(rig.faults.add({VfId{hits_second ? std::uint8_t{2} : std::uint8_t{1}}, point}));
        rig.machine.command(GPUIOV_COMMAND(GPUIOV_CMD_CONTEXT_SWITCH, fcn(1), fcn(2)));
        for (int i = 0; i < 3; ++i) {
            rig.clock.advance(std::chrono::seconds(1));
            rig.machine.process();
        }
        EXPECT_TRUE(rig.is_executing());
        EXPECT_EQ(rig.machine.state(), S::Stalled);
        EXPECT_EQ(rig.machine.view().state, GPUIOV_FUNCTION_STALLED);

        bool is_reset = false;
        rig.machine.reset(*rig.machine.view().function, [&] { is_reset = true; });
        EXPECT_TRUE(is_reset);
        EXPECT_FALSE(rig.is_executing());
        EXPECT_EQ(rig.machine.view().status, GPUIOV_STATUS_ABORTED);
        EXPECT_EQ(rig.machine.state(), S::Empty);
        rig.run_vf(3);
        EXPECT_EQ(rig.machine.state(), S::Running) << FaultPlan::name(point);
    }
}

TEST(WorldSwitch, ALateStepCompletesWhenItsTimeHasCome) {
    SwitchRig rig;
    rig.run_vf(1);
    ASSERT_TRUE(rig.faults.add(
        {VfId{1}, FaultPoint::Idle, FaultEffect::Late, 1, std::chrono::milliseconds(50)}));
    rig.machine.command(GPUIOV_COMMAND(GPUIOV_CMD_IDLE, fcn(1), 0));
    rig.machine.process();
    EXPECT_EQ(rig.machine.view().status, GPUIOV_STATUS_IDLING);
    EXPECT_EQ(rig.machine.next_due(), Nanoseconds(std::chrono::milliseconds(50)));
    EXPECT_TRUE(rig.engine.is_running);
    rig.clock.advance(std::chrono::milliseconds(50));
    rig.machine.process();
    EXPECT_FALSE(rig.is_executing());
    EXPECT_EQ(rig.machine.view().status, GPUIOV_STATUS_DONE);
    EXPECT_EQ(rig.machine.next_due(), std::nullopt);
}

TEST(WorldSwitch, AWrongStatusStallsTheVf) {
    SwitchRig rig;
    rig.run_vf(1);
    ASSERT_TRUE(rig.faults.add({VfId{1}, FaultPoint::Idle, FaultEffect::Wrong}));
    EXPECT_EQ(rig.command(GPUIOV_CMD_IDLE, 1), GPUIOV_STATUS_ABORTED);
    EXPECT_FALSE(rig.is_executing());
    EXPECT_EQ(rig.machine.state(), S::Stalled);
    EXPECT_EQ(rig.command(GPUIOV_CMD_IDLE, 1), GPUIOV_STATUS_ABORTED);
}

TEST(WorldSwitch, AStuckCopyEngineDoesNotIdle) {
    SwitchRig rig;
    rig.run_vf(1);
    rig.engine.stuck = VfId{1};
    rig.machine.command(GPUIOV_COMMAND(GPUIOV_CMD_IDLE, fcn(1), 0));
    rig.machine.process();
    EXPECT_TRUE(rig.is_executing());
    EXPECT_EQ(rig.machine.state(), S::Stalled);
}

TEST(WorldSwitch, FlrDuringALateSaveLeavesOtherVfsRunning) {
    SwitchRig rig;
    rig.run_vf(1);
    ASSERT_TRUE(
        rig.faults.add({VfId{1}, FaultPoint::Save, FaultEffect::Late, 1, std::chrono::seconds(5)}));
    rig.machine.command(GPUIOV_COMMAND(GPUIOV_CMD_CONTEXT_SWITCH, fcn(1), fcn(2)));
    rig.machine.process();
    EXPECT_EQ(rig.machine.state(), S::Saving);
    rig.machine.reset(VfId{1}, [] {});
    EXPECT_EQ(rig.machine.view().status, GPUIOV_STATUS_ABORTED);
    rig.run_vf(2);
    EXPECT_EQ(rig.machine.view().function, VfId{2});
    EXPECT_EQ(rig.machine.state(), S::Running);
}

TEST(WorldSwitch, AResetOfAnotherVfDoesNotTouchTheRunningOne) {
    SwitchRig rig;
    rig.run_vf(1);
    (void)rig.engine.take_calls();
    rig.machine.reset(VfId{2}, [] {});
    EXPECT_THAT(rig.engine.calls, IsEmpty());
    EXPECT_EQ(rig.machine.state(), S::Running);
}

TEST(WorldSwitch, AResetOfTheRunningVfIsRecordedAsSuch) {
    SwitchRig rig;
    rig.run_vf(1);
    rig.machine.reset(VfId{1}, [] {});
    ASSERT_EQ(rig.engine.log.size(), 1u);
    EXPECT_EQ(rig.engine.log[0].reason, VGPU_RUN_END_RESET);
    EXPECT_FALSE(rig.engine.is_running);
}

TEST(WorldSwitch, StateOfARunningVfIsNotHandedOut) {
    SwitchRig rig;
    rig.run_vf(1);
    bool is_done = false;
    EXPECT_FALSE(rig.machine.with_parked(VfId{1}, [&] { is_done = true; }));
    EXPECT_FALSE(is_done);
    EXPECT_TRUE(rig.machine.with_parked(VfId{2}, [&] { is_done = true; }));
    (void)rig.command(GPUIOV_CMD_IDLE, 1);
    EXPECT_TRUE(rig.machine.with_parked(VfId{1}, [] {}));
    EXPECT_TRUE(is_done);
}

/// Random commands and events never reach Mismatch and never run a VF that was not loaded.
TEST(WorldSwitch, RandomCommandsNeverConfuseTheMachine) {
    SwitchRig rig;
    std::uint64_t seed = 1;
    const auto next = [&seed](std::uint64_t limit) {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        return static_cast<unsigned>((seed >> 33) % limit);
    };
    spdlog::set_level(spdlog::level::off);  // thousands of refusals
    for (int i = 0; i < 20000; ++i) {
        rig.clock.advance(Nanoseconds{1});
        const unsigned what = next(10);
        if (what == 0 && rig.engine.is_running) rig.machine.quantum_expired(rig.engine.end_run());
        if (what == 1) rig.machine.reset(VfId{static_cast<std::uint8_t>(1 + next(4))}, [] {});
        if (what == 2 && next(20) == 0)
            (void)rig.faults.add({VfId{static_cast<std::uint8_t>(1 + next(4))},
                                  static_cast<FaultPoint>(next(4)),
                                  static_cast<FaultEffect>(next(3)), 1, Nanoseconds{next(50)}});
        // mostly switches away from the function in the engine, else anything at all
        const auto held = rig.machine.view().function;
        const unsigned from = held ? GPUIOV_FCN_VF + raw(*held) - 1u : GPUIOV_FCN_PF;
        if (what > 5)
            rig.machine.command(
                GPUIOV_COMMAND(GPUIOV_CMD_CONTEXT_SWITCH, from, GPUIOV_FCN_VF + next(4)));
        if (what > 2 && what <= 5)
            rig.machine.command(
                GPUIOV_COMMAND(next(16), next(2) * 0x80 + next(6), next(2) * 0x80 + next(6)));
        rig.machine.process();
        ASSERT_NE(rig.machine.state(), S::Mismatch);
        ASSERT_EQ(rig.machine.state() == S::Empty, !rig.machine.view().function.has_value());
        if (rig.machine.state() == S::Empty) {
            ASSERT_FALSE(rig.engine.is_running);
        }
    }
    spdlog::set_level(spdlog::level::info);
    EXPECT_GT(rig.engine.log.size(), 100u);
}

}  // namespace
}  // namespace vgpu::softgpu::iov
