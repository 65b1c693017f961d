// SPDX-License-Identifier: MIT
//
// AQL queues: kernels, barriers, signals, errors. aql_scratch_test.cpp has scratch memory.
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <set>

#include "tests/support/kernel_oracle.h"
#include "tests/unit/cp/aql_fixture.h"

namespace vgpu::test {
namespace {

TEST_F(Aql, KernelRunsAndItsSignalCountsDown) {
    std::vector<double> x(64);
    std::iota(x.begin(), x.end(), 0.0);
    const std::uint64_t data = rig.memory.upload(x);
    const std::uint64_t signal = rig.make_signal(1, 77);
    rig.dispatch(queue, increment(data, 64, signal));
    run();
    EXPECT_EQ(rig.memory.download<double>(data, 64), oracle::array_increment(x));
    EXPECT_EQ(rig.signal_value(signal), 0);
    EXPECT_EQ(header(0), AQL_TYPE_INVALID);
    EXPECT_EQ(read_index(), 1u);
    EXPECT_EQ(rig.cp.counters().dispatches, 1u);
    EXPECT_EQ(rig.cp.counters().workgroups, 2u);
}

TEST_F(Aql, EventMailboxIsWrittenBeforeTheInterrupt) {
    const std::uint64_t signal = rig.make_signal(1, 77);
    rig.barrier(queue, AQL_TYPE_BARRIER_AND, {}, signal);
    run();
    const auto stored = rig.memory.get<aql_signal>(signal);
    EXPECT_EQ(rig.memory.get<std::uint64_t>(stored.event_mailbox_ptr), 77u);
    ASSERT_EQ(rig.vf.count(IH_SOURCE_CP_EOP), 1u);
    const ih_iv_entry& entry = rig.vf.interrupts.back();
    EXPECT_EQ(entry.client_id, IH_CLIENT_GRBM_CP);
    EXPECT_EQ(entry.source_data[0], 77u);
    EXPECT_EQ(entry.pasid, CpRig::kPasid);
    EXPECT_GE(entry.vmid, CP_FIRST_KFD_VMID);
}

TEST_F(Aql, QueueStopsAtAnInvalidHeaderAndGoesOnWhenItIsRung) {
    rig.map(queue);
    rig.pump();
    queue.wptr = 1;  // reserved, not written
    run_now();
    EXPECT_EQ(read_index(), 0u);
    queue.wptr = 0;
    const std::uint64_t signal = rig.make_signal(1);
    rig.barrier(queue, AQL_TYPE_BARRIER_AND, {}, signal);
    run_now();
    EXPECT_EQ(rig.signal_value(signal), 0);
}

TEST_F(Aql, PacketWrittenBehindALaterOneIsFoundByItsOwnDoorbell) {
    rig.map(queue);
    rig.pump();
    const std::uint64_t first = rig.make_signal(1);
    const std::uint64_t second = rig.make_signal(1);
    queue.wptr = 1;
    rig.barrier(queue, AQL_TYPE_BARRIER_AND, {}, second);
    run_now();
    EXPECT_EQ(rig.signal_value(second), 1);
    queue.wptr = 0;
    rig.barrier(queue, AQL_TYPE_BARRIER_AND, {}, first);
    run_now();  // rings with index 0, lower than before
    EXPECT_EQ(rig.signal_value(first), 0);
    EXPECT_EQ(rig.signal_value(second), 0);
    EXPECT_EQ(read_index(), 2u);
}

TEST_F(Aql, BarrierAndWaitsForAllSignals) {
    const std::uint64_t a = rig.make_signal(1);
    const std::uint64_t b = rig.make_signal(1);
    const std::uint64_t done = rig.make_signal(1);
    rig.barrier(queue, AQL_TYPE_BARRIER_AND, {a, 0, b}, done);
    run();
    EXPECT_TRUE(rig.cp.needs_polling());
    EXPECT_FALSE(rig.cp.has_work());
    rig.memory.put(a + offsetof(aql_signal, value), std::int64_t{0});
    rig.pump();
    EXPECT_EQ(rig.signal_value(done), 1);
    rig.memory.put(b + offsetof(aql_signal, value), std::int64_t{0});
    EXPECT_TRUE(rig.cp.has_work());
    rig.pump();
    EXPECT_EQ(rig.signal_value(done), 0);
}

TEST_F(Aql, BarrierOrWaitsForOneSignal) {
    const std::uint64_t a = rig.make_signal(1);
    const std::uint64_t b = rig.make_signal(1);
    const std::uint64_t done = rig.make_signal(1);
    rig.barrier(queue, AQL_TYPE_BARRIER_OR, {a, b}, done);
    run();
    EXPECT_EQ(rig.signal_value(done), 1);
    rig.memory.put(b + offsetof(aql_signal, value), std::int64_t{0});
    rig.pump();
    EXPECT_EQ(rig.signal_value(done), 0);
}

TEST_F(Aql, BarrierValueComparesTheMaskedSignal) {
    const std::uint64_t signal = rig.make_signal(0x103);
    const std::uint64_t done = rig.make_signal(1);
    aql_barrier_value packet{};
    packet.header = AQL_TYPE_VENDOR;
    packet.format = AQL_VENDOR_BARRIER_VALUE;
    packet.signal = signal;
    packet.value = 5;
    packet.mask = 0xff;
    packet.condition = AQL_CONDITION_GTE;
    packet.completion_signal = done;
    rig.put_packet(queue, softgpu::bytes_of(packet));
    run();
    EXPECT_EQ(rig.signal_value(done), 1);
    rig.memory.put(signal + offsetof(aql_signal, value), std::int64_t{0x105});
    rig.pump();
    EXPECT_EQ(rig.signal_value(done), 0);
}

TEST_F(Aql, BarrierBitWaitsForEarlierKernels) {
    const std::uint64_t data = rig.memory.upload(std::vector<double>(64));
    const std::uint64_t signal = rig.make_signal(2);
    AqlKernel kernel = increment(data, 64, signal);
    rig.dispatch(queue, kernel);
    kernel.has_barrier = true;
    rig.dispatch(queue, kernel);
    run();
    EXPECT_EQ(rig.memory.download<double>(data, 64), std::vector<double>(64, 2.0));
    EXPECT_EQ(rig.signal_value(signal), 0);
}

TEST_F(Aql, KernelsWithoutBarrierBitRunAtTheSameTime) {
    const KernelCode code = rig.load_kernel("endless");
    AqlKernel endless;
    endless.object = code.descriptor;
    endless.arguments = rig.arguments(rig.memory.allocate(64));
    rig.dispatch(queue, endless);
    const std::uint64_t data = rig.memory.upload(std::vector<double>(32));
    const std::uint64_t signal = rig.make_signal(1);
    rig.dispatch(queue, increment(data, 32, signal));
    rig.map(queue);
    rig.pump_turns(50, 1000);
    EXPECT_EQ(rig.signal_value(signal), 0);
    EXPECT_EQ(read_index(), 0u) << "the packet in front has not completed";
    EXPECT_NE(header(1), AQL_TYPE_INVALID);
}

TEST_F(Aql, WorkGroupsTakeTurnsThoughEachTurnIsCutShort) {
    const KernelCode code = rig.load_kernel("endless");
    AqlKernel endless;
    endless.object = code.descriptor;
    endless.arguments = rig.arguments(rig.memory.allocate(64));
    endless.grid = {256, 1, 1};
    rig.dispatch(queue, endless);
    rig.map(queue);
    rig.pump_turns(10, 1000);
    std::atomic<bool> stop{false};
    softgpu::isa::RunResult stopped;
    stopped.reason = softgpu::isa::StopReason::Stopped;
    std::set<const void*> groups;
    for (int turn = 0; turn < 4; ++turn) {
        const auto lease = rig.cp.take_group(0, stop);
        ASSERT_TRUE(lease);
        groups.insert(lease->group);
        rig.cp.release(*lease, stopped, {});
    }
    EXPECT_EQ(groups.size(), 4u);
}

TEST_F(Aql, VendorIbInvalidatesCodeAndCompletes) {
    const Words ib =
        pm4(PM4_OP_ACQUIRE_MEM, {HW_PREP(ACQUIRE_MEM_1, SH_ICACHE_ACTION, 1), ~0u, 0xff, 0, 0, 10});
    const std::uint64_t done = rig.make_signal(1);
    rig.vendor_ib(queue, ib, done);
    run();
    EXPECT_EQ(rig.signal_value(done), 0);
    EXPECT_EQ(read_index(), 1u);
    EXPECT_EQ(error(), 0);
}

TEST_F(Aql, ProfiledQueueStampsItsSignals) {
    rig.memory.put(queue.queue + offsetof(aql_queue, queue_properties),
                   std::uint32_t{AQL_QUEUE_ENABLE_PROFILING});
    const std::uint64_t data = rig.memory.upload(std::vector<double>(32));
    const std::uint64_t signal = rig.make_signal(1);
    rig.clock.advance(std::chrono::microseconds(100));
    rig.dispatch(queue, increment(data, 32, signal));
    run();
    const auto stored = rig.memory.get<aql_signal>(signal);
    EXPECT_EQ(stored.start_ts, 2700u);
    EXPECT_GE(stored.end_ts, stored.start_ts);
}

TEST_F(Aql, ProfiledQueueStampsBarriersFromWhenTheyWereReached) {
    rig.memory.put(queue.queue + offsetof(aql_queue, queue_properties),
                   std::uint32_t{AQL_QUEUE_ENABLE_PROFILING});
    const std::uint64_t first = rig.make_signal(1);
    const std::uint64_t done = rig.make_signal(1);
    rig.clock.advance(std::chrono::microseconds(100));
    rig.barrier(queue, AQL_TYPE_BARRIER_AND, {first}, done);
    run();
    rig.clock.advance(std::chrono::microseconds(100));
    rig.memory.put(first + offsetof(aql_signal, value), std::int64_t{0});
    run();
    EXPECT_EQ(rig.signal_value(done), 0);
    const auto stored = rig.memory.get<aql_signal>(done);
    EXPECT_EQ(stored.start_ts, 2700u);
    EXPECT_EQ(stored.end_ts, 5400u);
}

TEST_F(Aql, UnprofiledQueueStampsNothing) {
    const std::uint64_t done = rig.make_signal(1);
    rig.clock.advance(std::chrono::microseconds(100));
    rig.barrier(queue, AQL_TYPE_BARRIER_AND, {}, done);
    run();
    EXPECT_EQ(rig.signal_value(done), 0);
    EXPECT_EQ(rig.memory.get<aql_signal>(done).end_ts, 0u);
}

struct BadDispatch {
    const char* name;
    void (*spoil)(AqlKernel&);
    std::int64_t code;
    ih_packet_error packet_error;
};

class AqlErrors : public Aql, public testing::WithParamInterface<BadDispatch> {};

INSTANTIATE_TEST_SUITE_P(
    All, AqlErrors,
    testing::Values(BadDispatch{"NoDimensions", [](AqlKernel& k) { k.dimensions = 0; },
                                AQL_QUEUE_ERROR_DIMENSIONS, IH_PACKET_ERROR_DIMENSIONS},
                    BadDispatch{"EmptyGrid", [](AqlKernel& k) { k.grid[1] = 0; },
                                AQL_QUEUE_ERROR_DIMENSIONS, IH_PACKET_ERROR_DIMENSIONS},
                    BadDispatch{"GroupTooLarge",
                                [](AqlKernel& k) {
                                    k.group = {1024, 2, 1};
                                },
                                AQL_QUEUE_ERROR_WORKGROUP_SIZE, IH_PACKET_ERROR_WORKGROUP_SIZE},
                    BadDispatch{"TooMuchLds",
                                [](AqlKernel& k) { k.group_bytes = AQL_MAX_LDS_BYTES + 1; },
                                AQL_QUEUE_ERROR_GROUP_MEMORY, IH_PACKET_ERROR_GROUP_MEMORY},
                    BadDispatch{"NullCode", [](AqlKernel& k) { k.object = 0; },
                                AQL_QUEUE_ERROR_CODE_OBJECT, IH_PACKET_ERROR_CODE_OBJECT},
                    BadDispatch{"CodeBeyondTheAddressSpace",
                                [](AqlKernel& k) { k.object = 1ull << 50; },
                                AQL_QUEUE_ERROR_APERTURE, IH_PACKET_ERROR_CODE_OBJECT},
                    BadDispatch{"MissingScratch", [](AqlKernel& k) { k.private_bytes = 64; },
                                AQL_QUEUE_ERROR_SCRATCH, IH_PACKET_ERROR_NONE}),
    [](const auto& parameters) { return parameters.param.name; });

TEST_P(AqlErrors, AreReportedThroughTheInactiveSignal) {
    const std::uint64_t data = rig.memory.upload(std::vector<double>(32));
    const std::uint64_t signal = rig.make_signal(1);
    AqlKernel kernel = increment(data, 32, signal);
    GetParam().spoil(kernel);
    rig.dispatch(queue, kernel);
    run();
    EXPECT_EQ(error(), GetParam().code);
    EXPECT_EQ(rig.signal_value(signal), 1);
    EXPECT_EQ(read_index(), 0u);
    EXPECT_EQ(rig.vf.interrupts.back().source_data[0], 0xeeu);
    // the queue is inactive, but leaves when it is told to
    const std::uint64_t fence = rig.unmap_all();
    rig.pump();
    EXPECT_EQ(rig.memory.get<std::uint64_t>(fence), CpRig::kFenceDone);
}

TEST_P(AqlErrors, OfPacketsAreToldToKfd) {
    Ring second = rig.make_aql_queue();
    AqlKernel kernel = increment(rig.memory.upload(std::vector<double>(32)), 32, 0);
    GetParam().spoil(kernel);
    rig.dispatch(second, kernel);
    rig.map(second);
    rig.pump();
    const bool is_notified = GetParam().packet_error != IH_PACKET_ERROR_NONE;
    ASSERT_EQ(rig.vf.count(IH_SOURCE_CP_BAD_OPCODE), is_notified ? 1u : 0u);
    if (!is_notified) return;
    const ih_iv_entry& entry = rig.vf.interrupts.front();
    ASSERT_EQ(entry.source_id, IH_SOURCE_CP_BAD_OPCODE);
    EXPECT_EQ(entry.client_id, IH_CLIENT_GRBM_CP);
    EXPECT_EQ(entry.pasid, CpRig::kPasid);
    EXPECT_GE(entry.vmid, CP_FIRST_KFD_VMID);
    const std::uint32_t doorbell_id = softgpu::raw(second.doorbell) / 2 & 0x3ffu;
    ASSERT_NE(doorbell_id, 0u);
    EXPECT_EQ(entry.source_data[0],
              doorbell_id | static_cast<std::uint32_t>(GetParam().packet_error) << 10);
}

TEST_F(Aql, AgentDispatchIsABadPacket) {
    aql_barrier packet{};
    packet.header = AQL_TYPE_AGENT_DISPATCH;
    rig.put_packet(queue, softgpu::bytes_of(packet));
    run();
    EXPECT_EQ(error(), AQL_QUEUE_ERROR_PACKET);
    EXPECT_EQ(rig.vf.interrupts.front().source_data[0] >> 10, IH_PACKET_ERROR_UNSUPPORTED + 0u);
}

TEST_F(Aql, UnknownVendorFormatIsABadVendorPacket) {
    aql_barrier_value packet{};
    packet.header = AQL_TYPE_VENDOR;
    packet.format = 99;
    rig.put_packet(queue, softgpu::bytes_of(packet));
    run();
    EXPECT_EQ(error(), AQL_QUEUE_ERROR_VENDOR_PACKET);
    EXPECT_EQ(rig.vf.interrupts.front().source_data[0] >> 10, IH_PACKET_ERROR_VENDOR_PACKET + 0u);
}

TEST_F(Aql, ScratchIsAskedForAndTheSamePacketRuns) {
    const KernelCode code = rig.load_kernel("scratch");
    ASSERT_GT(code.private_bytes, 0u);
    std::vector<std::uint32_t> in(128);
    std::iota(in.begin(), in.end(), 5u);
    const std::uint64_t from = rig.memory.upload(in);
    const std::uint64_t to = rig.memory.allocate(128 * 4);
    AqlKernel kernel;
    kernel.object = code.descriptor;
    kernel.arguments = rig.arguments(from, to);
    kernel.grid = {128, 1, 1};
    kernel.private_bytes = code.private_bytes;
    kernel.signal = rig.make_signal(1);
    rig.dispatch(queue, kernel);
    run();
    ASSERT_EQ(error(), AQL_QUEUE_ERROR_SCRATCH);
    // what the runtime does: one wave slot only, so the groups take turns
    const std::uint32_t wave_kib = (code.private_bytes * 64 + 1023) / 1024;
    const std::uint64_t backing = rig.memory.allocate(std::size_t{wave_kib} * 1024);
    const std::uint64_t q = queue.queue;
    rig.memory.put(q + offsetof(aql_queue, compute_tmpring_size),
                   HW_PREP(COMPUTE_TMPRING_SIZE, WAVES, 1) |
                       HW_PREP(COMPUTE_TMPRING_SIZE, WAVESIZE, wave_kib));
    rig.memory.put(q + offsetof(aql_queue, scratch_backing_memory_location), backing);
    rig.memory.put(q + offsetof(aql_queue, scratch_wave64_lane_byte_size), code.private_bytes);
    const std::array<std::uint32_t, 4> srd = {lo(backing), hi(backing) | 1u << 31, wave_kib * 1024,
                                              (3u << 21) | (1u << 23)};
    rig.memory.put(q + offsetof(aql_queue, scratch_resource_descriptor), srd);
    rig.memory.put(queue.inactive_signal + offsetof(aql_signal, value), std::int64_t{0});
    EXPECT_TRUE(rig.cp.has_work());
    rig.pump();
    EXPECT_EQ(rig.signal_value(kernel.signal), 0);
    EXPECT_EQ(rig.memory.download<std::uint32_t>(to, 128), oracle::scratch(in));
}

TEST_F(Aql, IllegalInstructionStopsTheQueueWithItsCode) {
    const KernelCode code = rig.load_kernel("illegal");
    const std::uint64_t out = rig.memory.allocate(256);
    AqlKernel kernel;
    kernel.object = code.descriptor;
    kernel.arguments = rig.arguments(out);
    kernel.signal = rig.make_signal(1);
    rig.dispatch(queue, kernel);
    run();
    EXPECT_EQ(error(), AQL_QUEUE_ERROR_ILLEGAL_INSTRUCTION);
    EXPECT_EQ(rig.signal_value(kernel.signal), 1);
    EXPECT_EQ(rig.memory.get<std::uint32_t>(out), 1u);
    EXPECT_EQ(rig.cp.counters().illegal_instructions, 1u);
    EXPECT_EQ(rig.vf.count(IH_SOURCE_CP_BAD_OPCODE), 0u) << "no error of the packet";
}

TEST_F(Aql, WildStoreFaultsHaltsTheQueueAndLeavesOthersRunning) {
    const KernelCode code = rig.load_kernel("wild_store");
    AqlKernel kernel;
    kernel.object = code.descriptor;
    kernel.arguments = rig.arguments(std::uint64_t{0xdead'0000'0000}, std::uint64_t{0});
    kernel.signal = rig.make_signal(1);
    rig.dispatch(queue, kernel);
    Ring other = rig.make_aql_queue();
    const std::uint64_t done = rig.make_signal(1);
    rig.barrier(other, AQL_TYPE_BARRIER_AND, {}, done);
    rig.run_list({{CpRig::kPasid, 10, {&queue, &other}}});
    rig.pump();
    ASSERT_EQ(rig.vf.faults.size(), 1u);
    EXPECT_EQ(rig.vf.faults[0].second.access, softgpu::mem::Access::Write);
    EXPECT_EQ(rig.signal_value(kernel.signal), 1);
    EXPECT_EQ(rig.signal_value(done), 0);
    const std::uint64_t fence = rig.unmap_all(PM4_UNMAP_RESET);
    rig.pump();
    EXPECT_EQ(rig.memory.get<std::uint64_t>(fence), CpRig::kFenceDone);
}

TEST_F(Aql, WaveMessageRaisesAnInterruptWhileTheKernelRuns) {
    const KernelCode code = rig.load_kernel("interrupt");
    const std::uint64_t mailbox = rig.memory.allocate(64);
    AqlKernel kernel;
    kernel.object = code.descriptor;
    kernel.arguments = rig.arguments(mailbox, std::uint32_t{0x123456});
    kernel.signal = rig.make_signal(1);
    rig.dispatch(queue, kernel);
    rig.map(queue);
    rig.pump_turns(20, 1000);
    ASSERT_EQ(rig.vf.count(IH_SOURCE_SQ), 1u);
    const ih_iv_entry& entry = rig.vf.interrupts.back();
    EXPECT_EQ(entry.client_id, IH_CLIENT_SE0SH);
    EXPECT_EQ(entry.source_data[0] & 0xfffu, 0x456u);
    EXPECT_EQ(entry.source_data[0] >> 28, 0x3u);
    EXPECT_EQ(entry.source_data[1], 0x12u);
    EXPECT_EQ(rig.signal_value(kernel.signal), 1);
    rig.memory.put(mailbox, 5u);
    rig.pump();
    EXPECT_EQ(rig.signal_value(kernel.signal), 0);
    EXPECT_EQ(rig.memory.get<std::uint32_t>(mailbox), 6u);
}

TEST_F(Aql, RingWrapsAndMoreKernelsThanTheWindowComplete) {
    const std::uint64_t data = rig.memory.upload(std::vector<double>(32));
    const std::uint64_t signal = rig.make_signal(200);
    AqlKernel kernel = increment(data, 32, signal);
    kernel.has_barrier = true;
    rig.map(queue);
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 50; ++j) rig.dispatch(queue, kernel);
        run_now();
    }
    EXPECT_EQ(rig.signal_value(signal), 0);
    EXPECT_EQ(rig.memory.get<double>(data), 200.0);
    EXPECT_EQ(read_index(), 200u);
}

}  // namespace
}  // namespace vgpu::test
