// SPDX-License-Identifier: MIT
//
// PM4 packets one by one, on the KIQ (privileged), the gfx ring and user queues.
#include <gtest/gtest.h>

#include <numeric>

#include "pf-driver/hw/tc_op.h"
#include "tests/support/kernel_oracle.h"
#include "tests/unit/cp/cp_rig.h"

namespace vgpu::test {
namespace {

class Pm4 : public testing::Test {
protected:
    void SetUp() override {
        rig.start_kiq();
        cell = rig.memory.allocate(4096);
    }
    void run(const Words& words) {
        rig.submit(rig.kiq, words);
        rig.pump();
    }
    std::uint32_t at(std::uint64_t offset = 0) {
        return rig.memory.get<std::uint32_t>(cell + offset);
    }
    bool goes_on() {  // the KIQ still executes packets
        run(write_data(cell + 4000, 0x600d));
        return at(4000) == 0x600d;
    }
    Words ib(const Words& words, std::uint32_t vmid = 0) {
        const std::uint64_t va = rig.memory.upload(words);
        return pm4(PM4_OP_INDIRECT_BUFFER,
                   {lo(va), hi(va),
                    HW_PREP(INDIRECT_BUFFER_3, IB_SIZE, static_cast<std::uint32_t>(words.size())) |
                        HW_PREP(INDIRECT_BUFFER_3, VMID, vmid)});
    }

    CpRig rig;
    std::uint64_t cell = 0;
};

Words wait_memory(std::uint64_t va, std::uint32_t function, std::uint32_t reference) {
    return pm4(PM4_OP_WAIT_REG_MEM,
               {HW_PREP(WAIT_REG_MEM_1, FUNCTION, function) | HW_PREP(WAIT_REG_MEM_1, MEM_SPACE, 1),
                lo(va), hi(va), reference, ~0u, 10});
}

TEST_F(Pm4, KiqStartsByRegistersAndReportsItsReadPointer) {
    EXPECT_EQ(rig.read(REG_GC_CP_HQD_ACTIVE), 1u);
    run(write_data(cell, 42));
    EXPECT_EQ(at(), 42u);
    EXPECT_EQ(rig.memory.get<std::uint32_t>(rig.kiq.report), 5u);
    EXPECT_EQ(rig.read(REG_GC_CP_HQD_PQ_RPTR), 5u);
}

TEST_F(Pm4, WritingTheReadPointerOfAMappedQueueHasNoEffect) {
    run(write_data(cell, 42));
    rig.write(REG_GC_CP_HQD_PQ_RPTR, 0);
    EXPECT_EQ(rig.read(REG_GC_CP_HQD_PQ_RPTR), 5u);
    EXPECT_EQ(rig.read(REG_GC_CP_HQD_PQ_WPTR_LO), 5u);
    run(write_data(cell, 43));
    EXPECT_EQ(at(), 43u);
    EXPECT_EQ(rig.read(REG_GC_CP_HQD_PQ_RPTR), 10u);
}

TEST_F(Pm4, DequeueRequestTakesTheQueueOff) {
    rig.write(REG_GC_CP_HQD_DEQUEUE_REQUEST, 1);
    EXPECT_EQ(rig.read(REG_GC_CP_HQD_ACTIVE), 0u);
    run(write_data(cell, 42));
    EXPECT_EQ(at(), 0u);
}

/// The packet with more dwords in its body.
Words extended(Words packet, const Words& more) {
    packet[0] += HW_PREP(PM4_HEADER, COUNT, static_cast<std::uint32_t>(more.size()));
    return std::move(packet) + more;
}

/// A packet that writes CP_HQD_DEQUEUE_REQUEST of the selected queue `times` times.
Words dequeue_by_packet(std::uint32_t times) {
    return extended(pm4(PM4_OP_WRITE_DATA,
                        {HW_PREP(WRITE_DATA_1, ONE_ADDR, 1), REG_GC_CP_HQD_DEQUEUE_REQUEST, 0, 1}),
                    Words(times - 1, 1));
}

TEST_F(Pm4, APacketOfAnIbThatStopsItsOwnQueueTwiceEndsOnce) {
    run(ib(dequeue_by_packet(2) + dequeue_by_packet(1) + write_data(cell, 42)) +
        write_data(cell + 4, 43));
    EXPECT_EQ(rig.read(REG_GC_CP_HQD_ACTIVE), 0u);
    EXPECT_EQ(at(), 42u) << "without a save area, the IB ends first";
    EXPECT_EQ(at(4), 0u) << "the ring does not continue";
    EXPECT_EQ(rig.cp.counters().packets, 4u);
    EXPECT_EQ(rig.cp.counters().bad_packets, 0u);
}

TEST_F(Pm4, APacketOfTheRingThatStopsItsOwnQueueIsTheLast) {
    run(dequeue_by_packet(1) + write_data(cell, 42));
    EXPECT_EQ(rig.read(REG_GC_CP_HQD_ACTIVE), 0u);
    EXPECT_EQ(at(), 0u);
    EXPECT_EQ(rig.read(REG_GC_CP_HQD_PQ_RPTR), 5u) << "the next map continues behind the packet";
    rig.write(REG_GC_CP_HQD_ACTIVE, 1);
    rig.pump();
    EXPECT_EQ(at(), 42u);
}

TEST_F(Pm4, APacketThatStopsADrainingQueueKeepsItsOwnBody) {
    const Words waiting = wait_memory(cell, PM4_COMPARE_EQUAL, 1) +
                          extended(write_data(cell + 1024, 7), Words(200, 7));
    run(ib(waiting));  // the KIQ waits in an IB
    rig.start_gfx();
    rig.write(REG_GC_CP_HQD_DEQUEUE_REQUEST, 1);
    EXPECT_EQ(rig.read(REG_GC_CP_HQD_ACTIVE), 1u) << "it drains";
    rig.memory.put<std::uint32_t>(cell, 1);
    rig.submit(rig.gfx, dequeue_by_packet(64) + write_data(cell + 4, 44));
    rig.pump();
    EXPECT_EQ(rig.read(REG_GC_CP_HQD_ACTIVE), 0u);
    EXPECT_EQ(at(1024 + 4 * 200), 7u) << "the other queue has ended its IB";
    EXPECT_EQ(at(4), 44u);
    EXPECT_EQ(rig.cp.counters().bad_packets, 0u);
}

TEST_F(Pm4, FillersAndNopsAreSkippedAcrossTheRingEnd) {
    const std::uint32_t type2 = PM4_TYPE_2 << 30;
    const std::uint32_t filler = HW_PREP(PM4_HEADER, TYPE, PM4_TYPE_3) |
                                 HW_PREP(PM4_HEADER, COUNT, PM4_COUNT_NO_BODY) |
                                 HW_PREP(PM4_HEADER, OPCODE, PM4_OP_NOP);
    run(Words(rig.kiq.dwords - 3, type2));
    run(write_data(cell, 7) + Words{filler, type2} + pm4(PM4_OP_NOP, {1, 2, 3}) +
        write_data(cell + 4, 8));
    EXPECT_EQ(at(), 7u);
    EXPECT_EQ(at(4), 8u);
}

TEST_F(Pm4, PacketWhoseEndIsNotRungYetWaitsForIt) {
    Words words = write_data(cell, 9);
    const Words head(words.begin(), words.begin() + 2);
    run(head);
    EXPECT_FALSE(rig.cp.has_work());
    EXPECT_EQ(at(), 0u);
    run(Words(words.begin() + 2, words.end()));
    EXPECT_EQ(at(), 9u);
}

struct Malformed {
    const char* name;
    Words words;
    ih_source source;
};
class BadPm4 : public Pm4, public testing::WithParamInterface<Malformed> {};

INSTANTIATE_TEST_SUITE_P(
    All, BadPm4,
    testing::Values(
        Malformed{"Type0", {0x00000001}, IH_SOURCE_CP_BAD_OPCODE},
        Malformed{"UnknownOpcode", {0xc000ff00, 0}, IH_SOURCE_CP_BAD_OPCODE},
        Malformed{"TooShort", {0xc0003700, 0}, IH_SOURCE_CP_BAD_OPCODE},
        Malformed{"TooLong", {0xc0073c00, 0, 0, 0, 0, 0, 0, 0, 0}, IH_SOURCE_CP_BAD_OPCODE},
        Malformed{"LongerThanTheRing", {0xffff3700, 0, 0, 0, 0}, IH_SOURCE_CP_BAD_OPCODE},
        Malformed{
            "RegisterBeyondTheBar", {0xc0033700, 0, HW_REG_COUNT, 0, 0}, IH_SOURCE_CP_PRIV_REG}),
    [](const auto& parameters) { return parameters.param.name; });

TEST_P(BadPm4, HaltsTheQueueWithAnInterrupt) {
    run(GetParam().words);
    EXPECT_EQ(rig.vf.count(GetParam().source), 1u);
    EXPECT_EQ(rig.cp.counters().bad_packets, 1u);
    EXPECT_FALSE(goes_on());
    EXPECT_FALSE(rig.cp.has_work());
}

TEST_F(Pm4, WriteDataReachesMemoryAndRegisters) {
    run(pm4(PM4_OP_WRITE_DATA,
            {HW_PREP(WRITE_DATA_1, DST_SEL, PM4_COPY_DST_MEMORY), lo(cell), hi(cell), 1, 2, 3}));
    EXPECT_EQ(rig.memory.download<std::uint32_t>(cell, 4), (Words{1, 2, 3, 0}));
    run(pm4(PM4_OP_WRITE_DATA, {0, REG_GC_SCRATCH_REG0, 0, 11, 12}));
    EXPECT_EQ(rig.read(REG_GC_SCRATCH_REG0), 11u);
    EXPECT_EQ(rig.read(REG_GC_SCRATCH_REG1), 12u);
    run(pm4(PM4_OP_WRITE_DATA,
            {HW_PREP(WRITE_DATA_1, ONE_ADDR, 1), REG_GC_SCRATCH_REG2, 0, 21, 22}));
    EXPECT_EQ(rig.read(REG_GC_SCRATCH_REG2), 22u);
    EXPECT_EQ(rig.read(REG_GC_SCRATCH_REG3), 0u);
}

TEST_F(Pm4, WriteDataToManyRegistersIsDoneInBoundedStepsAndWritesEachOnce) {
    Words seen;
    rig.registers.claim(
        softgpu::RegisterIndex{REG_GC_CP_MEC_CNTL}, 1, {},
        [&](softgpu::RegisterIndex, std::uint32_t value) { seen.push_back(value); });
    Words values(200);
    std::iota(values.begin(), values.end(), 1u);
    rig.submit(rig.kiq, extended(pm4(PM4_OP_WRITE_DATA, {HW_PREP(WRITE_DATA_1, ONE_ADDR, 1),
                                                         REG_GC_CP_MEC_CNTL, 0, 0}),
                                 values));
    (void)rig.cp.step();
    EXPECT_LT(seen.size(), values.size());
    rig.pump();
    EXPECT_EQ(seen, Words{0} + values);
}

TEST_F(Pm4, CopyDataMovesBetweenRegistersMemoryImmediateAndClock) {
    rig.write(REG_GC_SCRATCH_REG0, 0xabcd);
    const std::uint32_t to_memory = HW_PREP(COPY_DATA_1, DST_SEL, PM4_COPY_DST_MEMORY);
    run(pm4(PM4_OP_COPY_DATA, {to_memory, REG_GC_SCRATCH_REG0, 0, lo(cell), hi(cell)}));
    EXPECT_EQ(at(), 0xabcdu);
    run(pm4(PM4_OP_COPY_DATA, {HW_PREP(COPY_DATA_1, SRC_SEL, PM4_COPY_MEMORY), lo(cell), hi(cell),
                               REG_GC_SCRATCH_REG1, 0}));
    EXPECT_EQ(rig.read(REG_GC_SCRATCH_REG1), 0xabcdu);
    const std::uint32_t wide = to_memory | HW_PREP(COPY_DATA_1, COUNT_SEL, 1);
    run(pm4(PM4_OP_COPY_DATA,
            {wide | HW_PREP(COPY_DATA_1, SRC_SEL, PM4_COPY_IMMEDIATE), 1, 2, lo(cell), hi(cell)}));
    EXPECT_EQ(rig.memory.get<std::uint64_t>(cell), 0x2'0000'0001u);
    rig.clock.advance(std::chrono::milliseconds(1));
    run(pm4(PM4_OP_COPY_DATA,
            {wide | HW_PREP(COPY_DATA_1, SRC_SEL, PM4_COPY_GPU_CLOCK), 0, 0, lo(cell), hi(cell)}));
    EXPECT_EQ(rig.memory.get<std::uint64_t>(cell), 27'000u);
}

TEST_F(Pm4, WaitRegMemBlocksItsQueueOnly) {
    rig.start_gfx();
    rig.submit(rig.gfx, wait_memory(cell, PM4_COMPARE_GREATER_EQUAL, 5) + write_data(cell + 8, 1));
    rig.pump();
    EXPECT_TRUE(goes_on());
    EXPECT_EQ(at(8), 0u);
    EXPECT_TRUE(rig.cp.needs_polling());
    EXPECT_FALSE(rig.cp.has_work());
    rig.memory.put(cell, 5u);
    EXPECT_TRUE(rig.cp.has_work());
    rig.pump();
    EXPECT_EQ(at(8), 1u);
    EXPECT_FALSE(rig.cp.needs_polling());
}

TEST_F(Pm4, WaitRegMemWriteThenWaitWritesRegisterAOnce) {
    unsigned writes = 0;
    rig.registers.claim(softgpu::RegisterIndex{REG_GC_CP_MEC_CNTL}, 1, {},
                        [&](softgpu::RegisterIndex, std::uint32_t) { ++writes; });
    rig.submit(rig.kiq, pm4(PM4_OP_WAIT_REG_MEM,
                            {HW_PREP(WAIT_REG_MEM_1, FUNCTION, PM4_COMPARE_EQUAL) |
                                 HW_PREP(WAIT_REG_MEM_1, OPERATION, 1),
                             REG_GC_CP_MEC_CNTL, REG_GC_SCRATCH_REG0, 0x00f80100, 1u << 8, 0x20}) +
                            write_data(cell, 1));
    rig.pump();
    EXPECT_EQ(at(), 0u);
    EXPECT_EQ(rig.read(REG_GC_CP_MEC_CNTL), 0x00f80100u);
    rig.write(REG_GC_SCRATCH_REG0, 0xffff);
    rig.pump();
    EXPECT_EQ(at(), 1u) << "only the masked bits of the reference are compared";
    EXPECT_EQ(writes, 1u);
}

TEST_F(Pm4, ReleaseMemWritesFenceAndInterrupts) {
    run(pm4(PM4_OP_RELEASE_MEM,
            {HW_PREP(RELEASE_MEM_1, EVENT_INDEX, 5),
             HW_PREP(RELEASE_MEM_2, INT_SEL, 2) | HW_PREP(RELEASE_MEM_2, DATA_SEL, 2), lo(cell),
             hi(cell), 0x11, 0x22, 0x33}));
    EXPECT_EQ(rig.memory.get<std::uint64_t>(cell), 0x22'0000'0011u);
    ASSERT_EQ(rig.vf.count(IH_SOURCE_CP_EOP), 1u);
    EXPECT_EQ(rig.vf.interrupts[0].source_data[0], 0x33u);
    EXPECT_EQ(rig.vf.interrupts[0].ring_id, IH_CP_RING_ID(2, 1, 0));
}

TEST_F(Pm4, ReleaseMemWithoutInterruptIsSilent) {
    run(pm4(PM4_OP_RELEASE_MEM,
            {0, HW_PREP(RELEASE_MEM_2, DATA_SEL, 1), lo(cell), hi(cell), 5, 0}));
    EXPECT_EQ(at(), 5u);
    EXPECT_EQ(rig.vf.interrupts.size(), 0u);
}

struct Release {
    const char* name;
    std::uint32_t destination, interrupt, data;
    std::uint64_t stored;  ///< kClock: the GPU clock; kOld: nothing was stored
    unsigned interrupts;
    bool is_refused;
};
constexpr std::uint64_t kOld = 0xa5a5'a5a5'a5a5'a5a5, kClock = ~0ull;
constexpr std::uint64_t kData = 0x22'0000'0011;
constexpr std::uint64_t kLowData = (kOld & ~0xffff'ffffull) | 0x11;

class ReleaseMem : public Pm4, public testing::WithParamInterface<Release> {};

INSTANTIATE_TEST_SUITE_P(
    Forms, ReleaseMem,
    testing::Values(Release{"Data32", PM4_RELEASE_TO_MEMORY, PM4_RELEASE_NO_INTERRUPT,
                            PM4_RELEASE_DATA_32, kLowData, 0, false},
                    Release{"Data64ToL2", PM4_RELEASE_TO_L2, PM4_RELEASE_NO_INTERRUPT,
                            PM4_RELEASE_DATA_64, kData, 0, false},
                    Release{"Clock", PM4_RELEASE_TO_MEMORY, PM4_RELEASE_INTERRUPT_AFTER_WRITE,
                            PM4_RELEASE_GPU_CLOCK, kClock, 1, false},
                    Release{"Perfcounter", PM4_RELEASE_TO_MEMORY, PM4_RELEASE_NO_INTERRUPT,
                            PM4_RELEASE_CP_PERFCOUNTER, 0, 0, false},
                    Release{"NoData", PM4_RELEASE_TO_MEMORY, PM4_RELEASE_INTERRUPT_AFTER_WRITE,
                            PM4_RELEASE_NO_DATA, kOld, 1, false},
                    Release{"InterruptOnly", PM4_RELEASE_TO_MEMORY, PM4_RELEASE_INTERRUPT_ONLY,
                            PM4_RELEASE_DATA_64, kOld, 1, false},
                    Release{"DataAfterConfirm", PM4_RELEASE_TO_MEMORY,
                            PM4_RELEASE_DATA_AFTER_CONFIRM, PM4_RELEASE_DATA_64, kData, 0, false},
                    Release{"InterruptAlways", PM4_RELEASE_TO_MEMORY, PM4_RELEASE_INTERRUPT_ALWAYS,
                            PM4_RELEASE_DATA_64, kData, 1, false},
                    Release{"Conditional32", PM4_RELEASE_TO_MEMORY, PM4_RELEASE_INTERRUPT_IF_32,
                            PM4_RELEASE_DATA_32, kOld, 0, true},
                    Release{"Conditional64", PM4_RELEASE_TO_MEMORY, PM4_RELEASE_INTERRUPT_IF_64,
                            PM4_RELEASE_DATA_64, kOld, 0, true},
                    Release{"Gds", PM4_RELEASE_TO_MEMORY, PM4_RELEASE_NO_INTERRUPT,
                            PM4_RELEASE_GDS_DATA, kOld, 0, true},
                    Release{"DataThatDoesNotExist", PM4_RELEASE_TO_MEMORY, PM4_RELEASE_NO_INTERRUPT,
                            7, kOld, 0, true},
                    Release{"WptrRegister", PM4_RELEASE_TO_WPTR_REGISTER, PM4_RELEASE_NO_INTERRUPT,
                            PM4_RELEASE_DATA_64, kOld, 0, true},
                    Release{"WptrPollBit", PM4_RELEASE_TO_WPTR_POLL_BIT, PM4_RELEASE_NO_INTERRUPT,
                            PM4_RELEASE_DATA_64, kOld, 0, true}),
    [](const auto& form) { return form.param.name; });

TEST_P(ReleaseMem, StoresAndInterruptsAsSelected) {
    const Release& form = GetParam();
    rig.clock.advance(std::chrono::seconds(1));
    rig.memory.put(cell, kOld);
    run(pm4(PM4_OP_RELEASE_MEM, {HW_PREP(RELEASE_MEM_1, EVENT_INDEX, 5),
                                 HW_PREP(RELEASE_MEM_2, DST_SEL, form.destination) |
                                     HW_PREP(RELEASE_MEM_2, INT_SEL, form.interrupt) |
                                     HW_PREP(RELEASE_MEM_2, DATA_SEL, form.data),
                                 lo(cell), hi(cell), lo(kData), hi(kData), 0x33}));
    const std::uint64_t expected = form.stored == kClock ? 27'000'000 : form.stored;
    EXPECT_EQ(rig.memory.get<std::uint64_t>(cell), expected);
    EXPECT_EQ(rig.vf.count(IH_SOURCE_CP_EOP), form.interrupts);
    EXPECT_EQ(rig.cp.counters().bad_packets, form.is_refused ? 1u : 0u);
    EXPECT_EQ(goes_on(), !form.is_refused) << "a packet that is refused halts its queue";
}

TEST_F(Pm4, IndirectBuffersNestAndReturn) {
    run(ib(write_data(cell, 1) + ib(write_data(cell + 4, 2)) + write_data(cell + 8, 3)) +
        write_data(cell + 12, 4));
    EXPECT_EQ(rig.memory.download<std::uint32_t>(cell, 4), (Words{1, 2, 3, 4}));
}

TEST_F(Pm4, IndirectBuffersNestingTooDeepAreRefused) {
    Words words = write_data(cell, 1);
    for (unsigned i = 0; i <= PM4_MAX_IB_NESTING; ++i) words = ib(words) + pm4(PM4_OP_NOP, {0});
    run(words);
    EXPECT_EQ(at(), 0u);
    EXPECT_EQ(rig.cp.counters().bad_packets, 1u);
}

TEST_F(Pm4, EndlessIbChainDoesNotStarveOtherQueues) {
    rig.start_gfx();
    const std::uint64_t va = rig.memory.allocate(64);
    const Words loop = pm4(PM4_OP_INDIRECT_BUFFER, {lo(va), hi(va),
                                                    HW_PREP(INDIRECT_BUFFER_3, IB_SIZE, 4) |
                                                        HW_PREP(INDIRECT_BUFFER_3, CHAIN, 1)});
    for (std::size_t i = 0; i < loop.size(); ++i) rig.memory.put(va + i * 4, loop[i]);
    rig.submit(rig.gfx, loop);
    rig.submit(rig.kiq, write_data(cell, 1));
    rig.pump_turns(10, 1);
    EXPECT_EQ(at(), 1u);
}

TEST_F(Pm4, PacketThatReachesOutOfItsIbIsRefused) {
    run(ib({PM4_HEADER_OF(PM4_OP_WRITE_DATA, 4), 0, 0}));
    EXPECT_EQ(rig.vf.count(IH_SOURCE_CP_BAD_OPCODE), 1u);
}

TEST_F(Pm4, CondExecSkipsWhenTheFlagIsZero) {
    const Words skipped = write_data(cell + 4, 1);
    const auto cond =
        pm4(PM4_OP_COND_EXEC, {lo(cell), hi(cell), 0, static_cast<std::uint32_t>(skipped.size())});
    run(cond + skipped + write_data(cell + 8, 2));
    EXPECT_EQ(at(4), 0u);
    EXPECT_EQ(at(8), 2u);
    rig.memory.put(cell, 1u);
    run(cond + skipped);
    EXPECT_EQ(at(4), 1u);
}

TEST_F(Pm4, DmaDataCopiesAndFillsInBoundedSteps) {
    constexpr std::uint32_t kBytes = 200'000;
    std::vector<std::uint32_t> data(kBytes / 4);
    std::iota(data.begin(), data.end(), 1u);
    const std::uint64_t from = rig.memory.upload(data);
    const std::uint64_t to = rig.memory.allocate(kBytes);
    rig.submit(rig.kiq, pm4(PM4_OP_DMA_DATA, {0, lo(from), hi(from), lo(to), hi(to), kBytes}));
    (void)rig.cp.step();
    EXPECT_EQ(rig.memory.get<std::uint32_t>(to + 80'000), 0u) << "one step copies 64 KiB at most";
    rig.pump();
    EXPECT_EQ(rig.memory.download<std::uint32_t>(to, data.size()), data);
    run(pm4(PM4_OP_DMA_DATA, {HW_PREP(DMA_DATA_1, SRC_SEL, 2), 0x01020304, 0, lo(to), hi(to), 10}));
    EXPECT_EQ(rig.memory.get<std::uint64_t>(to), 0x0102030401020304u);
    EXPECT_EQ(rig.memory.get<std::uint32_t>(to + 8), 0x0304u);
}

TEST_F(Pm4, DmaDataCountsMoreThanTwoMebibytes) {
    constexpr std::uint32_t kBytes = (2u << 20) + 4;
    std::vector<std::uint32_t> data(kBytes / 4);
    std::iota(data.begin(), data.end(), 1u);
    const std::uint64_t from = rig.memory.upload(data);
    const std::uint64_t to = rig.memory.allocate(kBytes);
    run(pm4(PM4_OP_DMA_DATA, {0, lo(from), hi(from), lo(to), hi(to), kBytes}));
    EXPECT_EQ(rig.memory.download<std::uint32_t>(to, data.size()), data);
}

TEST_F(Pm4, DmaDataToNowhereIsDoneWithoutAWrite) {
    const std::uint64_t from = rig.memory.upload(Words{1, 2, 3, 4});
    rig.memory.put(cell, 5u);
    run(pm4(PM4_OP_DMA_DATA,
            {HW_PREP(DMA_DATA_1, DST_SEL, 2), lo(from), hi(from), lo(cell), hi(cell), 16}));
    EXPECT_EQ(at(), 5u);
    EXPECT_TRUE(goes_on());
}

TEST_F(Pm4, DmaDataOfGdsIsRefused) {
    for (const std::uint32_t select :
         {HW_PREP(DMA_DATA_1, SRC_SEL, 1), HW_PREP(DMA_DATA_1, DST_SEL, 1)}) {
        CpRig fresh;
        fresh.start_kiq();
        fresh.submit(fresh.kiq, pm4(PM4_OP_DMA_DATA, {select, 0, 0, lo(cell), hi(cell), 16}));
        fresh.pump();
        EXPECT_EQ(fresh.vf.count(IH_SOURCE_CP_BAD_OPCODE), 1u) << select;
    }
}

TEST_F(Pm4, AtomicMemAddsAndLoopsUntilTheCompareMatches) {
    rig.memory.put(cell, std::uint64_t{5});
    run(pm4(PM4_OP_ATOMIC_MEM,
            {HW_PREP(ATOMIC_MEM_1, ATOMIC, TC_OP_ADD_64), lo(cell), hi(cell), 3, 0, 0, 0, 0}));
    EXPECT_EQ(rig.memory.get<std::uint64_t>(cell), 8u);
    rig.submit(rig.kiq, pm4(PM4_OP_ATOMIC_MEM, {HW_PREP(ATOMIC_MEM_1, ATOMIC, TC_OP_CMPSWAP_32) |
                                                    HW_PREP(ATOMIC_MEM_1, COMMAND, 1),
                                                lo(cell), hi(cell), 77, 0, 9, 0, 0}));
    rig.pump();
    EXPECT_EQ(at(), 8u);
    rig.memory.put(cell, 9u);
    rig.pump();
    EXPECT_EQ(at(), 77u);
}

TEST_F(Pm4, SetRegistersReachTheirSpaces) {
    run(pm4(PM4_OP_SET_UCONFIG_REG, {REG_GC_SCRATCH_REG0 - HW_REG_BASE_UCONFIG, 0xdeadbeef}));
    EXPECT_EQ(rig.read(REG_GC_SCRATCH_REG0), 0xdeadbeefu);
    const std::uint32_t index_3 = 3u << 28;  // a mask of CUs; not looked at
    constexpr std::uint32_t kThreads = REG_GC_COMPUTE_NUM_THREAD_X - HW_REG_BASE_SH;
    run(pm4(PM4_OP_SET_SH_REG_INDEX, {index_3 | kThreads, 0x11, 0x22}));
    const std::uint32_t to_memory = HW_PREP(COPY_DATA_1, DST_SEL, PM4_COPY_DST_MEMORY);
    run(pm4(PM4_OP_COPY_DATA, {to_memory, REG_GC_COMPUTE_NUM_THREAD_X, 0, lo(cell), hi(cell)}));
    EXPECT_EQ(at(), 0x11u);
    run(pm4(PM4_OP_SET_UCONFIG_REG, {REG_GC_RLC_CP_SCHEDULERS - HW_REG_BASE_UCONFIG, 1}));
    EXPECT_EQ(rig.vf.count(IH_SOURCE_CP_PRIV_REG), 1u) << "behind the end of UCONFIG space";
}

TEST_F(Pm4, CountersOfTheConstantEngineAreIgnored) {
    run(ib(pm4(PM4_OP_SET_CE_DE_COUNTERS, {0}) + pm4(PM4_OP_INCREMENT_CE_COUNTER, {1})));
    EXPECT_EQ(rig.cp.counters().bad_packets, 0u);
    EXPECT_TRUE(goes_on());
}

TEST_F(Pm4, FaultHaltsTheQueueAndIsReported) {
    run(write_data(0xdead'0000'0000, 1));
    ASSERT_EQ(rig.vf.faults.size(), 1u);
    EXPECT_EQ(rig.vf.faults[0].second.access, softgpu::mem::Access::Write);
    EXPECT_EQ(rig.cp.counters().faults, 1u);
    EXPECT_FALSE(goes_on());
}

TEST_F(Pm4, IbInAUserVmidOfAKernelQueueIsUnprivileged) {
    rig.start_gfx();
    rig.submit(rig.gfx, ib(pm4(PM4_OP_WRITE_DATA, {0, REG_GC_CP_MEC_CNTL, 0, 1}), 5));
    rig.pump();
    EXPECT_EQ(rig.read(REG_GC_CP_MEC_CNTL), 0u);
    EXPECT_EQ(rig.vf.count(IH_SOURCE_CP_PRIV_REG), 1u);
}

class UserPm4 : public Pm4 {
protected:
    void SetUp() override {
        Pm4::SetUp();
        rig.start_hiq();
        queue = rig.make_pm4_queue();
        rig.map(queue);
        rig.pump();
    }
    void run_user(const Words& words) {
        rig.submit(queue, words);
        rig.pump();
    }
    /// Registers for array_increment on `data`, in groups of 64.
    Words set_kernel(std::uint64_t data) {
        const KernelCode code = rig.load_kernel("array_increment");
        const auto descriptor = rig.memory.get<aql_kernel_descriptor>(code.descriptor);
        const std::uint64_t entry =
            code.descriptor + static_cast<std::uint64_t>(descriptor.kernel_code_entry_byte_offset);
        EXPECT_EQ(entry % 256, 0u);
        const std::uint64_t args = rig.arguments(data);
        const std::uint64_t packet =
            rig.memory.allocate(64);  // the kernel reads its group size there
        rig.memory.put(packet + offsetof(aql_kernel_dispatch, workgroup_size_x), std::uint16_t{64});
        const auto set = [](hw_reg which, std::initializer_list<std::uint32_t> values) {
            std::vector<std::uint32_t> body{static_cast<std::uint32_t>(which) - HW_REG_BASE_SH};
            body.insert(body.end(), values);
            Words out{PM4_HEADER_OF(PM4_OP_SET_SH_REG, static_cast<std::uint32_t>(body.size()))};
            return out + body;
        };
        // user SGPRs in the order the descriptor asks for
        Words user;
        const std::uint32_t properties = descriptor.kernel_code_properties;
        if (HW_GET(KERNEL_CODE_PROPERTIES, PRIVATE_SEGMENT_BUFFER, properties)) user.resize(4);
        if (HW_GET(KERNEL_CODE_PROPERTIES, DISPATCH_PTR, properties))
            user = user + Words{lo(packet), hi(packet)};
        if (HW_GET(KERNEL_CODE_PROPERTIES, QUEUE_PTR, properties)) user = user + Words{0, 0};
        if (HW_GET(KERNEL_CODE_PROPERTIES, KERNARG_SEGMENT_PTR, properties))
            user = user + Words{lo(args), hi(args)};
        user.resize(16);
        const Words words = set(REG_GC_COMPUTE_PGM_LO, {lo(entry >> 8), hi(entry >> 8)}) +
                            set(REG_GC_COMPUTE_PGM_RSRC1,
                                {descriptor.compute_pgm_rsrc1, descriptor.compute_pgm_rsrc2}) +
                            set(REG_GC_COMPUTE_NUM_THREAD_X, {64, 1, 1});
        Words data_packet{PM4_HEADER_OF(PM4_OP_SET_SH_REG, 17),
                          REG_GC_COMPUTE_USER_DATA_0 - HW_REG_BASE_SH};
        return words + (data_packet + user);
    }
    Words fence() const {
        return pm4(PM4_OP_RELEASE_MEM,
                   {0, HW_PREP(RELEASE_MEM_2, DATA_SEL, 1), lo(cell), hi(cell), 1, 0});
    }
    static constexpr std::uint32_t kItems = 128;
    static constexpr std::uint32_t kEnable =
        HW_PREP(COMPUTE_DISPATCH_INITIATOR, COMPUTE_SHADER_EN, 1);
    Ring queue;
};

TEST_F(UserPm4, ReachesMemoryButNoPrivilegedRegister) {
    run_user(write_data(cell, 3));
    EXPECT_EQ(at(), 3u);
    run_user(pm4(PM4_OP_WRITE_DATA, {0, REG_GC_CP_MEC_CNTL, 0, 1}));
    EXPECT_EQ(rig.read(REG_GC_CP_MEC_CNTL), 0u);
    EXPECT_EQ(rig.vf.count(IH_SOURCE_CP_PRIV_REG), 1u);
}

TEST_F(UserPm4, MayNotScheduleQueues) {
    for (const pm4_opcode opcode :
         {PM4_OP_SET_RESOURCES, PM4_OP_MAP_PROCESS, PM4_OP_MAP_QUEUES, PM4_OP_UNMAP_QUEUES,
          PM4_OP_QUERY_STATUS, PM4_OP_RUN_LIST, PM4_OP_INVALIDATE_TLBS}) {
        CpRig fresh;
        fresh.start_kiq();
        fresh.start_hiq();
        Ring user = fresh.make_pm4_queue();
        fresh.map(user);
        fresh.pump();
        const std::size_t sizes[] = {7, 15, 6, 5, 6, 3, 1};
        Words words(1 +
                    sizes[opcode == PM4_OP_INVALIDATE_TLBS ? 6 : opcode - PM4_OP_SET_RESOURCES]);
        words[0] = PM4_HEADER_OF(opcode, static_cast<std::uint32_t>(words.size() - 1));
        fresh.submit(user, words);
        fresh.pump();
        ASSERT_EQ(fresh.vf.count(IH_SOURCE_CP_BAD_OPCODE), 1u) << opcode;
        EXPECT_EQ(fresh.vf.interrupts.back().source_data[0] >> 10,
                  IH_PACKET_ERROR_UNSUPPORTED + 0u);
    }
}

TEST_F(UserPm4, DispatchesAKernelFromItsRegistersAndFencesBehindIt) {
    const std::uint64_t data = rig.memory.upload(std::vector<double>(kItems, 1.5));
    rig.submit(queue, set_kernel(data) + pm4(PM4_OP_DISPATCH_DIRECT, {kItems / 64, 1, 1, kEnable}) +
                          fence());
    (void)rig.cp.step();
    EXPECT_EQ(at(), 0u) << "the fence waits for the kernel";
    rig.pump();
    EXPECT_EQ(at(), 1u);
    EXPECT_EQ(rig.memory.download<double>(data, kItems), std::vector<double>(kItems, 2.5));
}

TEST_F(UserPm4, DispatchesTakeTheirGridFromMemory) {
    const std::uint64_t data = rig.memory.upload(std::vector<double>(kItems, 1.5));
    const std::uint64_t grid = rig.memory.upload(Words{0, 0, kItems / 64, 1, 1});
    run_user(set_kernel(data) +
             pm4(PM4_OP_DISPATCH_INDIRECT, {lo(grid + 8), hi(grid + 8), kEnable}) + fence());
    EXPECT_EQ(at(), 1u);
    EXPECT_EQ(rig.memory.download<double>(data, kItems), std::vector<double>(kItems, 2.5));
    rig.start_gfx();  // counts from a base
    rig.submit(rig.gfx, set_kernel(data) + pm4(PM4_OP_SET_BASE, {1, lo(grid), hi(grid)}) +
                            pm4(PM4_OP_DISPATCH_INDIRECT, {8, kEnable}));
    rig.pump();
    EXPECT_EQ(rig.memory.download<double>(data, kItems), std::vector<double>(kItems, 3.5));
}

TEST_F(UserPm4, GridOutsideMemoryIsAFault) {
    run_user(pm4(PM4_OP_DISPATCH_INDIRECT, {0, 0xdead, kEnable}));
    ASSERT_EQ(rig.vf.faults.size(), 1u);
    EXPECT_EQ(rig.vf.faults[0].second.access, softgpu::mem::Access::Read);
}

TEST_F(UserPm4, IndirectDispatchOfTheGfxRingIsRefusedElsewhere) {
    run_user(pm4(PM4_OP_DISPATCH_INDIRECT, {8, kEnable}));
    EXPECT_EQ(rig.vf.count(IH_SOURCE_CP_BAD_OPCODE), 1u);
}

}  // namespace
}  // namespace vgpu::test
