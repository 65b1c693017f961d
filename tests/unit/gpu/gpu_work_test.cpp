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

#include "pf-driver/hw/doorbell.h"
#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/gpuvm.h"
#include "pf-driver/hw/pm4.h"
#include "pf-driver/hw/sdma.h"
#include "tests/unit/gpu/gpu_rig.h"

namespace vgpu::softgpu::test {
namespace {

constexpr std::uint32_t kMegabytes = 16;
constexpr std::uint64_t kFirstVram = 32u << 20;
constexpr std::uint64_t kRing = 1u << 20;  // VF VRAM offsets
constexpr std::uint64_t kRptr = 2u << 20;
constexpr std::uint64_t kGfxRing = 3u << 20;
constexpr std::uint64_t kGfxRptr = kRptr + 4096;
constexpr std::uint64_t kData = 4u << 20;
constexpr std::uint32_t kRingLog2 = 14;  // dwords
constexpr std::uint32_t kCopyBytes = 4096;
constexpr std::uint32_t kCopyDwords = 7;
constexpr std::uint64_t kMcBase = std::uint64_t{GPUVM_FB_LOCATION_BASE} << GPUVM_FB_LOCATION_SHIFT;

/// The kernel ring of SDMA0 as a driver sets it up during full access.
class SdmaGuest {
public:
    explicit SdmaGuest(VfClient& vf) : vf_(vf) {
        const std::uint64_t ring = (kMcBase + kRing) >> 8;
        vf_.set_reg(REG_SDMA0_SDMA0_GFX_RB_BASE, low32(ring));
        vf_.set_reg(REG_SDMA0_SDMA0_GFX_RB_BASE_HI, high32(ring));
        vf_.set_reg(REG_SDMA0_SDMA0_GFX_RB_RPTR_ADDR_LO, low32(kMcBase + kRptr));
        vf_.set_reg(REG_SDMA0_SDMA0_GFX_RB_RPTR_ADDR_HI, high32(kMcBase + kRptr));
        vf_.set_reg(REG_SDMA0_SDMA0_GFX_DOORBELL_OFFSET,
                    HW_PREP(SDMA_DOORBELL_OFFSET, OFFSET, DOORBELL_SDMA0));
        vf_.set_reg(REG_SDMA0_SDMA0_GFX_DOORBELL, HW_PREP(SDMA_DOORBELL, ENABLE, 1));
        vf_.set_reg(REG_SDMA0_SDMA0_GFX_IB_CNTL, 1);
        vf_.set_reg(REG_SDMA0_SDMA0_GFX_RB_CNTL,
                    HW_PREP(SDMA_RB_CNTL, RB_ENABLE, 1) |
                        HW_PREP(SDMA_RB_CNTL, RB_SIZE, kRingLog2) |
                        HW_PREP(SDMA_RB_CNTL, RPTR_WRITEBACK_ENABLE, 1));
    }

    /// Copies block i to block i + 1, for i in [0, count).
    void submit_chain(std::uint32_t count) { vf_.ring(DOORBELL_SDMA0, put_chain(count)); }
    /// Leaves the ring to others; its write pointer.
    std::uint64_t put_chain(std::uint32_t count) {
        std::vector<std::uint32_t> packets;
        for (std::uint32_t i = 0; i < count; ++i) {
            const std::uint64_t from = kMcBase + kData + std::uint64_t{i} * kCopyBytes;
            const std::uint64_t to = from + kCopyBytes;
            for (const std::uint32_t dword : {std::uint32_t{SDMA_OP_COPY}, kCopyBytes - 1, 0u,
                                              low32(from), high32(from), low32(to), high32(to)})
                packets.push_back(dword);
        }
        vf_.write(VGPU_BAR_VRAM, kRing, std::as_bytes(std::span(packets)));
        end_ = packets.size() * sizeof(std::uint32_t);
        return end_;
    }
    [[nodiscard]] bool is_done() { return vf_.vram<std::uint64_t>(kRptr) == end_; }
    std::uint32_t word(std::uint32_t block, std::uint32_t offset) {
        return vf_.vram<std::uint32_t>(kData + std::uint64_t{block} * kCopyBytes + offset);
    }
    void fill_first_block(std::uint32_t seed) {
        std::vector<std::uint32_t> words(kCopyBytes / 4);
        for (std::uint32_t& word : words) word = seed = seed * 1664525u + 1013904223u;
        vf_.write(VGPU_BAR_VRAM, kData, std::as_bytes(std::span(words)));
        first_ = words;
    }
    void expect_block(std::uint32_t block) {
        std::vector<std::uint32_t> words(kCopyBytes / 4);
        vf_.read(VGPU_BAR_VRAM, kData + std::uint64_t{block} * kCopyBytes,
                 std::as_writable_bytes(std::span(words)));
        EXPECT_EQ(words, first_);
    }

private:
    VfClient& vf_;
    std::uint64_t end_ = 0;
    std::vector<std::uint32_t> first_;
};

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

/// The gfx ring, as a driver sets it up during full access, and a kernel of one wave that stores a
/// number.
class GfxGuest {
public:
    explicit GfxGuest(VfClient& vf) : vf_(vf) {
        vf_.set_reg(REG_GC_CP_RB0_CNTL, HW_PREP(CP_RB0_CNTL, RB_BUFSZ, kRingLog2 - 1));
        vf_.set_reg(REG_GC_CP_RB0_WPTR, 0);
        vf_.set_reg(REG_GC_CP_RB0_WPTR_HI, 0);
        vf_.set_reg(REG_GC_CP_RB0_RPTR_ADDR, low32(kMcBase + kGfxRptr));
        vf_.set_reg(REG_GC_CP_RB0_RPTR_ADDR_HI, high32(kMcBase + kGfxRptr));
        vf_.set_reg(REG_GC_CP_RB0_BASE, low32((kMcBase + kGfxRing) >> 8));
        vf_.set_reg(REG_GC_CP_RB0_BASE_HI, high32((kMcBase + kGfxRing) >> 8));
        vf_.set_reg(REG_GC_CP_RB_DOORBELL_CONTROL,
                    HW_PREP(CP_RB_DOORBELL_CONTROL, OFFSET, DOORBELL_GFX_RING0) |
                        HW_PREP(CP_RB_DOORBELL_CONTROL, ENABLE, 1));
    }
    void put_code(std::uint16_t number) {
        const std::array<std::uint32_t, 4> code{
            0xb0040000u | number,    // s_movk_i32 s4, number
            0xc0420100, 0x00000000,  // s_store_dword s4, s[0:1], 0x0
            0xbf810000,              // s_endpgm
        };
        vf_.write(VGPU_BAR_VRAM, kCode, std::as_bytes(std::span(code)));
    }
    /// One lane stores 8 bytes.
    void store_by_wave(std::uint64_t va, std::uint64_t value) {
        const std::array<std::uint32_t, 8> code{
            0xbefe0181,                                      // s_mov_b64 exec, 1
            0x7e000200, 0x7e020201, 0x7e040202, 0x7e060203,  // v_mov_b32 v0..v3, s0..s3
            0xdc748000, 0x007f0200,                          // global_store_dwordx2 v[0:1], v[2:3]
            0xbf810000,                                      // s_endpgm
        };
        vf_.write(VGPU_BAR_VRAM, kCode, std::as_bytes(std::span(code)));
        dispatch({low32(va), high32(va), low32(value), high32(value)});
    }
    [[nodiscard]] std::uint64_t ring_dwords() const { return ring_.size(); }
    void store_by_packet(std::uint64_t va, std::uint64_t value) {
        add(PM4_OP_WRITE_DATA, {HW_PREP(WRITE_DATA_1, DST_SEL, PM4_COPY_DST_MEMORY), low32(va),
                                high32(va), low32(value), high32(value)});
        submit();
    }
    /// A store by packet that does not arrive.
    void expect_fault(std::uint64_t va, const std::function<bool()>& is_seen) {
        add(PM4_OP_WRITE_DATA,
            {HW_PREP(WRITE_DATA_1, DST_SEL, PM4_COPY_DST_MEMORY), low32(va), high32(va), 1});
        vf_.write(VGPU_BAR_VRAM, kGfxRing, std::as_bytes(std::span(ring_)));
        vf_.ring(DOORBELL_GFX_RING0, ring_.size());
        EXPECT_TRUE(eventually(is_seen));
    }
    void store_by_fence(std::uint64_t va, std::uint64_t value) {
        add(PM4_OP_RELEASE_MEM, {0, HW_PREP(RELEASE_MEM_2, DATA_SEL, PM4_RELEASE_DATA_64),
                                 low32(va), high32(va), low32(value), high32(value)});
        submit();
    }
    /// What the kernel has stored when the fence behind it has come.
    std::uint32_t dispatch() {
        dispatch({low32(kMcBase + kData), high32(kMcBase + kData), 0, 0});
        return vf_.vram<std::uint32_t>(kData);
    }

private:
    static constexpr std::uint64_t kCode = 5u << 20;
    static constexpr std::uint64_t kFence = 6u << 20;

    void dispatch(const std::vector<std::uint32_t>& user_data) {
        constexpr std::uint64_t entry = (kMcBase + kCode) >> 8;
        set(REG_GC_COMPUTE_PGM_LO, {low32(entry), high32(entry)});
        set(REG_GC_COMPUTE_PGM_RSRC1, {0, HW_PREP(COMPUTE_PGM_RSRC2, USER_SGPR, 4)});
        set(REG_GC_COMPUTE_NUM_THREAD_X, {64, 1, 1});
        set(REG_GC_COMPUTE_USER_DATA_0, user_data);
        add(PM4_OP_DISPATCH_DIRECT,
            {1, 1, 1, HW_PREP(COMPUTE_DISPATCH_INITIATOR, COMPUTE_SHADER_EN, 1)});
        submit();
    }
    void submit() {
        add(PM4_OP_RELEASE_MEM, {0, HW_PREP(RELEASE_MEM_2, DATA_SEL, PM4_RELEASE_DATA_32),
                                 low32(kMcBase + kFence), high32(kMcBase + kFence), ++fence_, 0});
        vf_.write(VGPU_BAR_VRAM, kGfxRing, std::as_bytes(std::span(ring_)));
        vf_.ring(DOORBELL_GFX_RING0, ring_.size());
        EXPECT_TRUE(eventually([&] { return vf_.vram<std::uint32_t>(kFence) == fence_; }));
    }
    void add(pm4_opcode opcode, const std::vector<std::uint32_t>& body) {
        ring_.push_back(PM4_HEADER_OF(opcode, static_cast<std::uint32_t>(body.size())));
        ring_.insert(ring_.end(), body.begin(), body.end());
    }
    void set(hw_reg first, std::vector<std::uint32_t> values) {
        values.insert(values.begin(), static_cast<std::uint32_t>(first) - HW_REG_BASE_SH);
        add(PM4_OP_SET_SH_REG, values);
    }

    VfClient& vf_;
    std::vector<std::uint32_t> ring_;
    std::uint32_t fence_ = 0;
};

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

TEST_P(GpuWorkTest, TheQuantumParksTheVfAndIsLogged) {
    constexpr std::uint64_t kLogAddress = 0x100000;
    constexpr std::uint64_t kLogBytes = 1u << 16;
    const OwnedFd memory = sealed_memory(kLogBytes);
    const auto driver = pf();
    driver->map_dma(kLogAddress, kLogBytes, memory.get());
    driver->set_reg(REG_VGPU_LOG_BASE_LO, kLogAddress);
    driver->set_reg(REG_VGPU_LOG_SIZE, 64);
    driver->provision(1, kFirstVram, kMegabytes);
    driver->enable_interrupts(GPUIOV_INTR_GFX_QUANTUM_EXPIRED);
    driver->set_bank(1, REG_VGPU_VF0_QUANTUM_US, 2000);
    EXPECT_EQ(driver->command(GPUIOV_CMD_CONTEXT_SWITCH, 0, 1), GPUIOV_STATUS_DONE);
    ASSERT_TRUE(driver->switch_event.wait());
    EXPECT_NE(driver->take_interrupts() & GPUIOV_INTR_GFX_QUANTUM_EXPIRED, 0u);
    EXPECT_EQ(driver->reg(REG_VGPU_LOG_WPTR), 1u);
    vgpu_hw_run_log_entry entry{};
    ASSERT_EQ(pread(memory.get(), &entry, sizeof(entry), 0), ssize_t{sizeof(entry)});
    EXPECT_EQ(entry.seq, 1u);
    EXPECT_EQ(entry.vf, 1u);
    EXPECT_EQ(entry.reason, static_cast<std::uint32_t>(VGPU_RUN_END_QUANTUM));
    EXPECT_GE(entry.run_end_ns - entry.run_start_ns, 2'000'000u);
    const std::uint64_t run_ns = driver->bank(1, REG_VGPU_VF0_RUN_NS_LO);
    EXPECT_EQ(run_ns, entry.run_end_ns - entry.run_start_ns);
}

TEST_P(GpuWorkTest, AVfWithoutWorkSaysSo) {
    const auto driver = pf();
    driver->provision(1, kFirstVram, kMegabytes);
    driver->enable_interrupts(GPUIOV_INTR_GFX_VM_IDLE);
    EXPECT_EQ(driver->command(GPUIOV_CMD_CONTEXT_SWITCH, 0, 1), GPUIOV_STATUS_DONE);
    EXPECT_TRUE(driver->switch_event.wait());
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

/// The VF's doorbell BAR at a bus address, and a page of GART that leads to its first page.
constexpr std::uint64_t kDoorbellBar = 0x38'0020'0000;
constexpr std::uint64_t kDoorbellPageVa = 0x3000;

void map_doorbells(VfClient& guest) {
    constexpr std::uint64_t kTable = 7u << 20;
    constexpr std::uint64_t kEntry =
        GPUVM_PTE_VALID | GPUVM_PTE_SYSTEM | GPUVM_PTE_READABLE | GPUVM_PTE_WRITEABLE;
    guest.set_config(PCI_BASE_ADDRESS_2, low32(kDoorbellBar));
    guest.set_config(PCI_BASE_ADDRESS_3, high32(kDoorbellBar));
    guest.set_config(PCI_COMMAND, std::uint16_t{PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER});
    guest.set_vram(kTable + kDoorbellPageVa / 4096 * 8, kDoorbellBar | kEntry);
    guest.set_reg(REG_GC_VM_CONTEXT0_PAGE_TABLE_BASE_ADDR_LO32, kTable | GPUVM_ROOT_VALID);
    guest.set_reg(REG_GC_VM_CONTEXT0_PAGE_TABLE_END_ADDR_LO32, 16);
    guest.set_reg(REG_GC_VM_CONTEXT0_CNTL, HW_PREP(VM_CONTEXT_CNTL, ENABLE, 1));
}

TEST_P(GpuWorkTest, EnginesRingTheDoorbellsOfTheirOwnVf) {
    using Store = void (GfxGuest::*)(std::uint64_t, std::uint64_t);
    const auto driver = pf();
    const auto guest = vf(1);
    driver->provision(1, kFirstVram, kMegabytes);
    map_doorbells(*guest);
    ASSERT_EQ(driver->command(GPUIOV_CMD_CONTEXT_SWITCH, 0, 1), GPUIOV_STATUS_DONE);
    GfxGuest gfx(*guest);
    constexpr std::uint64_t kVa = kDoorbellPageVa + DOORBELL_SDMA0 * 4;
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
    gfx.store_by_wave(kDoorbellPageVa + DOORBELL_GFX_RING0 * 4, 2 * gfx.ring_dwords());
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
    gfx.expect_fault(kDoorbellPageVa, [&] { return gpu->vf(VfId{1}).statistics().faults == 1; });
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
