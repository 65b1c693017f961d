// SPDX-License-Identifier: MIT
//
// The command processor as a block: save at any point, poison, load, go on. And what a VF keeps in
// memory for the contexts of its queues, which its saved state shows.
#include <gtest/gtest.h>

#include "tests/support/kernel_oracle.h"
#include "tests/unit/cp/cp_rig.h"

namespace vgpu::test {
namespace {

std::vector<std::byte> save(const CpRig& rig) {
    std::vector<std::byte> stream;
    stream.reserve(1u << 16);
    softgpu::Writer out(stream);
    rig.cp.save(out);
    return stream;
}

void switch_world(CpRig& rig) {
    rig.cp.drain();
    const std::vector<std::byte> stream = save(rig);
    rig.cp.poison();
    softgpu::Reader in(stream);
    ASSERT_TRUE(rig.cp.load(in));
    ASSERT_EQ(in.remaining(), 0u);
    ASSERT_EQ(save(rig), stream);
}

struct Work {
    Ring first;
    Ring second;
    std::uint64_t sums = 0;
    std::uint64_t product = 0;
    std::uint64_t signal = 0;
};

constexpr std::uint32_t kSide = 32;
constexpr std::uint32_t kItems = 512;
constexpr std::uint32_t kRounds = 200;

/// Two queues: a matrix product with LDS and barriers, long-running items, a wait between.
Work start_work(CpRig& rig) {
    rig.start_kiq();
    rig.start_hiq();
    Work work;
    work.first = rig.make_aql_queue();
    work.second = rig.make_aql_queue();
    std::vector<float> a(kSide * kSide);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 17) * 0.25f;
    const std::uint64_t matrix = rig.memory.upload(a);
    work.product = rig.memory.allocate(kSide * kSide * 4);
    work.sums = rig.memory.allocate(kItems * 4);
    work.signal = rig.make_signal(3);
    const KernelCode matmul = rig.load_kernel("matmul");
    AqlKernel kernel;
    kernel.object = matmul.descriptor;
    kernel.arguments = rig.arguments(matrix, matrix, work.product, kSide);
    kernel.group = {16, 16, 1};
    kernel.grid = {kSide, kSide, 1};
    kernel.dimensions = 2;
    kernel.group_bytes = matmul.group_bytes;
    kernel.signal = work.signal;
    rig.dispatch(work.first, kernel);
    const KernelCode runner = rig.load_kernel("long_running");
    AqlKernel longer;
    longer.object = runner.descriptor;
    longer.arguments = rig.arguments(work.sums, rig.memory.allocate(kItems * 4), kRounds);
    longer.group = {64, 1, 1};
    longer.grid = {kItems, 1, 1};
    longer.signal = work.signal;
    rig.dispatch(work.second, longer);
    const std::uint64_t never = rig.make_signal(0);
    rig.barrier(work.second, AQL_TYPE_BARRIER_AND, {never}, work.signal);
    rig.run_list({{CpRig::kPasid, 10, {&work.first, &work.second}}});
    return work;
}

TEST(CpState, SwitchedAtRandomPointsEndsInTheSameMemoryAndInstructionCount) {
    CpRig straight;
    const Work expected = start_work(straight);
    straight.pump();
    ASSERT_EQ(straight.signal_value(expected.signal), 0);
    EXPECT_EQ(straight.memory.download<std::uint32_t>(expected.sums, kItems),
              oracle::long_running(kItems, kRounds));
    for (unsigned seed = 1; seed <= 6; ++seed) {
        Random random(seed);
        CpRig rig;
        const Work work = start_work(rig);
        for (int i = 0; i < 60; ++i) {
            rig.pump_turns(1 + random.next() % 5, 1 + random.next() % 2000);
            switch_world(rig);
        }
        rig.pump();
        ASSERT_EQ(rig.signal_value(work.signal), 0) << seed;
        EXPECT_EQ(rig.cp.counters().wave_instructions, straight.cp.counters().wave_instructions);
        EXPECT_EQ(rig.memory.download<float>(work.product, kSide * kSide),
                  straight.memory.download<float>(expected.product, kSide * kSide));
        EXPECT_EQ(rig.memory.download<std::uint32_t>(work.sums, kItems),
                  straight.memory.download<std::uint32_t>(expected.sums, kItems));
    }
}

TEST(CpState, TruncatedStreamsAreErrorsAndLeaveTheResetState) {
    CpRig rig;
    start_work(rig);
    rig.pump_turns(10, 100);
    const std::vector<std::byte> stream = save(rig);
    for (std::size_t size = 0; size < stream.size(); size += 1 + stream.size() / 97) {
        softgpu::Reader in(std::span<const std::byte>(stream).first(size));
        EXPECT_FALSE(rig.cp.load(in)) << size;
        EXPECT_FALSE(rig.cp.has_work());
    }
}

TEST(CpState, DamagedStreamsNeverBreakTheCommandProcessor) {
    Random random(5);
    CpRig rig;
    start_work(rig);
    rig.pump_turns(10, 100);
    const std::vector<std::byte> stream = save(rig);
    for (int round = 0; round < 200; ++round) {
        std::vector<std::byte> damaged = stream;
        for (int i = 0; i < 4; ++i)
            damaged[random.next() % damaged.size()] = static_cast<std::byte>(random.next());
        softgpu::Reader in(damaged);
        if (rig.cp.load(in)) rig.pump_turns(50, 200);
    }
    rig.cp.reset();
    EXPECT_FALSE(rig.cp.has_work());
}

TEST(CpState, ResetForgetsQueuesAndKernels) {
    CpRig rig;
    const Work work = start_work(rig);
    rig.pump_turns(5, 100);
    rig.cp.reset();
    EXPECT_FALSE(rig.cp.has_work());
    EXPECT_FALSE(rig.cp.owns_doorbell(work.first.doorbell));
    EXPECT_EQ(rig.read(REG_GC_CP_HQD_ACTIVE), 0u);
    rig.start_kiq();
    const std::uint64_t cell = rig.memory.allocate(8);
    rig.submit(rig.kiq, write_data(cell, 1));
    rig.pump();
    EXPECT_EQ(rig.memory.get<std::uint32_t>(cell), 1u);
    EXPECT_EQ(rig.cp.counters().wave_instructions, 0u) << "its owner adds up what was before";
}

TEST(CpState, RegistersAndLdsStartAsZeroInEveryGroup) {
    // global_store v1 (never written) to the group's cell, then v1 = 0xffffffff
    CpRig rig;
    rig.start_kiq();
    rig.start_hiq();
    Ring queue = rig.make_aql_queue();
    const KernelCode code = rig.load_words({
        0x20040082,              // v_lshrrev_b32 v2, 2, v0 (keeps v0 out of the way)
        0x8e028202,              // s_lshl_b32 s2, s2, 2
        0x80000200,              // s_add_u32 s0, s0, s2
        0x82018001,              // s_addc_u32 s1, s1, 0
        0x7e060200,              // v_mov_b32 v3, s0
        0x7e080201,              // v_mov_b32 v4, s1
        0xdc708000, 0x007f0103,  // global_store_dword v[3:4], v1, off
        0x7e0202c1,              // v_mov_b32 v1, -1
        0xbf810000,              // s_endpgm
    });
    const std::uint64_t cells = rig.memory.upload(std::vector<std::uint32_t>(64, 0xaaaaaaaa));
    AqlKernel kernel;
    kernel.object = code.descriptor;
    kernel.arguments = cells;
    kernel.grid = {64 * 32, 1, 1};
    kernel.signal = rig.make_signal(1);
    rig.dispatch(queue, kernel);
    rig.map(queue);
    rig.pump();
    ASSERT_EQ(rig.signal_value(kernel.signal), 0);
    EXPECT_EQ(rig.memory.download<std::uint32_t>(cells, 32), std::vector<std::uint32_t>(32));
    EXPECT_EQ(rig.memory.get<std::uint32_t>(cells + 32 * 4), 0xaaaaaaaau);
}

// --- memory for contexts ------------------------------------------------------------------------

constexpr std::uint32_t kControlStack = 4096;

void select_queue(CpRig& rig, std::uint32_t queue) {
    rig.write(REG_GC_GRBM_GFX_CNTL,
              HW_PREP(GRBM_GFX_CNTL, ME, 1) | HW_PREP(GRBM_GFX_CNTL, QUEUE, queue));
}

/// Maps a queue by registers. Its save area of 1 MiB at `area` seems to be full.
void map_with_full_area(CpRig& rig, std::uint64_t area) {
    select_queue(rig, 3);
    rig.write(REG_GC_CP_HQD_PERSISTENT_STATE, HW_PREP(CP_HQD_PERSISTENT_STATE, QSWITCH_MODE, 1));
    rig.write(REG_GC_CP_HQD_CTX_SAVE_BASE_ADDR_LO, lo(area));
    rig.write(REG_GC_CP_HQD_CTX_SAVE_BASE_ADDR_HI, hi(area));
    rig.write(REG_GC_CP_HQD_CTX_SAVE_SIZE, 1u << 20);
    rig.write(REG_GC_CP_HQD_CNTL_STACK_SIZE, kControlStack);
    rig.write(REG_GC_CP_HQD_CNTL_STACK_OFFSET, 0);
    rig.write(REG_GC_CP_HQD_WG_STATE_OFFSET, 1u << 20);
    rig.write(REG_GC_CP_HQD_ACTIVE, 1);
}

TEST(CpContext, MapTakesNoMemoryForAContextBeforeItIsRead) {
    CpRig rig;
    const std::size_t before = save(rig).size();
    map_with_full_area(rig, rig.memory.allocate(1u << 20));
    EXPECT_EQ(save(rig).size(), before);
    (void)rig.cp.step();
    EXPECT_EQ(save(rig).size(), before + (64u << 10)) << "a part in each step";
    switch_world(rig);
    rig.pump();
    EXPECT_EQ(rig.cp.counters().bad_packets, 1u) << "the area holds no context";
    EXPECT_EQ(save(rig).size(), before);
}

TEST(CpContext, ReadThatFaultsKeepsNoMemory) {
    CpRig rig;
    const std::size_t before = save(rig).size();
    const std::uint64_t end = FlatMemory::kBase + rig.memory.bytes().size();
    map_with_full_area(rig, end - (128u << 10));
    rig.pump();
    ASSERT_EQ(rig.vf.faults.size(), 1u);
    EXPECT_EQ(save(rig).size(), before);
}

/// One compute unit, and queues with a long kernel each that fills it.
class Contexts : public testing::Test {
protected:
    static constexpr std::uint32_t kLong = 64 * 40;
    static constexpr std::uint32_t kLongRounds = 50;

    Contexts() : rig({.memory_bytes = 32u << 20, .compute_units = 1}) {
        rig.start_kiq();
        rig.start_hiq();
        code = rig.load_kernel("long_running");
    }
    Ring make_busy_queue() {
        Ring queue = rig.make_aql_queue();
        AqlKernel kernel;
        kernel.object = code.descriptor;
        results.push_back(rig.memory.allocate(kLong * 4));
        kernel.arguments =
            rig.arguments(results.back(), rig.memory.allocate(kLong * 4), kLongRounds);
        kernel.grid = {kLong, 1, 1};
        rig.dispatch(queue, kernel);
        rig.map(queue);
        rig.pump_turns(60, 10);
        return queue;
    }
    void unmap() {
        const std::uint64_t fence = rig.unmap_all();
        rig.pump(10);
        ASSERT_EQ(rig.memory.get<std::uint64_t>(fence), CpRig::kFenceDone);
    }
    /// User queues 1 to 4 whose context is still in their areas.
    unsigned count_waiting() {
        unsigned count = 0;
        for (std::uint32_t queue = 1; queue <= 4; ++queue) {
            select_queue(rig, queue);
            count += rig.read(REG_GC_CP_HQD_ACTIVE) != 0 &&
                     rig.read(REG_GC_CP_HQD_WG_STATE_OFFSET) > kControlStack;
        }
        return count;
    }

    CpRig rig;
    KernelCode code;
    std::vector<std::uint64_t> results;
};

TEST_F(Contexts, WaitForRoomOnTheComputeUnitsAndAllKernelsEnd) {
    std::vector<Ring> queues;
    for (unsigned i = 0; i < 4; ++i) {
        queues.push_back(make_busy_queue());
        unmap();
    }
    CpRig::Process process;
    for (const Ring& queue : queues) process.queues.push_back(&queue);
    rig.run_list({process});
    rig.pump_turns(100, 10);
    ASSERT_EQ(count_waiting(), 1u);
    unmap();  // the queue that waits leaves, too
    rig.run_list({process});
    rig.pump_turns(100, 10);
    ASSERT_EQ(count_waiting(), 1u);
    switch_world(rig);
    rig.pump_turns(10, 10);
    ASSERT_EQ(count_waiting(), 1u);
    rig.pump();
    EXPECT_EQ(count_waiting(), 0u);
    for (const std::uint64_t result : results)
        EXPECT_EQ(rig.memory.download<std::uint32_t>(result, kLong),
                  oracle::long_running(kLong, kLongRounds));
}

TEST_F(Contexts, QueueThatIsNotSavedInTimeKeepsNoMemoryForIt) {
    Ring queue = make_busy_queue();
    const std::size_t before = save(rig).size();
    const std::uint64_t fence = rig.unmap_all();
    (void)rig.cp.step();
    EXPECT_GT(save(rig).size(), before);
    rig.clock.advance(std::chrono::milliseconds(4100));
    for (int i = 0; i < 2 && rig.memory.get<std::uint64_t>(fence) == 0; ++i) (void)rig.cp.step();
    ASSERT_EQ(rig.memory.get<std::uint64_t>(fence), CpRig::kFenceDone);
    EXPECT_TRUE(rig.cp.owns_doorbell(queue.doorbell));
    EXPECT_EQ(save(rig).size(), before);
}

}  // namespace
}  // namespace vgpu::test
