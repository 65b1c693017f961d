// SPDX-License-Identifier: MIT
//
// The scratch memory of an AQL queue: who gets which slot, and what happens when it is asked back.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/kernel_oracle.h"
#include "tests/unit/cp/aql_fixture.h"

namespace vgpu::test {
namespace {

/// A queue with scratch for one wave, and kernels that need it.
class AqlScratch : public Aql {
protected:
    void SetUp() override {
        Aql::SetUp();
        code = rig.load_kernel("scratch");
        std::iota(in.begin(), in.end(), 5u);
        std::iota(other.begin(), other.end(), 1000u);
        to = rig.memory.allocate(in.size() * 4);
        other_to = rig.memory.allocate(other.size() * 4);
        from = rig.memory.upload(in);
    }
    std::uint64_t dispatch() { return dispatch(from, to); }
    std::uint64_t dispatch(std::uint64_t source, std::uint64_t target) {
        AqlKernel kernel;
        kernel.object = code.descriptor;
        kernel.arguments = rig.arguments(source, target);
        kernel.grid = {static_cast<std::uint32_t>(in.size()), 1, 1};
        kernel.private_bytes = code.private_bytes;
        kernel.signal = rig.make_signal(1);
        rig.dispatch(queue, kernel);
        return kernel.signal;
    }
    std::uint32_t wave_kib() const { return (code.private_bytes * 64 + 1023) / 1024; }
    void give_scratch(std::uint32_t properties = 0) {
        place_scratch(rig.memory.allocate(std::size_t{wave_kib()} * 1024), 1);
        rig.memory.put(queue.queue + offsetof(aql_queue, queue_properties), properties);
    }
    void place_scratch(std::uint64_t backing, std::uint32_t waves) {
        const std::uint64_t q = queue.queue;
        rig.memory.put(q + offsetof(aql_queue, compute_tmpring_size),
                       HW_PREP(COMPUTE_TMPRING_SIZE, WAVES, waves) |
                           HW_PREP(COMPUTE_TMPRING_SIZE, WAVESIZE, wave_kib()));
        rig.memory.put(q + offsetof(aql_queue, scratch_backing_memory_location), backing);
        rig.memory.put(q + offsetof(aql_queue, scratch_wave64_lane_byte_size), code.private_bytes);
        const std::array<std::uint32_t, 4> srd = {lo(backing), hi(backing) | 1u << 31,
                                                  waves * wave_kib() * 1024,
                                                  (3u << 21) | (1u << 23)};
        rig.memory.put(q + offsetof(aql_queue, scratch_resource_descriptor), srd);
    }
    void answer() {
        rig.memory.put(queue.inactive_signal + offsetof(aql_signal, value), std::int64_t{0});
    }
    std::uint64_t dispatch_other() { return dispatch(rig.memory.upload(other), other_to); }
    void expect_results(std::uint64_t first, std::uint64_t second) {
        EXPECT_EQ(rig.signal_value(first), 0);
        EXPECT_EQ(rig.signal_value(second), 0);
        EXPECT_EQ(rig.memory.download<std::uint32_t>(to, 128), oracle::scratch(in));
        EXPECT_EQ(rig.memory.download<std::uint32_t>(other_to, 128), oracle::scratch(other));
    }
    KernelCode code;
    std::vector<std::uint32_t> in = std::vector<std::uint32_t>(128);
    std::vector<std::uint32_t> other = std::vector<std::uint32_t>(128);
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    std::uint64_t other_to = 0;
};

TEST_F(AqlScratch, ThatIsGivenOnceIsAskedBackAndTheQueueWaits) {
    give_scratch(AQL_QUEUE_USE_SCRATCH_ONCE);
    const std::uint64_t first = dispatch();
    run();
    EXPECT_EQ(rig.signal_value(first), 0);
    EXPECT_EQ(error(), AQL_QUEUE_SCRATCH_RECLAIM);
    const std::uint64_t next = rig.make_signal(1);
    rig.barrier(queue, AQL_TYPE_BARRIER_AND, {}, next);
    run_now();
    EXPECT_EQ(rig.signal_value(next), 1);
    answer();
    rig.pump();
    EXPECT_EQ(rig.signal_value(next), 0);
}

TEST_F(AqlScratch, AnswerWhileTheQueueIsOffTheHardwareIsSeenWhenItIsBack) {
    const std::uint64_t signal = dispatch();
    run();
    ASSERT_EQ(error(), AQL_QUEUE_ERROR_SCRATCH);
    const std::uint64_t fence = rig.unmap_all();
    rig.pump();
    ASSERT_EQ(rig.memory.get<std::uint64_t>(fence), CpRig::kFenceDone);
    EXPECT_EQ(HW_GET(AQL_HEADER, TYPE, header(0)), AQL_TYPE_KERNEL_DISPATCH + 0u)
        << "the packet has not been consumed";
    give_scratch();
    answer();
    rig.map(queue);
    rig.pump();
    EXPECT_EQ(rig.signal_value(signal), 0);
    EXPECT_EQ(rig.memory.download<std::uint32_t>(to, 128), oracle::scratch(in));
}

TEST_F(AqlScratch, SlotsAreSharedByTheKernelsOfAQueue) {
    give_scratch();
    const std::uint64_t first = dispatch();
    const std::uint64_t second = dispatch_other();
    rig.map(queue);
    rig.pump(64);
    expect_results(first, second);
}

TEST_F(AqlScratch, ThatIsAskedBackIsNotUsedAfterAnotherMapBeforeTheAnswer) {
    give_scratch(AQL_QUEUE_USE_SCRATCH_ONCE);
    const std::uint64_t first = dispatch();
    run();
    ASSERT_EQ(rig.signal_value(first), 0);
    ASSERT_EQ(error(), AQL_QUEUE_SCRATCH_RECLAIM);
    const std::uint64_t fence = rig.unmap_all();
    rig.pump();
    ASSERT_EQ(rig.memory.get<std::uint64_t>(fence), CpRig::kFenceDone);
    const std::uint64_t next = dispatch();
    rig.map(queue);
    rig.pump();
    EXPECT_EQ(rig.signal_value(next), 1);
    EXPECT_TRUE(rig.cp.needs_polling());
    EXPECT_FALSE(rig.cp.has_work());
    answer();
    EXPECT_TRUE(rig.cp.has_work());
    rig.pump();
    EXPECT_EQ(rig.signal_value(next), 0);
}

/// The last slot of the new place is the last one of the old place.
TEST_F(AqlScratch, ThatHasMovedIsNotUsedBeforeEarlierKernelsHaveEnded) {
    const std::uint64_t wave_bytes = std::uint64_t{wave_kib()} * 1024;
    const std::uint64_t backing = rig.memory.allocate(3 * wave_bytes);
    place_scratch(backing + wave_bytes, 2);
    const std::uint64_t first = dispatch();
    rig.map(queue);
    rig.pump_turns(6, 32);
    ASSERT_EQ(rig.signal_value(first), 1);
    place_scratch(backing, 3);
    const std::uint64_t second = dispatch_other();
    rig.ring_doorbell(queue);
    rig.pump(64);
    expect_results(first, second);
}

TEST_F(AqlScratch, SlotsOfKernelsThatAreSavedAreTakenAgainWhenTheyAreBack) {
    give_scratch();
    const std::uint64_t first = dispatch();
    const std::uint64_t second = dispatch_other();
    rig.map(queue);
    for (int i = 0; i < 5; ++i) {
        rig.pump_turns(6, 32);
        const std::uint64_t fence = rig.unmap_all();
        rig.pump();
        ASSERT_EQ(rig.memory.get<std::uint64_t>(fence), CpRig::kFenceDone);
        rig.map(queue);
    }
    rig.pump(64);
    expect_results(first, second);
}

}  // namespace
}  // namespace vgpu::test
