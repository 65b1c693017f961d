// SPDX-License-Identifier: MIT
//
// Global wave sync of processes: MAP_PROCESS gives it, and it holds while queues come and go. The
// kernel grid_meet is what a cooperative launch does: barriers of a whole grid.
#include <gtest/gtest.h>

#include "tests/unit/cp/cp_rig.h"

namespace vgpu::test {
namespace {

constexpr std::uint32_t kGroups = 8, kRounds = 20, kGiven = 64;

class CpWaveSync : public testing::Test {
protected:
    void SetUp() override {
        rig.start_kiq();
        rig.start_hiq();
        queue = rig.make_aql_queue();
        complete = rig.memory.allocate(kGroups * 4);
    }
    [[nodiscard]] CpRig::Process process(std::uint32_t wave_syncs = kGiven) const {
        return {.queues = {&queue}, .wave_syncs = wave_syncs};
    }
    /// The resource is made ready, then the grid meets; both are submitted, not run.
    void launch() {
        AqlKernel ready;
        ready.object = rig.load_kernel("grid_ready").descriptor;
        ready.arguments = rig.arguments(kGroups);
        ready.signal = ready_signal = rig.make_signal(1);
        rig.dispatch(queue, ready);
        AqlKernel meet;
        meet.object = rig.load_kernel("grid_meet").descriptor;
        meet.arguments =
            rig.arguments(rig.memory.allocate(kRounds * 4), complete, kGroups, kRounds);
        meet.group = {128, 1, 1};
        meet.grid = {kGroups * 128, 1, 1};
        meet.has_barrier = true;
        meet.signal = signal = rig.make_signal(1);
        rig.dispatch(queue, meet);
    }
    void expect_complete() {
        EXPECT_EQ(rig.signal_value(signal), 0);
        EXPECT_EQ(rig.memory.download<std::uint32_t>(complete, kGroups),
                  std::vector<std::uint32_t>(kGroups, kRounds));
    }

    CpRig rig{{.memory_bytes = 64u << 20}};
    Ring queue;
    std::uint64_t complete = 0;
    std::uint64_t ready_signal = 0;
    std::uint64_t signal = 0;
};

TEST_F(CpWaveSync, GroupsOfAGridMeetRoundAfterRound) {
    launch();
    rig.run_list({process()});
    rig.pump();
    expect_complete();
}

TEST_F(CpWaveSync, WithoutItTheInstructionsAreIllegal) {
    launch();
    rig.run_list({process(0)});
    rig.pump();
    EXPECT_EQ(rig.cp.counters().illegal_instructions, 1u);
    EXPECT_EQ(static_cast<std::uint32_t>(rig.signal_value(queue.inactive_signal)),
              AQL_QUEUE_ERROR_ILLEGAL_INSTRUCTION);
}

TEST_F(CpWaveSync, CountersStayWhileQueuesAreOffTheHardware) {
    Random random(7);
    launch();
    rig.run_list({process()});
    for (unsigned i = 0; i < 200 && rig.signal_value(signal) != 0; ++i) {
        rig.pump_turns(1 + random.next() % 12, 1 + random.next() % 200);
        const std::uint64_t fence = rig.unmap_all();
        rig.pump();
        ASSERT_EQ(rig.memory.get<std::uint64_t>(fence), CpRig::kFenceDone);
        rig.run_list({process()});
    }
    rig.pump();
    expect_complete();
}

TEST_F(CpWaveSync, CountersFollowTheProcessToAnotherVmid) {
    launch();
    rig.run_list({process()});
    while (rig.signal_value(ready_signal) != 0) ASSERT_TRUE(rig.pump_once());
    // Enough others, one after the other, to take every VMID, this process's too.
    std::vector<Ring> rings(8);
    std::vector<CpRig::Process> others;
    for (Ring& ring : rings) {
        ring = rig.make_aql_queue();
        others.push_back({.pasid = static_cast<std::uint16_t>(100 + others.size()),
                          .queues = {&ring},
                          .wave_syncs = kGiven});
    }
    rig.unmap_all();
    rig.pump();
    rig.run_list(others);
    rig.pump();
    rig.unmap_all();
    rig.pump();
    others.resize(4);
    others.push_back(process());
    rig.run_list(others);
    rig.pump();
    expect_complete();
}

TEST_F(CpWaveSync, ProcessesDoNotMeetEachOther) {
    Ring other_queue = rig.make_aql_queue();
    launch();
    rig.run_list({process()});
    while (rig.signal_value(ready_signal) != 0) ASSERT_TRUE(rig.pump_once());
    // The other process makes its own resource ready for one group: ours keeps its eight.
    AqlKernel other;
    other.object = rig.load_kernel("grid_ready").descriptor;
    other.arguments = rig.arguments(1u);
    other.signal = rig.make_signal(1);
    rig.dispatch(other_queue, other);
    rig.run_list({{.pasid = 2, .queues = {&other_queue}, .wave_syncs = kGiven}, process()});
    rig.pump();
    EXPECT_EQ(rig.signal_value(other.signal), 0);
    expect_complete();
}

TEST_F(CpWaveSync, WaitingWavesSurviveAWorldSwitch) {
    launch();
    rig.run_list({process()});
    Random random(3);
    for (unsigned i = 0; i < 400 && rig.signal_value(signal) != 0; ++i) {
        rig.pump_turns(1 + random.next() % 6, 1 + random.next() % 200);
        std::vector<std::byte> stream;
        softgpu::Writer out(stream);
        rig.cp.save(out);
        rig.cp.poison();
        softgpu::Reader in(stream);
        ASSERT_TRUE(rig.cp.load(in));
    }
    rig.pump();
    expect_complete();
}

}  // namespace
}  // namespace vgpu::test
