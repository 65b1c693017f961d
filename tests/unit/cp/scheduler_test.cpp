// SPDX-License-Identifier: MIT
//
// Mapping and unmapping queues, run lists, preemption with kernels in flight.
#include <gtest/gtest.h>

#include <algorithm>

#include "pf-driver/hw/mqd.h"
#include "pf-driver/hw/tc_op.h"
#include "tests/support/kernel_oracle.h"
#include "tests/unit/cp/cp_rig.h"

namespace vgpu::test {
namespace {

using softgpu::cp::SdmaEngine;
using std::chrono::milliseconds;

class Scheduler : public testing::Test {
protected:
    void SetUp() override { rig.start_kiq(); }
    std::uint32_t mqd(const Ring& ring, hw_reg which) {
        return rig.memory.get<std::uint32_t>(ring.mqd + std::uint64_t{MQD_DWORD_OF(which)} * 4);
    }
    bool is_done(std::uint64_t fence) {
        return rig.memory.get<std::uint64_t>(fence) == CpRig::kFenceDone;
    }
    /// An empty packet that completes when the queue is on the hardware.
    std::uint64_t token(Ring& ring) {
        const std::uint64_t signal = rig.make_signal(1);
        rig.barrier(ring, AQL_TYPE_BARRIER_AND, {}, signal);
        return signal;
    }
    CpRig rig{{.memory_bytes = 64u << 20}};
};

TEST_F(Scheduler, QueueMappedWithWorkStartsAtOnce) {
    rig.start_hiq();
    Ring queue = rig.make_aql_queue();
    const std::uint64_t signal = token(queue);
    rig.map(queue);
    rig.pump();
    EXPECT_EQ(rig.signal_value(signal), 0);
}

TEST_F(Scheduler, MapProcessGivesTheProcessAVmidAndItsPageTable) {
    rig.start_hiq(0x0300);
    Ring queue = rig.make_aql_queue();
    rig.map(queue);
    rig.pump();
    EXPECT_EQ(rig.vf.pasids[8], CpRig::kPasid);
    EXPECT_EQ(rig.vf.roots[8], 0x1001u);
    rig.write(REG_GC_GRBM_GFX_CNTL, HW_PREP(GRBM_GFX_CNTL, VMID, 8));
    EXPECT_EQ(rig.read(REG_GC_SH_MEM_BASES), 0x00010002u);
}

TEST_F(Scheduler, UnmapWritesPointersBackAndTheFenceFollows) {
    rig.start_hiq();
    Ring queue = rig.make_aql_queue();
    (void)token(queue);
    (void)token(queue);
    rig.map(queue);
    rig.pump();
    const std::uint64_t fence = rig.unmap_all();
    rig.pump();
    EXPECT_TRUE(is_done(fence));
    EXPECT_FALSE(rig.cp.owns_doorbell(queue.doorbell));
    EXPECT_EQ(mqd(queue, REG_GC_CP_HQD_PQ_RPTR), 2u * 16);
    EXPECT_EQ(mqd(queue, REG_GC_CP_HQD_PQ_WPTR_LO), 2u);
}

TEST_F(Scheduler, DoorbellOfAnUnmappedQueueIsIgnoredAndSeenAtTheNextMap) {
    rig.start_hiq();
    Ring queue = rig.make_aql_queue();
    rig.map(queue);
    rig.pump();
    rig.unmap_all();
    rig.pump();
    const std::uint64_t signal = token(queue);
    rig.ring_doorbell(queue);
    rig.pump();
    EXPECT_EQ(rig.signal_value(signal), 1);
    rig.map(queue);
    rig.pump();
    EXPECT_EQ(rig.signal_value(signal), 0);
}

TEST_F(Scheduler, UnmapByPasidLeavesOtherProcessesAlone) {
    rig.start_hiq();
    Ring mine = rig.make_aql_queue();
    Ring other = rig.make_aql_queue();
    rig.run_list({{1, 10, {&mine}}, {2, 10, {&other}}});
    rig.pump();
    rig.submit(rig.hiq,
               pm4(PM4_OP_UNMAP_QUEUES, {HW_PREP(UNMAP_QUEUES_1, QUEUE_SEL, PM4_UNMAP_BY_PASID) |
                                             HW_PREP(UNMAP_QUEUES_1, ACTION, PM4_UNMAP_RESET),
                                         1, 0, 0, 0}));
    rig.pump();
    EXPECT_FALSE(rig.cp.owns_doorbell(mine.doorbell));
    EXPECT_TRUE(rig.cp.owns_doorbell(other.doorbell));
}

TEST_F(Scheduler, UnmapAllCoversSdmaQueuesAndLeavesKernelQueues) {
    rig.start_hiq();
    Ring sdma = rig.make_aql_queue();
    Words list = pm4(PM4_OP_MAP_PROCESS, {7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}) +
                 pm4(PM4_OP_MAP_QUEUES,
                     {HW_PREP(MAP_QUEUES_1, QUEUE_SEL, 1) |
                          HW_PREP(MAP_QUEUES_1, ENGINE_SEL, PM4_ENGINE_SDMA1),
                      HW_PREP(MAP_QUEUES_2, DOORBELL_OFFSET, softgpu::raw(sdma.doorbell)),
                      lo(sdma.mqd), hi(sdma.mqd), lo(sdma.wptr_poll), hi(sdma.wptr_poll)});
    const std::uint64_t va = rig.memory.upload(list);
    rig.submit(rig.hiq, pm4(PM4_OP_RUN_LIST, {lo(va), hi(va),
                                              HW_PREP(RUN_LIST_3, IB_SIZE,
                                                      static_cast<std::uint32_t>(list.size()))}));
    rig.pump();
    ASSERT_EQ(rig.vf.sdma.size(), 1u);
    EXPECT_EQ(rig.vf.sdma[0].first, SdmaEngine::Sdma1);
    EXPECT_EQ(rig.vf.sdma[0].second.pasid, 7);
    const std::uint64_t fence = rig.unmap_all();
    rig.pump();
    EXPECT_TRUE(is_done(fence));
    EXPECT_TRUE(rig.vf.sdma.empty());
    EXPECT_TRUE(rig.cp.owns_doorbell(rig.hiq.doorbell));
    EXPECT_TRUE(rig.cp.owns_doorbell(rig.kiq.doorbell));
}

TEST_F(Scheduler, KernelQueueIsUnmappedByDoorbell) {
    rig.start_hiq();
    rig.submit(
        rig.kiq,
        pm4(PM4_OP_UNMAP_QUEUES,
            {HW_PREP(UNMAP_QUEUES_1, ACTION, PM4_UNMAP_RESET) |
                 HW_PREP(UNMAP_QUEUES_1, NUM_QUEUES, 1),
             HW_PREP(UNMAP_QUEUES_2, DOORBELL_OFFSET, softgpu::raw(rig.hiq.doorbell)), 0, 0, 0}));
    rig.pump();
    EXPECT_FALSE(rig.cp.owns_doorbell(rig.hiq.doorbell));
}

TEST_F(Scheduler, MoreProcessesThanVmidsTakeTurns) {
    rig.start_hiq(0x0300);  // two VMIDs
    std::vector<Ring> rings;
    for (int i = 0; i < 5; ++i) rings.push_back(rig.make_aql_queue());
    std::vector<std::uint64_t> signals;
    std::vector<CpRig::Process> processes;
    for (std::size_t i = 0; i < rings.size(); ++i) {
        signals.push_back(token(rings[i]));
        processes.push_back({static_cast<std::uint16_t>(i + 1), 10, {&rings[i]}});
    }
    rig.run_list(processes, CpRig::Chain::Yes);
    rig.pump();
    EXPECT_EQ(rig.signal_value(signals[1]), 0);
    EXPECT_EQ(rig.signal_value(signals[2]), 1) << "no VMID before a quantum is over";
    EXPECT_FALSE(rig.cp.has_work());
    EXPECT_TRUE(rig.cp.needs_polling());
    for (int i = 0; i < 6; ++i) {
        rig.clock.advance(milliseconds(11));
        rig.pump();
    }
    for (const std::uint64_t signal : signals) EXPECT_EQ(rig.signal_value(signal), 0);
    // and the first comes back: work queued while it was off is done
    const std::uint64_t again = token(rings[0]);
    for (int i = 0; i < 6; ++i) {
        rig.clock.advance(milliseconds(11));
        rig.pump();
    }
    EXPECT_EQ(rig.signal_value(again), 0);
    const std::uint64_t fence = rig.unmap_all();
    rig.pump();
    EXPECT_TRUE(is_done(fence));
    EXPECT_FALSE(rig.cp.needs_polling());
}

TEST_F(Scheduler, MoreQueuesThanSlotsTakeTurns) {
    rig.start_hiq(0xff00, 0x6);  // two slots
    std::vector<Ring> rings;
    for (int i = 0; i < 5; ++i) rings.push_back(rig.make_aql_queue());
    CpRig::Process process{1, 10, {}};
    std::vector<std::uint64_t> signals;
    for (Ring& ring : rings) {
        signals.push_back(token(ring));
        process.queues.push_back(&ring);
    }
    rig.run_list({process}, CpRig::Chain::Yes);
    for (int i = 0; i < 8; ++i) {
        rig.pump();
        rig.clock.advance(milliseconds(11));
    }
    for (const std::uint64_t signal : signals) EXPECT_EQ(rig.signal_value(signal), 0);
}

TEST_F(Scheduler, QueueBehindManyThatBeginToWaitIsReachedWithoutAnotherDoorbell) {
    rig.start_hiq();
    constexpr unsigned kWaiting = 20;  // more than the packets of a step
    std::vector<Ring> rings;
    for (unsigned i = 0; i <= kWaiting; ++i) rings.push_back(rig.make_pm4_queue(64, 0));
    CpRig::Process process;
    for (const Ring& ring : rings) process.queues.push_back(&ring);
    rig.run_list({process});
    rig.pump();
    const std::uint64_t cell = rig.memory.allocate(16);
    for (unsigned i = 0; i < kWaiting; ++i)
        rig.submit(rings[i],
                   pm4(PM4_OP_WAIT_REG_MEM, {HW_PREP(WAIT_REG_MEM_1, FUNCTION, PM4_COMPARE_EQUAL) |
                                                 HW_PREP(WAIT_REG_MEM_1, MEM_SPACE, 1),
                                             lo(cell), hi(cell), 1, ~0u, 10}));
    rig.submit(rings.back(), write_data(cell + 8, 1));
    rig.pump();
    EXPECT_EQ(rig.memory.get<std::uint32_t>(cell + 8), 1u);
}

TEST_F(Scheduler, RunListWithoutSenseIsRefusedAndTheSchedulerGoesOn) {
    rig.start_hiq();
    const std::uint64_t va = rig.memory.upload(Words{0xc0ffee, 1, 2, 3});
    rig.submit(rig.hiq, pm4(PM4_OP_RUN_LIST, {lo(va), hi(va), HW_PREP(RUN_LIST_3, IB_SIZE, 4)}));
    rig.pump();
    EXPECT_EQ(rig.cp.counters().bad_packets, 1u);
    const std::uint64_t fence = rig.unmap_all();
    rig.pump();
    EXPECT_TRUE(is_done(fence));
}

TEST_F(Scheduler, RunListChainedToItselfWithoutEntriesEnds) {
    rig.start_hiq();
    rig.run_list({}, CpRig::Chain::Yes);
    rig.pump();
    EXPECT_FALSE(rig.cp.has_work());
    EXPECT_FALSE(rig.cp.needs_polling());
}

TEST_F(Scheduler, InvalidateTlbsNamesTheProcess) {
    rig.submit(rig.kiq, pm4(PM4_OP_INVALIDATE_TLBS, {HW_PREP(INVALIDATE_TLBS_1, PASID, 0x8005)}));
    rig.pump();
    ASSERT_EQ(rig.vf.invalidated.size(), 1u);
    EXPECT_EQ(rig.vf.invalidated[0], 0x8005);
}

// --- kernels in flight --------------------------------------------------------------------------

class Preemption : public Scheduler {
protected:
    static constexpr std::uint32_t kItems = 1024;
    static constexpr std::uint32_t kRounds = 300;
    void SetUp() override {
        Scheduler::SetUp();
        rig.start_hiq();
    }
    /// An UNMAP_QUEUES that waits for a kernel that never ends; its fence.
    std::uint64_t unmap_endless(Ring& queue) {
        AqlKernel kernel;
        kernel.object = rig.load_kernel("endless").descriptor;
        kernel.arguments = rig.arguments(rig.memory.allocate(64));
        rig.dispatch(queue, kernel);
        rig.map(queue);
        rig.pump_turns(20, 1000);
        const std::uint64_t fence = rig.unmap_all();
        rig.pump_turns(20, 1000);
        EXPECT_FALSE(is_done(fence));
        return fence;
    }
    void start_long(Ring& queue) {
        const KernelCode code = rig.load_kernel("long_running");
        result = rig.memory.allocate(kItems * 4);
        AqlKernel kernel;
        kernel.object = code.descriptor;
        kernel.arguments = rig.arguments(result, rig.memory.allocate(kItems * 4), kRounds);
        kernel.group = {256, 1, 1};
        kernel.grid = {kItems, 1, 1};
        kernel.signal = signal = rig.make_signal(1);
        rig.dispatch(queue, kernel);
        rig.map(queue);
    }
    std::uint64_t result = 0;
    std::uint64_t signal = 0;
};

TEST_F(Preemption, KernelInFlightContinuesBitExactAfterAnotherMap) {
    Random random(1);
    Ring queue = rig.make_aql_queue();
    start_long(queue);
    unsigned preemptions = 0;
    for (unsigned i = 0; i < 40 && rig.signal_value(signal) != 0; ++i) {
        rig.pump_turns(1 + random.next() % 8, 1 + random.next() % 3000);
        const std::uint64_t fence = rig.unmap_all();
        rig.pump();
        ASSERT_TRUE(is_done(fence));
        preemptions +=
            mqd(queue, REG_GC_CP_HQD_WG_STATE_OFFSET) > mqd(queue, REG_GC_CP_HQD_CNTL_STACK_SIZE);
        EXPECT_FALSE(rig.cp.has_work()) << "nothing of the queue is left in the device";
        rig.map(queue);
    }
    rig.pump();
    EXPECT_GT(preemptions, 5u);
    EXPECT_EQ(rig.signal_value(signal), 0);
    EXPECT_EQ(rig.memory.download<std::uint32_t>(result, kItems),
              oracle::long_running(kItems, kRounds));
    EXPECT_EQ(rig.cp.counters().workgroups, kItems / 256);
}

/// More processes than VMIDs, each with a kernel much longer than its quantum.
TEST_F(Scheduler, KernelsOfProcessesThatTakeTurnsAreBitExact) {
    constexpr std::uint32_t kItems = 512;
    constexpr std::uint32_t kRounds = 200;
    rig.start_hiq(0x0300);  // two VMIDs
    const KernelCode code = rig.load_kernel("long_running");
    struct Job {
        Ring queue;
        std::uint64_t result;
        std::uint64_t signal;
    };
    std::vector<Job> jobs;
    for (int i = 0; i < 5; ++i) {
        Job job{rig.make_aql_queue(), rig.memory.allocate(kItems * 4), rig.make_signal(1)};
        AqlKernel kernel;
        kernel.object = code.descriptor;
        kernel.arguments = rig.arguments(job.result, rig.memory.allocate(kItems * 4), kRounds);
        kernel.group = {256, 1, 1};
        kernel.grid = {kItems, 1, 1};
        kernel.signal = job.signal;
        rig.dispatch(job.queue, kernel);
        jobs.push_back(job);
    }
    std::vector<CpRig::Process> processes;
    for (std::size_t i = 0; i < jobs.size(); ++i)
        processes.push_back({static_cast<std::uint16_t>(i + 1), 10, {&jobs[i].queue}});
    rig.run_list(processes, CpRig::Chain::Yes);
    unsigned saves = 0;
    std::vector<bool> was_saved(jobs.size());
    const auto is_pending = [&](const Job& job) { return rig.signal_value(job.signal) != 0; };
    for (int i = 0; i < 2000 && std::ranges::any_of(jobs, is_pending); ++i) {
        rig.pump_turns(10, 500);
        rig.clock.advance(milliseconds(11));
        for (std::size_t j = 0; j < jobs.size(); ++j) {
            const bool is_saved = mqd(jobs[j].queue, REG_GC_CP_HQD_WG_STATE_OFFSET) >
                                  mqd(jobs[j].queue, REG_GC_CP_HQD_CNTL_STACK_SIZE);
            saves += is_saved && !was_saved[j] ? 1 : 0;
            was_saved[j] = is_saved;
        }
    }
    EXPECT_GE(saves, jobs.size()) << "kernels were saved in flight";
    for (const Job& job : jobs) {
        EXPECT_EQ(rig.signal_value(job.signal), 0);
        EXPECT_EQ(rig.memory.download<std::uint32_t>(job.result, kItems),
                  oracle::long_running(kItems, kRounds));
    }
}

TEST_F(Preemption, RetiredInstructionsAreTheSameWithAndWithoutPreemption) {
    Ring queue = rig.make_aql_queue();
    start_long(queue);
    rig.pump();
    const std::uint64_t straight = rig.cp.counters().wave_instructions;
    CpRig other{{.memory_bytes = 64u << 20}};
    other.start_kiq();
    other.start_hiq();
    Ring again = other.make_aql_queue();
    const KernelCode code = other.load_kernel("long_running");
    AqlKernel kernel;
    kernel.object = code.descriptor;
    kernel.arguments = other.arguments(other.memory.allocate(kItems * 4),
                                       other.memory.allocate(kItems * 4), kRounds);
    kernel.group = {256, 1, 1};
    kernel.grid = {kItems, 1, 1};
    other.dispatch(again, kernel);
    for (int i = 0; i < 20; ++i) {
        other.map(again);
        other.pump_turns(3, 777);
        other.unmap_all();
        other.pump();
    }
    other.map(again);
    other.pump();
    EXPECT_EQ(other.cp.counters().wave_instructions, straight);
}

TEST_F(Preemption, EndlessKernelLeavesWithinItsSaveArea) {
    Ring queue = rig.make_aql_queue();
    const KernelCode code = rig.load_kernel("endless");
    AqlKernel kernel;
    kernel.object = code.descriptor;
    const std::uint64_t progress = rig.memory.allocate(64);
    kernel.arguments = rig.arguments(progress);
    rig.dispatch(queue, kernel);
    rig.map(queue);
    rig.pump_turns(20, 1000);
    const std::uint64_t fence = rig.unmap_all();
    rig.pump();
    ASSERT_TRUE(is_done(fence));
    const auto before = rig.memory.get<std::uint32_t>(progress);
    rig.map(queue);
    rig.pump_turns(20, 1000);
    EXPECT_GT(rig.memory.get<std::uint32_t>(progress), before);
}

TEST_F(Preemption, WithoutSaveAreaTheKernelRunsOutFirst) {
    Ring queue = rig.make_aql_queue(64, 0);
    start_long(queue);
    rig.pump_turns(3, 100);
    const std::uint64_t later = rig.make_signal(1);
    const std::uint64_t fence = rig.unmap_all();
    rig.barrier(queue, AQL_TYPE_BARRIER_AND, {}, later);
    rig.ring_doorbell(queue);
    rig.pump();
    EXPECT_TRUE(is_done(fence));
    EXPECT_EQ(rig.signal_value(signal), 0);
    EXPECT_EQ(rig.signal_value(later), 1) << "nothing new is started";
}

TEST_F(Preemption, WithoutSaveAreaAVendorIbRunsOutOnceAndItsPacketCompletes) {
    Ring queue = rig.make_aql_queue(64, 0);
    const std::uint64_t count = rig.memory.allocate(8);
    const std::uint64_t flag = rig.memory.allocate(8);
    const Words words =
        pm4(PM4_OP_ATOMIC_MEM,
            {HW_PREP(ATOMIC_MEM_1, ATOMIC, TC_OP_ADD_64), lo(count), hi(count), 1, 0, 0, 0, 0}) +
        pm4(PM4_OP_WAIT_REG_MEM, {HW_PREP(WAIT_REG_MEM_1, FUNCTION, PM4_COMPARE_EQUAL) |
                                      HW_PREP(WAIT_REG_MEM_1, MEM_SPACE, 1),
                                  lo(flag), hi(flag), 1, ~0u, 10});
    const std::uint64_t done = rig.make_signal(1);
    rig.vendor_ib(queue, words, done);
    rig.map(queue);
    rig.pump();
    const std::uint64_t fence = rig.unmap_all();
    rig.pump();
    ASSERT_FALSE(is_done(fence));
    EXPECT_FALSE(rig.cp.has_work());
    rig.memory.put(flag, 1u);
    EXPECT_TRUE(rig.cp.has_work());
    rig.pump();
    ASSERT_TRUE(is_done(fence));
    EXPECT_EQ(rig.signal_value(done), 0);
    EXPECT_EQ(rig.memory.get<std::uint64_t>(queue.report), 1u);
    rig.map(queue);
    rig.pump();
    EXPECT_EQ(rig.memory.get<std::uint64_t>(count), 1u);
}

TEST_F(Preemption, WithoutSaveAreaAQueueThatHaltedInAnIbLeaves) {
    Ring queue = rig.make_pm4_queue(1024, 0);
    const Words cut_short{PM4_HEADER_OF(PM4_OP_WRITE_DATA, 4), 0, 0};
    const std::uint64_t va = rig.memory.upload(cut_short);
    rig.map(queue);
    rig.pump();
    rig.submit(queue, pm4(PM4_OP_INDIRECT_BUFFER,
                          {lo(va), hi(va), HW_PREP(INDIRECT_BUFFER_3, IB_SIZE, 3)}));
    rig.pump();
    ASSERT_EQ(rig.cp.counters().bad_packets, 1u);
    const std::uint64_t fence = rig.unmap_all();
    rig.pump();
    EXPECT_TRUE(is_done(fence));
}

TEST(Unmap, DrainingQueueStaysMappedWhileAWorkerRunsAGroupOfADroppedKernel) {
    CpRig rig{{.memory_bytes = 32u << 20, .workers = 2}};
    rig.start_kiq();
    rig.start_hiq();
    Ring queue = rig.make_aql_queue(64, 0);
    AqlKernel kernel;
    kernel.object = rig.load_kernel("endless").descriptor;
    kernel.arguments = rig.arguments(rig.memory.allocate(64));
    kernel.grid = {128, 1, 1};
    rig.dispatch(queue, kernel);
    rig.map(queue);
    rig.pump_turns(20, 1000);
    const std::uint64_t fence = rig.unmap_all();
    rig.pump_turns(4, 1000);
    std::atomic<bool> stop{false};
    const auto faulting = rig.cp.take_group(0, stop);
    const auto running = rig.cp.take_group(1, stop);
    ASSERT_TRUE(faulting && running) << "it drains";
    softgpu::isa::RunResult result;
    result.reason = softgpu::isa::StopReason::Fault;
    rig.cp.release(*faulting, result, {});
    for (int i = 0; i < 4; ++i) (void)rig.cp.step();
    EXPECT_TRUE(rig.cp.owns_doorbell(queue.doorbell));
    EXPECT_NE(rig.memory.get<std::uint64_t>(fence), CpRig::kFenceDone);
    result.reason = softgpu::isa::StopReason::Stopped;
    rig.cp.release(*running, result, {});
    rig.pump();
    EXPECT_EQ(rig.memory.get<std::uint64_t>(fence), CpRig::kFenceDone);
}

TEST_F(Preemption, QueueThatNeverStopsIsReportedInTheSchedulersMqd) {
    Ring queue = rig.make_aql_queue(64, 0);
    const std::uint64_t fence = unmap_endless(queue);
    rig.clock.advance(milliseconds(4100));
    rig.pump_turns(20, 1000);
    EXPECT_TRUE(is_done(fence));
    EXPECT_EQ(rig.memory.get<std::uint32_t>(rig.hiq.mqd + MQD_DOORBELL_ID0 * 4),
              softgpu::raw(queue.doorbell));
    EXPECT_TRUE(rig.cp.owns_doorbell(queue.doorbell));
}

TEST_F(Preemption, WaitForTheEngineDoesNotCountForTheTimeLimitOfAnUnmap) {
    Ring queue = rig.make_aql_queue(64, 0);
    const std::uint64_t fence = unmap_endless(queue);
    rig.clock.advance(milliseconds(3000));
    rig.cp.begin_wait();
    rig.clock.advance(milliseconds(2000));
    rig.cp.begin_wait();
    rig.clock.advance(milliseconds(2000));
    rig.cp.end_wait();
    rig.pump_turns(20, 1000);
    EXPECT_FALSE(is_done(fence));
    rig.cp.end_wait();
    rig.clock.advance(milliseconds(1100));
    rig.pump_turns(20, 1000);
    EXPECT_TRUE(is_done(fence));
}

TEST_F(Scheduler, WaitForTheEngineDoesNotCountForTheQuantumOfAProcess) {
    rig.start_hiq(0x0100);  // one VMID
    Ring first = rig.make_aql_queue();
    Ring second = rig.make_aql_queue();
    const std::uint64_t signal = token(second);
    rig.run_list({{1, 10, {&first}}, {2, 10, {&second}}}, CpRig::Chain::Yes);
    rig.pump();
    rig.cp.begin_wait();
    rig.clock.advance(milliseconds(11));
    rig.cp.end_wait();
    rig.pump();
    EXPECT_EQ(rig.signal_value(signal), 1);
    rig.clock.advance(milliseconds(11));
    rig.pump();
    EXPECT_EQ(rig.signal_value(signal), 0);
}

TEST_F(Scheduler, ProcessThatCouldNotBeEvictedIsMappedAgain) {
    rig.start_hiq(0x0100);  // one VMID
    Ring endless = rig.make_aql_queue(64, 0);
    Ring later = rig.make_aql_queue();
    Ring other = rig.make_aql_queue();
    AqlKernel kernel;
    kernel.object = rig.load_kernel("endless").descriptor;
    kernel.arguments = rig.arguments(rig.memory.allocate(64));
    rig.dispatch(endless, kernel);
    rig.run_list({{1, 10, {&endless}}, {2, 10, {&other}}}, CpRig::Chain::Yes);
    rig.pump_turns(20, 1000);
    rig.clock.advance(milliseconds(11));  // the eviction begins, and cannot end
    rig.pump_turns(20, 1000);
    const std::uint64_t fence = rig.unmap_all();
    rig.pump_turns(20, 1000);
    rig.clock.advance(milliseconds(4100));
    rig.pump_turns(20, 1000);
    ASSERT_TRUE(is_done(fence));
    const std::uint64_t signal = token(later);
    rig.run_list({{1, 10, {&endless, &later}}});
    rig.pump_turns(20, 1000);
    EXPECT_EQ(rig.signal_value(signal), 0);
}

TEST_F(Preemption, ResetDropsTheKernel) {
    Ring queue = rig.make_aql_queue();
    start_long(queue);
    rig.pump_turns(5, 100);
    const std::uint64_t fence = rig.unmap_all(PM4_UNMAP_RESET);
    rig.pump();
    EXPECT_TRUE(is_done(fence));
    EXPECT_EQ(rig.signal_value(signal), 1);
    EXPECT_FALSE(rig.cp.has_work());
    EXPECT_EQ(mqd(queue, REG_GC_CP_HQD_WG_STATE_OFFSET), mqd(queue, REG_GC_CP_HQD_CNTL_STACK_SIZE));
}

TEST_F(Preemption, ForgedSaveAreaIsRefusedOrHarmless) {
    Random random(3);
    for (int round = 0; round < 60; ++round) {
        CpRig fresh{{.memory_bytes = 32u << 20}};
        fresh.start_kiq();
        fresh.start_hiq();
        Ring queue = fresh.make_aql_queue();
        const KernelCode code = fresh.load_kernel("long_running");
        AqlKernel kernel;
        kernel.object = code.descriptor;
        kernel.arguments =
            fresh.arguments(fresh.memory.allocate(4096), fresh.memory.allocate(4096), 20u);
        kernel.grid = {128, 1, 1};
        fresh.dispatch(queue, kernel);
        fresh.map(queue);
        fresh.pump_turns(3, 50);
        fresh.unmap_all();
        fresh.pump();
        for (int i = 0; i < 8; ++i) {
            const std::uint64_t at = queue.save_area + 4096 + random.next() % (i < 4 ? 400 : 20000);
            fresh.memory.put(at, static_cast<std::uint8_t>(random.next()));
        }
        fresh.map(queue);
        fresh.pump_turns(2000, 500);
        const std::uint64_t fence = fresh.unmap_all(PM4_UNMAP_RESET);
        fresh.pump();
        ASSERT_EQ(fresh.memory.get<std::uint64_t>(fence), CpRig::kFenceDone);
    }
}

}  // namespace
}  // namespace vgpu::test
