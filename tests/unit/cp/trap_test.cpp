// SPDX-License-Identifier: MIT
//
// Trap handlers of processes: MAP_PROCESS names them, the MQD turns them on, and what waves do in
// them reaches the driver as interrupt vectors.
#include <gtest/gtest.h>

#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/mqd.h"
#include "tests/unit/cp/cp_rig.h"

namespace vgpu::test {
namespace {

enum Kind : std::uint32_t { kTrap7 = 0, kAbort = 1, kIllegal = 2, kWildStore = 3 };

class CpTrap : public testing::Test {
protected:
    void SetUp() override {
        rig.start_kiq();
        rig.start_hiq();
        queue = rig.make_aql_queue();
        rig.set_mqd(queue, MQD_COMPUTE_PGM_RSRC2, HW_PREP(COMPUTE_PGM_RSRC2, TRAP_PRESENT, 1));
        handler = rig.load_trap_handler("trap_handler");
        memory = rig.memory.allocate(256);
        out = rig.memory.allocate(256);
    }
    void run(Kind kind, bool has_handler = true) {
        const KernelCode code = rig.load_kernel("trap");
        AqlKernel kernel;
        kernel.object = code.descriptor;
        kernel.arguments = rig.arguments(out, static_cast<std::uint32_t>(kind));
        kernel.signal = rig.make_signal(1);
        signal = kernel.signal;
        rig.dispatch(queue, kernel);
        rig.run_list(
            {{.queues = {&queue}, .trap_base = has_handler ? handler : 0, .trap_memory = memory}});
        rig.pump();
    }
    std::uint32_t seen(unsigned dword) { return rig.memory.get<std::uint32_t>(memory + dword * 4); }
    std::int64_t error() { return rig.signal_value(queue.inactive_signal); }
    ih_iv_entry message() {
        for (const ih_iv_entry& entry : rig.vf.interrupts)
            if (entry.source_id == IH_SOURCE_SQ) return entry;
        return {};
    }

    CpRig rig;
    Ring queue;
    std::uint64_t handler = 0;
    std::uint64_t memory = 0;
    std::uint64_t out = 0;
    std::uint64_t signal = 0;
};

TEST_F(CpTrap, KernelGoesOnBehindATrapThatItsProcessHandles) {
    run(kTrap7);
    EXPECT_EQ(seen(0), 7u);
    EXPECT_EQ(rig.memory.get<std::uint32_t>(out), 2u);
    EXPECT_EQ(rig.signal_value(signal), 0);
    EXPECT_EQ(error(), 0);
}

/// What event_interrupt_wq_v9() of the KFD takes apart.
TEST_F(CpTrap, HandlersMessageIsDecodedByTheKfd) {
    run(kAbort);
    const ih_iv_entry entry = message();
    const std::uint32_t word0 = entry.source_data[0];
    const std::uint32_t data =
        (word0 & 0xfff) | ((word0 >> 16) & 0xf000) | ((entry.source_data[1] << 16) & 0xff0000);
    const std::uint32_t doorbell_id = (softgpu::raw(queue.doorbell) >> 1) & 0x3ff;
    EXPECT_EQ(data & 0x3ff, doorbell_id);
    EXPECT_EQ(data >> 10, 2u) << "trap id, by the handler";
    EXPECT_EQ((word0 >> 13) & 1, 1u) << "PRIV";
    EXPECT_EQ((word0 >> 26) & 3, IH_SQ_ENCODING_WAVE);
    EXPECT_EQ(entry.pasid, CpRig::kPasid);
    EXPECT_GE(entry.vmid, CP_FIRST_KFD_VMID);
}

TEST_F(CpTrap, HaltedWaveKeepsItsQueueAliveAndIsUnmappedWithIt) {
    run(kAbort);
    EXPECT_EQ(error(), 0) << "the runtime decides what becomes of the queue";
    EXPECT_EQ(rig.signal_value(signal), 1);
    const std::uint64_t fence = rig.unmap_all();
    rig.pump();
    EXPECT_EQ(rig.memory.get<std::uint64_t>(fence), CpRig::kFenceDone);
}

TEST_F(CpTrap, IllegalInstructionIsCountedAndLeftToTheHandler) {
    run(kIllegal);
    EXPECT_EQ(rig.cp.counters().illegal_instructions, 1u);
    EXPECT_EQ(seen(2), 1u);
    EXPECT_EQ(error(), 0);
}

TEST_F(CpTrap, MemoryFaultIsReportedAndLeftToTheHandler) {
    run(kWildStore);
    ASSERT_EQ(rig.vf.faults.size(), 1u);
    EXPECT_EQ(softgpu::raw(rig.vf.faults[0].second.va), 0x10u);
    EXPECT_EQ(seen(2), 1u);
    const std::uint64_t other_signal = rig.make_signal(1);
    rig.barrier(queue, AQL_TYPE_BARRIER_OR, {}, other_signal);
    rig.ring_doorbell(queue);
    rig.pump();
    EXPECT_EQ(rig.signal_value(other_signal), 0) << "the queue is not halted";
}

TEST_F(CpTrap, ProcessWithoutAHandlerGetsTheQueueError) {
    run(kAbort, false);
    EXPECT_EQ(static_cast<std::uint32_t>(error()), AQL_QUEUE_ERROR_TRAP);
}

TEST_F(CpTrap, QueueWithoutTrapPresentGetsTheQueueError) {
    rig.set_mqd(queue, MQD_COMPUTE_PGM_RSRC2, 0);
    run(kAbort);
    EXPECT_EQ(static_cast<std::uint32_t>(error()), AQL_QUEUE_ERROR_TRAP);
    EXPECT_EQ(seen(2), 0u);
}

}  // namespace
}  // namespace vgpu::test
