// SPDX-License-Identifier: MIT
//
// Work on a real engine across world switches: a chain of SDMA copies in VF VRAM, each of which
// needs the one before, so that the last words are right only if nothing was lost, repeated or
// reordered.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/pci_regs.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "pf-driver/hw/fields.h"
#include "tests/unit/gpu/gpu_guests.h"

namespace vgpu::softgpu::test {
namespace {

/// Memory of the PF that the device maps.
OwnedFd sealed_memory(std::uint64_t bytes) {
    OwnedFd memory(memfd_create("pf", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(ftruncate(memory.get(), static_cast<off_t>(bytes)), 0);
    EXPECT_EQ(fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
    return memory;
}

bool is_busy(PfClient& driver, unsigned vf) {
    const auto busy =
        driver.vsec<std::uint32_t>(unsigned{GPUIOV_GFX_SCH0} + GPUIOV_SCH_VM_BUSY_STATUS);
    return (busy & 1u << (vf - 1)) != 0;
}

class GpuWorkTest : public GpuRig, public ::testing::WithParamInterface<iov::SwitchMode> {
protected:
    GpuWorkTest() : GpuRig(GetParam()) {}
};

TEST_P(GpuWorkTest, NothingRunsUntilThePfRunsTheVf) {
    const auto driver = pf();
    driver->provision(1, kFirstVram, kMegabytes);
    const auto guest = vf(1);
    driver->set_bank(1, REG_VGPU_VF0_GATES, 7);
    SdmaGuest sdma(*guest);
    sdma.fill_first_block(1);
    sdma.submit_chain(4);
    EXPECT_EQ(driver->command(GPUIOV_CMD_LOAD, 1), GPUIOV_STATUS_DONE);
    EXPECT_EQ(sdma.word(1, 0), 0u);
    EXPECT_EQ(driver->command(GPUIOV_CMD_RUN, 1), GPUIOV_STATUS_DONE);
    EXPECT_TRUE(eventually([&] { return sdma.is_done(); }));
    sdma.expect_block(4);
}

TEST_P(GpuWorkTest, AChainCutIntoManyQuantaIsBitExactForEveryVf) {
    constexpr std::uint32_t kCopies = 1000;
    constexpr unsigned kVfs = 3;
    const auto driver = pf();
    std::vector<std::unique_ptr<VfClient>> guests;
    std::vector<SdmaGuest> rings;
    for (unsigned n = 1; n <= kVfs; ++n) {
        guests.push_back(vf(n));
        driver->provision(n, kFirstVram + (n - 1) * (std::uint64_t{kMegabytes} << 20), kMegabytes);
        rings.emplace_back(*guests.back()).fill_first_block(n);
    }
    for (SdmaGuest& ring : rings) ring.submit_chain(kCopies);
    unsigned current = 0;
    unsigned switches = 0;
    const bool is_finished = eventually([&] {
        const unsigned next = current % kVfs + 1;
        EXPECT_EQ(driver->command(GPUIOV_CMD_CONTEXT_SWITCH, current, next), GPUIOV_STATUS_DONE);
        current = next;
        ++switches;
        return std::ranges::all_of(rings, [](SdmaGuest& ring) { return ring.is_done(); });
    });
    EXPECT_TRUE(is_finished);
    EXPECT_GE(switches, kVfs);
    for (SdmaGuest& ring : rings) ring.expect_block(kCopies);
    for (unsigned n = 1; n <= kVfs; ++n) EXPECT_GE(driver->bank(n, REG_VGPU_VF0_SWITCHES), 1u);
}

/// Has the device write the run log to memory of the PF's client; returns that memory.
OwnedFd start_run_log(PfClient& driver) {
    constexpr std::uint64_t kLogAddress = 0x100000;
    constexpr std::uint64_t kLogBytes = 1u << 16;
    OwnedFd memory = sealed_memory(kLogBytes);
    driver.map_dma(kLogAddress, kLogBytes, memory.get());
    driver.set_reg(REG_VGPU_LOG_BASE_LO, kLogAddress);
    driver.set_reg(REG_VGPU_LOG_SIZE, 64);
    return memory;
}

vgpu_hw_run_log_entry first_entry(const OwnedFd& memory) {
    vgpu_hw_run_log_entry entry{};
    EXPECT_EQ(pread(memory.get(), &entry, sizeof(entry), 0), ssize_t{sizeof(entry)});
    return entry;
}

TEST_P(GpuWorkTest, TheQuantumParksTheVfAndIsLogged) {
    const auto driver = pf();
    const OwnedFd memory = start_run_log(*driver);
    driver->provision(1, kFirstVram, kMegabytes);
    driver->enable_interrupts(GPUIOV_INTR_GFX_QUANTUM_EXPIRED);
    driver->set_bank(1, REG_VGPU_VF0_QUANTUM_US, 2000);
    EXPECT_EQ(driver->command(GPUIOV_CMD_CONTEXT_SWITCH, 0, 1), GPUIOV_STATUS_DONE);
    ASSERT_TRUE(driver->switch_event.wait());
    EXPECT_NE(driver->take_interrupts() & GPUIOV_INTR_GFX_QUANTUM_EXPIRED, 0u);
    EXPECT_EQ(driver->reg(REG_VGPU_LOG_WPTR), 1u);
    const vgpu_hw_run_log_entry entry = first_entry(memory);
    EXPECT_EQ(entry.seq, 1u);
    EXPECT_EQ(entry.vf, 1u);
    EXPECT_EQ(entry.reason, static_cast<std::uint32_t>(VGPU_RUN_END_QUANTUM));
    EXPECT_GE(entry.run_end_ns - entry.run_start_ns, 2'000'000u);
    const std::uint64_t run_ns = driver->bank(1, REG_VGPU_VF0_RUN_NS_LO);
    EXPECT_EQ(run_ns, entry.run_end_ns - entry.run_start_ns);
}

TEST_P(GpuWorkTest, WithoutBusMasteringThePfWritesNoMemory) {
    const auto driver = pf();
    const OwnedFd memory = start_run_log(*driver);
    driver->provision(1, kFirstVram, kMegabytes);
    driver->set_bank(1, REG_VGPU_VF0_QUANTUM_US, 2000);
    driver->set_config(PCI_COMMAND, std::uint16_t{PCI_COMMAND_MEMORY});
    EXPECT_EQ(driver->command(GPUIOV_CMD_CONTEXT_SWITCH, 0, 1), GPUIOV_STATUS_DONE);
    EXPECT_TRUE(eventually(
        [&] { return (driver->take_interrupts() & GPUIOV_INTR_GFX_QUANTUM_EXPIRED) != 0; }));
    const vgpu_hw_run_log_entry entry = first_entry(memory);
    EXPECT_EQ(entry.seq, 0u);
}

TEST_P(GpuWorkTest, AVfWithoutWorkSaysSo) {
    const auto driver = pf();
    driver->provision(1, kFirstVram, kMegabytes);
    driver->enable_interrupts(GPUIOV_INTR_GFX_VM_IDLE);
    EXPECT_EQ(driver->command(GPUIOV_CMD_CONTEXT_SWITCH, 0, 1), GPUIOV_STATUS_DONE);
    EXPECT_TRUE(driver->switch_event.wait());
}

TEST_P(GpuWorkTest, AParkWithdrawsTheReportOfAnIdleVf) {
    const auto driver = pf();
    for (const unsigned n : {1u, 2u})
        driver->provision(n, kFirstVram + (n - 1) * (std::uint64_t{kMegabytes} << 20), kMegabytes);
    EXPECT_EQ(driver->command(GPUIOV_CMD_CONTEXT_SWITCH, 0, 1), GPUIOV_STATUS_DONE);
    EXPECT_TRUE(eventually([&] {
        return (driver->vsec<std::uint32_t>(GPUIOV_INTR_STATUS) & GPUIOV_INTR_GFX_VM_IDLE) != 0;
    }));
    EXPECT_EQ(driver->command(GPUIOV_CMD_CONTEXT_SWITCH, 1, 0), GPUIOV_STATUS_DONE);
    EXPECT_EQ(driver->vsec<std::uint32_t>(GPUIOV_INTR_STATUS) & GPUIOV_INTR_GFX_VM_IDLE, 0u);
}

TEST_P(GpuWorkTest, CodeThatIsReplacedRunsAfterATlbInvalidation) {
    const auto driver = pf();
    driver->provision(1, kFirstVram, kMegabytes);
    const auto guest = vf(1);
    GfxGuest gfx(*guest);
    ASSERT_EQ(driver->command(GPUIOV_CMD_LOAD, 1), GPUIOV_STATUS_DONE);
    ASSERT_EQ(driver->command(GPUIOV_CMD_RUN, 1), GPUIOV_STATUS_DONE);
    gfx.put_code(1);
    ASSERT_EQ(gfx.dispatch(), 1u);
    gfx.put_code(2);
    guest->set_reg(REG_GC_VM_INVALIDATE_ENG0_REQ, HW_PREP(VM_INVALIDATE_REQ, VMIDS, 1));
    EXPECT_EQ(gfx.dispatch(), 2u);
}

/// A page of GART that leads to `address` on the bus.
constexpr std::uint64_t kPageVa = 0x3000;

void map_page(VfClient& guest, std::uint64_t address) {
    constexpr std::uint64_t kTable = 7u << 20;
    constexpr std::uint64_t kEntry =
        GPUVM_PTE_VALID | GPUVM_PTE_SYSTEM | GPUVM_PTE_READABLE | GPUVM_PTE_WRITEABLE;
    guest.set_config(PCI_COMMAND, std::uint16_t{PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER});
    guest.set_vram(kTable + kPageVa / 4096 * 8, address | kEntry);
    guest.set_reg(REG_GC_VM_CONTEXT0_PAGE_TABLE_BASE_ADDR_LO32, kTable | GPUVM_ROOT_VALID);
    guest.set_reg(REG_GC_VM_CONTEXT0_PAGE_TABLE_END_ADDR_LO32, 16);
    guest.set_reg(REG_GC_VM_CONTEXT0_CNTL, HW_PREP(VM_CONTEXT_CNTL, ENABLE, 1));
}

/// The VF's doorbell BAR at a bus address; kPageVa leads to its first page.
constexpr std::uint64_t kDoorbellBar = 0x38'0020'0000;

void map_doorbells(VfClient& guest) {
    guest.set_config(PCI_BASE_ADDRESS_2, low32(kDoorbellBar));
    guest.set_config(PCI_BASE_ADDRESS_3, high32(kDoorbellBar));
    map_page(guest, kDoorbellBar);
}

TEST_P(GpuWorkTest, EnginesRingTheDoorbellsOfTheirOwnVf) {
    using Store = void (GfxGuest::*)(std::uint64_t, std::uint64_t);
    const auto driver = pf();
    const auto guest = vf(1);
    driver->provision(1, kFirstVram, kMegabytes);
    map_doorbells(*guest);
    ASSERT_EQ(driver->command(GPUIOV_CMD_CONTEXT_SWITCH, 0, 1), GPUIOV_STATUS_DONE);
    GfxGuest gfx(*guest);
    constexpr std::uint64_t kVa = kPageVa + DOORBELL_SDMA0 * 4;
    for (const Store store :
         {&GfxGuest::store_by_wave, &GfxGuest::store_by_packet, &GfxGuest::store_by_fence}) {
        SdmaGuest sdma(*guest);
        sdma.fill_first_block(7);
        const std::uint64_t end = sdma.put_chain(8);
        EXPECT_FALSE(sdma.is_done());
        (gfx.*store)(kVa, end);
        EXPECT_TRUE(eventually([&] { return sdma.is_done(); }));
        sdma.expect_block(8);
        guest->set_reg(REG_SDMA0_SDMA0_GFX_RB_CNTL, 0);  // the next one begins a ring of its own
        guest->set_reg(REG_SDMA0_SDMA0_GFX_RB_RPTR, 0);
        guest->set_reg(REG_SDMA0_SDMA0_GFX_RB_WPTR, 0);
        guest->set_vram(kRptr, std::uint64_t{0});
    }
    EXPECT_EQ(gpu->vf(VfId{1}).statistics().faults, 0u);
}

TEST_P(GpuWorkTest, WithoutBusMasteringAVfReachesNoMemoryOfItsGuest) {
    constexpr std::uint64_t kAddress = 0x38'0010'0000;
    const auto driver = pf();
    const auto guest = vf(1);
    driver->provision(1, kFirstVram, kMegabytes);
    const OwnedFd memory = sealed_memory(4096);
    guest->map_dma(kAddress, 4096, memory.get());
    map_page(*guest, kAddress);
    ASSERT_EQ(driver->command(GPUIOV_CMD_CONTEXT_SWITCH, 0, 1), GPUIOV_STATUS_DONE);
    GfxGuest gfx(*guest);
    const auto first_qword = [&] {
        std::uint64_t seen = 0;
        EXPECT_EQ(pread(memory.get(), &seen, sizeof(seen), 0), ssize_t{sizeof(seen)});
        return seen;
    };
    gfx.store_by_wave(kPageVa, 1);
    EXPECT_EQ(first_qword(), 1u);
    guest->set_config(PCI_COMMAND, std::uint16_t{PCI_COMMAND_MEMORY});
    guest->set_config(PCI_COMMAND, std::uint16_t{PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER});
    gfx.store_by_wave(kPageVa, 2);
    EXPECT_EQ(first_qword(), 2u);
    guest->set_config(PCI_COMMAND, std::uint16_t{PCI_COMMAND_MEMORY});
    gfx.expect_fault(kPageVa, [&] { return gpu->vf(VfId{1}).statistics().faults == 1; });
    EXPECT_EQ(first_qword(), 2u);
}

TEST_P(GpuWorkTest, AWaveThatRingsItsOwnQueueDoesNotWaitForItself) {
    const auto driver = pf();
    const auto guest = vf(1);
    driver->provision(1, kFirstVram, kMegabytes);
    map_doorbells(*guest);
    ASSERT_EQ(driver->command(GPUIOV_CMD_CONTEXT_SWITCH, 0, 1), GPUIOV_STATUS_DONE);
    GfxGuest gfx(*guest);
    gfx.store_by_wave(kMcBase + kData, 0);
    const std::uint64_t rung = gpu->vf(VfId{1}).doorbell_counters().rung;
    // where the ring will end when the same packets are in it once more
    gfx.store_by_wave(kPageVa + DOORBELL_GFX_RING0 * 4, 2 * gfx.ring_dwords());
    EXPECT_TRUE(eventually([&] { return gpu->vf(VfId{1}).doorbell_counters().rung == rung + 2; }));
    gfx.store_by_wave(kMcBase + kData, 0x600d);
    EXPECT_EQ(guest->vram<std::uint64_t>(kData), 0x600du);
}

TEST_P(GpuWorkTest, ADoorbellPageThatIsNotWhereTheBarIsFaults) {
    const auto driver = pf();
    const auto guest = vf(1);
    driver->provision(1, kFirstVram, kMegabytes);
    map_doorbells(*guest);
    guest->set_config(PCI_BASE_ADDRESS_3, std::uint32_t{0x39});  // moved, the table is not
    ASSERT_EQ(driver->command(GPUIOV_CMD_CONTEXT_SWITCH, 0, 1), GPUIOV_STATUS_DONE);
    const std::uint64_t rung = gpu->vf(VfId{1}).doorbell_counters().rung;
    GfxGuest gfx(*guest);
    gfx.expect_fault(kPageVa, [&] { return gpu->vf(VfId{1}).statistics().faults == 1; });
    EXPECT_EQ(gpu->vf(VfId{1}).doorbell_counters().rung, rung + 1) << "the client's own";
}

TEST_P(GpuWorkTest, AnFlrOfTheRunningVfDropsItsWorkAndFreesTheEngine) {
    const auto driver = pf();
    const auto guest = vf(1);
    driver->provision(1, kFirstVram, kMegabytes);
    SdmaGuest sdma(*guest);
    sdma.submit_chain(500);
    EXPECT_EQ(driver->command(GPUIOV_CMD_CONTEXT_SWITCH, 0, 1), GPUIOV_STATUS_DONE);
    driver->flr(1);
    EXPECT_EQ(guest->reg(REG_SDMA0_SDMA0_GFX_RB_CNTL), 0u);
    EXPECT_EQ(HW_GET(VGPU_STATUS, HAS_WORK, driver->bank(1, REG_VGPU_VF0_STATUS)), 0u);
    EXPECT_EQ(driver->command(GPUIOV_CMD_CONTEXT_SWITCH, 0, 2), GPUIOV_STATUS_DONE);
}

TEST_P(GpuWorkTest, AStuckCopyEngineHangsOnlyItsVfUntilTheFlr) {
    const auto driver = pf();
    const auto guest = vf(1);
    driver->provision(1, kFirstVram, kMegabytes);
    ASSERT_TRUE(gpu->faults().add({VfId{1}, iov::FaultPoint::Sdma, iov::FaultEffect::Lost}));
    SdmaGuest sdma(*guest);
    sdma.submit_chain(4);
    EXPECT_EQ(driver->command(GPUIOV_CMD_CONTEXT_SWITCH, 0, 1), GPUIOV_STATUS_DONE);
    ASSERT_TRUE(eventually([&] { return gpu->faults().injected() == 1; }));
    // The fault is counted before the engine has stopped; then the VF has nothing it could do.
    ASSERT_TRUE(eventually(
        [&] { return HW_GET(VGPU_STATUS, HAS_WORK, driver->bank(1, REG_VGPU_VF0_STATUS)) == 0; }));
    driver->set_vsec(unsigned{GPUIOV_GFX_SCH0} + GPUIOV_SCH_CMD_CONTROL,
                     GPUIOV_COMMAND(GPUIOV_CMD_IDLE, GPUIOV_FCN_VF, 0));
    ASSERT_TRUE(eventually([&] {
        return driver->vsec<std::uint8_t>(unsigned{GPUIOV_GFX_SCH0} +
                                          GPUIOV_SCH_ACTIVE_FUNCTION_STATUS) ==
               GPUIOV_FUNCTION_STALLED;
    }));
    EXPECT_NE(driver->vsec<std::uint8_t>(unsigned{GPUIOV_GFX_SCH0} + GPUIOV_SCH_CMD_CONTROL) &
                  GPUIOV_CMD_EXECUTE,
              0u);
    driver->flr(1);
    EXPECT_EQ(driver->command(GPUIOV_CMD_CONTEXT_SWITCH, 0, 2), GPUIOV_STATUS_DONE);
}

TEST_P(GpuWorkTest, SavedStateContinuesAfterALoad) {
    constexpr std::uint64_t kAddress = 0x1000000;
    constexpr std::uint64_t kBytes = 16u << 20;
    constexpr std::uint32_t kCopies = 200;
    const OwnedFd memory = sealed_memory(kBytes);
    const auto driver = pf();
    driver->map_dma(kAddress, kBytes, memory.get());
    const auto guest = vf(1);
    driver->provision(1, kFirstVram, kMegabytes);
    SdmaGuest sdma(*guest);
    sdma.fill_first_block(9);
    sdma.submit_chain(kCopies);  // latched: part of the state
    EXPECT_EQ(driver->operation(VGPU_OP_SAVE_STATE, 1, 0, kAddress, kBytes),
              static_cast<std::uint32_t>(VGPU_OP_DONE));
    const std::uint64_t bytes = driver->reg(REG_VGPU_OP_SIZE_LO);
    EXPECT_GT(bytes, HW_REG_BAR_BYTES);
    EXPECT_EQ(driver->operation(VGPU_OP_SCRUB_STATE, 1, 0, 0, 0),
              static_cast<std::uint32_t>(VGPU_OP_DONE));
    EXPECT_EQ(guest->reg(REG_SDMA0_SDMA0_GFX_RB_CNTL), 0u);
    EXPECT_EQ(driver->operation(VGPU_OP_LOAD_STATE, 1, kAddress, 0, bytes - 8),
              static_cast<std::uint32_t>(VGPU_OP_REFUSED));
    EXPECT_EQ(driver->operation(VGPU_OP_LOAD_STATE, 1, kAddress, 0, bytes),
              static_cast<std::uint32_t>(VGPU_OP_DONE));
    EXPECT_EQ(driver->command(GPUIOV_CMD_CONTEXT_SWITCH, 0, 1), GPUIOV_STATUS_DONE);
    EXPECT_EQ(driver->operation(VGPU_OP_SAVE_STATE, 1, 0, kAddress, kBytes),
              static_cast<std::uint32_t>(VGPU_OP_REFUSED));  // it runs
    EXPECT_TRUE(eventually([&] { return sdma.is_done(); }));
    sdma.expect_block(kCopies);
}

TEST_P(GpuWorkTest, ALoadedStateChangesNoCounterOfTheVf) {
    constexpr std::uint64_t kAddress = 0x1000000;
    constexpr std::uint64_t kBytes = 16u << 20;
    const OwnedFd memory = sealed_memory(kBytes);
    const auto driver = pf();
    driver->map_dma(kAddress, kBytes, memory.get());
    const auto guest = vf(1);
    driver->provision(1, kFirstVram, kMegabytes);
    driver->provision(2, kFirstVram + (std::uint64_t{kMegabytes} << 20), kMegabytes);
    ASSERT_EQ(driver->command(GPUIOV_CMD_CONTEXT_SWITCH, 0, 1), GPUIOV_STATUS_DONE);
    map_page(*guest, 0x38'0010'0000);  // where the guest has no memory
    GfxGuest gfx(*guest);
    gfx.store_by_wave(kMcBase + kData, 1);
    gfx.expect_fault(kPageVa, [&] { return gpu->vf(VfId{1}).statistics().faults != 0; });
    EXPECT_EQ(driver->command(GPUIOV_CMD_IDLE, 1), GPUIOV_STATUS_DONE);
    ASSERT_EQ(driver->operation(VGPU_OP_SAVE_STATE, 1, 0, kAddress, kBytes),
              static_cast<std::uint32_t>(VGPU_OP_DONE));
    const std::uint64_t bytes = driver->reg(REG_VGPU_OP_SIZE_LO);
    const iov::VfStatistics before = gpu->vf(VfId{1}).statistics();
    EXPECT_GT(before.wave_instructions, 0u);
    const auto load_both = [&](vgpu_hw_op_status expected) {
        for (const unsigned number : {1u, 2u})
            EXPECT_EQ(driver->operation(VGPU_OP_LOAD_STATE, number, kAddress, 0, bytes),
                      static_cast<std::uint32_t>(expected));
        EXPECT_EQ(gpu->vf(VfId{1}).statistics().wave_instructions, before.wave_instructions);
        EXPECT_EQ(gpu->vf(VfId{1}).statistics().faults, before.faults);
        EXPECT_EQ(gpu->vf(VfId{2}).statistics().wave_instructions, 0u);
        EXPECT_EQ(gpu->vf(VfId{2}).statistics().faults, 0u);
    };
    load_both(VGPU_OP_DONE);
    constexpr std::uint64_t kHead = 24;  // its last field is the length of the rest
    const std::uint64_t too_short = bytes - kHead - 8;
    EXPECT_EQ(pwrite(memory.get(), &too_short, sizeof(too_short), off_t{kHead - 8}),
              ssize_t{sizeof(too_short)});
    load_both(VGPU_OP_REFUSED);
}

TEST_P(GpuWorkTest, ALoadedVfThatHasWorkIsBusyAndTellsThePf) {
    constexpr std::uint64_t kAddress = 0x1000000;
    constexpr std::uint64_t kBytes = 16u << 20;
    const OwnedFd memory = sealed_memory(kBytes);
    const auto driver = pf();
    driver->map_dma(kAddress, kBytes, memory.get());
    const auto guest = vf(1);
    driver->provision(1, kFirstVram, kMegabytes);
    driver->provision(2, kFirstVram + (std::uint64_t{kMegabytes} << 20), kMegabytes);
    SdmaGuest sdma(*guest);
    sdma.submit_chain(4);
    ASSERT_EQ(driver->operation(VGPU_OP_SAVE_STATE, 1, 0, kAddress, kBytes),
              static_cast<std::uint32_t>(VGPU_OP_DONE));
    const std::uint64_t bytes = driver->reg(REG_VGPU_OP_SIZE_LO);
    driver->enable_interrupts(GPUIOV_INTR_GFX_VM_BUSY);
    driver->set_reg(REG_VGPU_WAKE_ENABLE, 1u << 1);
    EXPECT_FALSE(is_busy(*driver, 2));
    ASSERT_EQ(driver->operation(VGPU_OP_LOAD_STATE, 2, kAddress, 0, bytes),
              static_cast<std::uint32_t>(VGPU_OP_DONE));
    EXPECT_TRUE(is_busy(*driver, 2));
    EXPECT_TRUE(driver->switch_event.wait());
    EXPECT_NE(driver->take_interrupts() & GPUIOV_INTR_GFX_VM_BUSY, 0u);
}

TEST_P(GpuWorkTest, AResetVfIsNotBusyUntilItGetsNewWork) {
    const auto driver = pf();
    const auto guest = vf(1);
    driver->provision(1, kFirstVram, kMegabytes);
    driver->set_reg(REG_VGPU_WAKE_ENABLE, 1);
    const auto expect_busy_after_a_ring = [&] {
        (void)driver->take_interrupts();
        guest->ring(DOORBELL_PROCESS_FIRST, 1);
        EXPECT_TRUE(is_busy(*driver, 1));
        EXPECT_NE(driver->take_interrupts() & GPUIOV_INTR_GFX_VM_BUSY, 0u);
    };
    expect_busy_after_a_ring();
    driver->flr(1);
    EXPECT_FALSE(is_busy(*driver, 1));
    expect_busy_after_a_ring();
    EXPECT_EQ(driver->operation(VGPU_OP_SCRUB_STATE, 1, 0, 0, 0),
              static_cast<std::uint32_t>(VGPU_OP_DONE));
    EXPECT_FALSE(is_busy(*driver, 1));
    expect_busy_after_a_ring();
    EXPECT_EQ(driver->command(GPUIOV_CMD_INIT, 1), GPUIOV_STATUS_DONE);
    EXPECT_FALSE(is_busy(*driver, 1));
    expect_busy_after_a_ring();
    guest->device_reset();
    EXPECT_FALSE(is_busy(*driver, 1));
}

std::string mode_name(const ::testing::TestParamInfo<iov::SwitchMode>& mode) {
    return mode.param == iov::SwitchMode::TrueCopy ? "TrueCopy" : "Pointer";
}
INSTANTIATE_TEST_SUITE_P(Modes, GpuWorkTest,
                         ::testing::Values(iov::SwitchMode::Pointer, iov::SwitchMode::TrueCopy),
                         mode_name);

/// The doorbell BAR as a client has mapped it.
class MappedDoorbells {
public:
    explicit MappedDoorbells(VfClient& guest) {
        const OwnedFd fd = guest.bar_memory(VGPU_BAR_DOORBELL);
        EXPECT_TRUE(fd);
        bar_ = mmap(nullptr, DOORBELL_BAR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
        EXPECT_NE(bar_, MAP_FAILED);
    }
    ~MappedDoorbells() { munmap(bar_, DOORBELL_BAR_BYTES); }
    MappedDoorbells(const MappedDoorbells&) = delete;
    MappedDoorbells& operator=(const MappedDoorbells&) = delete;

    void ring(std::uint32_t dword, std::uint64_t value) {
        store(std::span(static_cast<std::byte*>(bar_), DOORBELL_BAR_BYTES), dword * 4ull, value);
    }

private:
    void* bar_ = nullptr;
};

/// True copy, and doorbells that are looked at.
class PolledCopyTest : public GpuRig {
protected:
    PolledCopyTest() : GpuRig(iov::SwitchMode::TrueCopy, iov::DoorbellMode::Poll) {}
};

TEST_F(PolledCopyTest, AVfThatWaitsOffTheEngineIsSavedAgainAfterEachLook) {
    const auto driver = pf();
    const auto guest = vf(1);
    driver->provision(1, kFirstVram, kMegabytes);
    ASSERT_EQ(driver->command(GPUIOV_CMD_CONTEXT_SWITCH, 0, 1), GPUIOV_STATUS_DONE);
    ASSERT_EQ(driver->command(GPUIOV_CMD_CONTEXT_SWITCH, 1, 0), GPUIOV_STATUS_DONE);
    GpuVf& device = gpu->vf(VfId{1});
    ASSERT_TRUE(device.is_saved());
    device.poll_waits();
    EXPECT_TRUE(device.is_saved());
    // the poller may find the VF active, and scan its doorbells after the switch
    device.scan_doorbells(iov::Doorbells::Scan::Hot);
    EXPECT_TRUE(device.is_saved());
}

class PolledDoorbellsTest : public GpuRig {
protected:
    PolledDoorbellsTest() : GpuRig(iov::SwitchMode::Pointer, iov::DoorbellMode::Poll) {}

    /// The PF has seen a client's reset and lets the VF go on.
    static void acknowledge(PfClient& driver) {
        ASSERT_TRUE(eventually([&] {
            return HW_GET(VGPU_RESET, FLR_PENDING, driver.bank(1, REG_VGPU_VF0_RESET)) == 1;
        }));
        driver.set_bank(1, REG_VGPU_VF0_RESET, HW_PREP(VGPU_RESET, FLR_PENDING, 1));
        driver.set_bank(1, REG_VGPU_VF0_GATES, 7);
    }
    static std::uint64_t latched(VfClient& guest, std::uint32_t dword) {
        return guest.get<std::uint64_t>(VGPU_BAR_DOORBELL, dword * 4ull);
    }
    /// A scan goes from the lowest doorbell up: who saw the ring of now would have seen that by the
    /// former mapping, which is older and higher.
    static void expect_that_rings_nothing(MappedDoorbells& former, PfClient& driver,
                                          VfClient& guest) {
        MappedDoorbells mapped(guest);
        driver.set_reg(REG_VGPU_WAKE_ENABLE, 1);
        former.ring(DOORBELL_SDMA0, 5);
        mapped.ring(DOORBELL_KIQ, 6);
        EXPECT_TRUE(eventually([&] { return latched(guest, DOORBELL_KIQ) == 6; }));
        EXPECT_EQ(latched(guest, DOORBELL_SDMA0), 0u);
    }
};

TEST_F(PolledDoorbellsTest, ARingInMappedPagesReachesTheEngineAndWakesAnInactiveVf) {
    const auto driver = pf();
    const auto guest = vf(1);
    driver->provision(1, kFirstVram, kMegabytes);
    MappedDoorbells mapped(*guest);
    SdmaGuest sdma(*guest);
    sdma.fill_first_block(3);
    driver->enable_interrupts(GPUIOV_INTR_GFX_VM_BUSY);
    driver->set_reg(REG_VGPU_WAKE_ENABLE, 1);
    sdma.submit_chain(8);  // by message; the mapped page rings the same doorbell again
    mapped.ring(DOORBELL_SDMA0, 8 * kCopyDwords * 4);
    EXPECT_TRUE(driver->switch_event.wait());
    EXPECT_EQ(driver->command(GPUIOV_CMD_CONTEXT_SWITCH, 0, 1), GPUIOV_STATUS_DONE);
    EXPECT_TRUE(eventually([&] { return sdma.is_done(); }));
    sdma.expect_block(8);
}

TEST_F(PolledDoorbellsTest, ARingOfAClientThatComesLateWakesThePf) {
    const auto driver = pf();
    driver->enable_interrupts(GPUIOV_INTR_GFX_VM_BUSY);
    driver->set_reg(REG_VGPU_WAKE_ENABLE, 1);
    driver->provision(1, kFirstVram, kMegabytes);
    const auto guest = vf(1);
    MappedDoorbells mapped(*guest);
    mapped.ring(DOORBELL_KIQ, 6);
    EXPECT_TRUE(driver->switch_event.wait());
}

TEST_F(PolledDoorbellsTest, AFormerClientsMappingRingsNothingOfTheNextOwner) {
    const auto driver = pf();
    driver->provision(1, kFirstVram, kMegabytes);
    auto guest = vf(1);
    MappedDoorbells former(*guest);
    guest->close();
    acknowledge(*driver);
    guest = vf(1);
    expect_that_rings_nothing(former, *driver, *guest);
}

TEST_F(PolledDoorbellsTest, AMappingEndsWithAScrub) {
    const auto driver = pf();
    driver->provision(1, kFirstVram, kMegabytes);
    const auto guest = vf(1);
    MappedDoorbells former(*guest);
    EXPECT_EQ(driver->operation(VGPU_OP_SCRUB_STATE, 1, 0, 0, 0),
              static_cast<std::uint32_t>(VGPU_OP_DONE));
    expect_that_rings_nothing(former, *driver, *guest);
}

TEST_F(PolledDoorbellsTest, AMappingOutlivesAResetByItsClient) {
    const auto driver = pf();
    driver->provision(1, kFirstVram, kMegabytes);
    const auto guest = vf(1);
    MappedDoorbells mapped(*guest);
    guest->device_reset();
    acknowledge(*driver);
    driver->set_reg(REG_VGPU_WAKE_ENABLE, 1);
    mapped.ring(DOORBELL_KIQ, 6);
    EXPECT_TRUE(eventually([&] { return latched(*guest, DOORBELL_KIQ) == 6; }));
}

}  // namespace
}  // namespace vgpu::softgpu::test
