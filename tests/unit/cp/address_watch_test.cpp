// SPDX-License-Identifier: MIT
//
// Address watches from the driver's side: TCP_WATCHn_* as Linux writes them
// (amdgpu_amdkfd_gfx_v9.c, kgd_gfx_v9_set_address_watch), and what waves make of them.
#include <gtest/gtest.h>

#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/mqd.h"
#include "tests/unit/cp/cp_rig.h"

namespace vgpu::test {
namespace {

constexpr std::array<std::uint32_t, 4> kBits = {1u << 7, 1u << 12, 1u << 13, 1u << 14};
constexpr std::uint32_t kLoads = 0, kStride = 3;

class CpWatch : public testing::Test {
protected:
    /// KFD keeps the last VMID from the scheduler while it debugs.
    static constexpr std::uint32_t kDebugVmid = 15, kMask = 0xff00, kDebuggedMask = 0x7f00;

    CpWatch() : place(rig.memory.allocate(4096)), out(rig.memory.allocate(256)) { start_queues(); }
    void start_queues(std::uint16_t vmid_mask = kMask) {
        rig.start_kiq();
        rig.start_hiq(vmid_mask);
        queue = rig.make_aql_queue();
    }
    void write(hw_reg first, unsigned which, std::uint32_t value) {
        rig.write(static_cast<hw_reg>(first + which * kStride), value);
    }
    void set_watch(unsigned which, std::uint64_t va, std::uint32_t vmid = CP_FIRST_KFD_VMID) {
        const std::uint32_t control = HW_PREP(TCP_WATCH0_CNTL, MASK, 0xffffff) |
                                      HW_PREP(TCP_WATCH0_CNTL, VMID, vmid) |
                                      HW_PREP(TCP_WATCH0_CNTL, MODE, kLoads);
        write(REG_GC_TCP_WATCH0_CNTL, which, control);
        write(REG_GC_TCP_WATCH0_ADDR_H, which, hi(va) & 0xffff);
        write(REG_GC_TCP_WATCH0_ADDR_L, which, lo(va));
        write(REG_GC_TCP_WATCH0_CNTL, which, control | HW_PREP(TCP_WATCH0_CNTL, VALID, 1));
    }
    void clear_watch(unsigned which) { write(REG_GC_TCP_WATCH0_CNTL, which, 0); }
    /// A kernel that loads from `place`, once or until a watch is hit.
    void start(bool until_hit, std::uint64_t trap_base = 0, std::uint64_t trap_memory = 0) {
        AqlKernel kernel;
        kernel.object = rig.load_kernel("watched").descriptor;
        kernel.arguments = rig.arguments(place, out, std::uint32_t{until_hit});
        kernel.signal = signal = rig.make_signal(1);
        rig.dispatch(queue, kernel);
        if (rig.cp.owns_doorbell(queue.doorbell)) return rig.ring_doorbell(queue);
        rig.run_list({{.queues = {&queue},
                       .trap_base = trap_base,
                       .trap_memory = trap_memory,
                       .debug_vmid = debug_vmid}});
    }
    /// TRAPSTS after one load.
    std::uint32_t hits() {
        start(false);
        rig.pump();
        EXPECT_EQ(rig.signal_value(signal), 0);
        return rig.memory.get<std::uint32_t>(out);
    }
    void spin() { rig.pump_turns(20, 500); }
    bool has_ended() { return rig.signal_value(signal) == 0; }

    CpRig rig;
    Ring queue;
    std::uint64_t place;
    std::uint64_t out;
    std::uint64_t signal = 0;
    std::uint32_t debug_vmid = 0;
};

TEST_F(CpWatch, RegistersSayWhatIsWatched) {
    EXPECT_EQ(hits(), 0u);
    for (unsigned which = 0; which < kBits.size(); ++which) {
        set_watch(which, place);
        EXPECT_EQ(hits(), kBits[which]);
        clear_watch(which);
    }
    EXPECT_EQ(hits(), 0u);
}

TEST_F(CpWatch, AllOfTheAddressCounts) {
    for (const unsigned bit : {6u, 29u, 30u, 31u, 32u, 47u}) {
        set_watch(0, place ^ (std::uint64_t{1} << bit));
        EXPECT_EQ(hits(), 0u) << bit;
    }
}

TEST_F(CpWatch, MaskedBitsOfTheAddressDoNotCount) {
    set_watch(1, place ^ 0x40);
    const auto control = static_cast<hw_reg>(REG_GC_TCP_WATCH0_CNTL + kStride);
    rig.write(control, HW_SET(TCP_WATCH0_CNTL, MASK, rig.read(control), 0xfffffe));
    EXPECT_EQ(hits(), kBits[1]);
}

TEST_F(CpWatch, OtherProcessesDoNotHit) {
    set_watch(0, place, CP_FIRST_KFD_VMID + 1);
    EXPECT_EQ(hits(), 0u);
}

TEST_F(CpWatch, ReachesWavesThatRun) {
    start(true);
    spin();
    EXPECT_FALSE(has_ended());
    set_watch(2, place);
    spin();
    EXPECT_TRUE(has_ended());
    EXPECT_EQ(rig.memory.get<std::uint32_t>(out), kBits[2]);
}

TEST_F(CpWatch, IsSwitchedOutAndInWithItsVf) {
    start(true);
    spin();
    set_watch(1, place);
    std::vector<std::byte> stream;
    softgpu::Writer writer(stream);
    rig.registers.save(writer);
    rig.cp.save(writer);
    rig.registers.reset();
    rig.cp.poison();
    softgpu::Reader reader(stream);
    ASSERT_TRUE(rig.registers.load(reader));
    ASSERT_TRUE(rig.cp.load(reader));
    spin();
    EXPECT_TRUE(has_ended());
}

TEST_F(CpWatch, ResetEndsIt) {
    set_watch(0, place);
    rig.registers.reset();
    rig.cp.reset();
    start_queues();
    EXPECT_EQ(hits(), 0u);
}

TEST_F(CpWatch, TrapMaskOfTheDebuggerTurnsAHitIntoAnException) {
    constexpr std::uint32_t address_watch = 1u << 7;
    rig.set_mqd(queue, MQD_COMPUTE_PGM_RSRC2, HW_PREP(COMPUTE_PGM_RSRC2, TRAP_PRESENT, 1));
    rig.write(REG_GC_SPI_GDBG_TRAP_MASK, HW_PREP(SPI_GDBG_TRAP_MASK, EXCP_EN, address_watch));
    set_watch(0, place);
    const std::uint64_t memory = rig.memory.allocate(256);
    start(false, rig.load_trap_handler("trap_handler"), memory);
    rig.pump();
    EXPECT_EQ(rig.memory.get<std::uint32_t>(memory + 8), 1u) << "entries of the handler";
    EXPECT_EQ(rig.memory.get<std::uint32_t>(memory + 12), kBits[0]) << "TRAPSTS";
    EXPECT_FALSE(has_ended()) << "the handler halts the wave";
    EXPECT_EQ(rig.cp.counters().illegal_instructions + rig.cp.counters().faults, 0u);
}

TEST_F(CpWatch, ProcessUnderADebuggerHasTheVmidThatIsWatched) {
    rig.registers.reset();
    rig.cp.reset();
    start_queues(kDebuggedMask);
    set_watch(0, place, kDebugVmid);
    debug_vmid = kDebugVmid;
    EXPECT_EQ(hits(), kBits[0]);
    EXPECT_EQ(rig.vf.pasids[kDebugVmid], CpRig::kPasid);
}

TEST_F(CpWatch, DebuggerThatComesLaterReachesWavesInFlight) {
    start(true);
    spin();
    rig.unmap_all();
    rig.pump();
    set_watch(0, place, kDebugVmid);
    rig.run_list({{.queues = {&queue}, .debug_vmid = kDebugVmid}});
    spin();
    EXPECT_TRUE(has_ended());
}

}  // namespace
}  // namespace vgpu::test
