// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/ih/interrupt_handler.h"

#include <gtest/gtest.h>

#include "tests/support/virtual_clock.h"
#include "tests/unit/mem/memory_rig.h"

namespace vgpu::softgpu::ih {
namespace {

using test::kBusBase;

constexpr std::uint64_t kRing = kBusBase + 0x10000;
constexpr std::uint64_t kWriteBack = kBusBase + 0x20000;
constexpr std::uint32_t kRingLog2 = 6;  // 4 << 6 = 256 bytes: 8 entries
constexpr std::uint32_t kRingBytes = 4u << kRingLog2;
constexpr std::uint32_t kSpaceBus = 1;
constexpr std::uint32_t kSpaceGpuVm = 4;

struct InterruptHandlerTest : testing::Test {
    test::MemoryRig rig;
    VirtualClock clock;
    std::unique_ptr<mem::Port> kernel = rig.gpuvm->make_port(Vmid{0}, mem::Hub::Gfx);
    int interrupts = 0;
    InterruptHandler ih{rig.regs, rig.system, *kernel, clock, [this] { ++interrupts; }};

    static std::uint32_t control(std::uint32_t space = kSpaceBus) {
        return HW_PREP(IH_RB_CNTL, RB_ENABLE, 1) | HW_PREP(IH_RB_CNTL, RB_SIZE, kRingLog2) |
               HW_PREP(IH_RB_CNTL, WPTR_WRITEBACK_ENABLE, 1) |
               HW_PREP(IH_RB_CNTL, WPTR_OVERFLOW_ENABLE, 1) | HW_PREP(IH_RB_CNTL, ENABLE_INTR, 1) |
               HW_PREP(IH_RB_CNTL, MC_SPACE, space);
    }
    void enable(std::uint32_t value, std::uint64_t ring = kRing,
                std::uint64_t write_back = kWriteBack) {
        rig.write_reg(REG_OSSSYS_IH_RB_BASE, low32(ring >> 8));
        rig.write_reg(REG_OSSSYS_IH_RB_BASE_HI, static_cast<std::uint32_t>(ring >> 40));
        rig.write_reg(REG_OSSSYS_IH_RB_WPTR_ADDR_LO, low32(write_back));
        rig.write_reg(REG_OSSSYS_IH_RB_WPTR_ADDR_HI, high32(write_back));
        ih.program_control(0, value);
    }
    static ih_iv_entry entry(std::uint32_t context) {
        ih_iv_entry iv{};
        iv.client_id = IH_CLIENT_GRBM_CP;
        iv.source_id = IH_SOURCE_CP_EOP;
        iv.source_data[0] = context;
        return iv;
    }
    ih_iv_entry in_ring(std::uint32_t index) const {
        return rig.get_bus<ih_iv_entry>(kRing + index * IH_ENTRY_BYTES);
    }
    std::uint32_t write_pointer() { return rig.read_reg(REG_OSSSYS_IH_RB_WPTR); }
};

TEST_F(InterruptHandlerTest, AnEntryReachesTheRingThenThePointersThenMsi) {
    enable(control());
    clock.advance(std::chrono::microseconds(2));
    ih_iv_entry iv = entry(0x1234);
    iv.pasid = 7;
    iv.vmid = 9;
    iv.ring_id = 4;
    ih.raise(iv);
    const ih_iv_entry seen = in_ring(0);
    EXPECT_EQ(seen.client_id, IH_CLIENT_GRBM_CP);
    EXPECT_EQ(seen.source_id, IH_SOURCE_CP_EOP);
    EXPECT_EQ(seen.ring_id, 4);
    EXPECT_EQ(seen.vmid, 9);
    EXPECT_EQ(seen.pasid, 7);
    EXPECT_EQ(seen.source_data[0], 0x1234u);
    EXPECT_EQ(seen.timestamp_lo, 54u) << "27 MHz";
    EXPECT_EQ(write_pointer(), IH_ENTRY_BYTES);
    EXPECT_EQ(rig.get_bus<std::uint32_t>(kWriteBack), IH_ENTRY_BYTES);
    EXPECT_EQ(interrupts, 1);
    EXPECT_EQ(ih.state().raised, 1u);
}

TEST_F(InterruptHandlerTest, MsiComesAfterEntryAndWriteBack) {
    bool is_complete = false;
    rig.regs.reset();
    regs::RegisterFile regs(regs::Role::Vf);
    InterruptHandler ordered(regs, rig.system, *kernel, clock, [&] {
        is_complete = rig.get_bus<std::uint32_t>(kWriteBack) == IH_ENTRY_BYTES &&
                      in_ring(0).source_data[0] == 5;
    });
    regs.write(RegisterIndex{REG_OSSSYS_IH_RB_BASE}, low32(kRing >> 8));
    regs.write(RegisterIndex{REG_OSSSYS_IH_RB_WPTR_ADDR_LO}, low32(kWriteBack));
    ordered.program_control(0, control());
    ordered.raise(entry(5));
    EXPECT_TRUE(is_complete);
}

TEST_F(InterruptHandlerTest, OrderIsPreservedAcrossTheEndOfTheRing) {
    enable(control());
    for (std::uint32_t i = 0; i < 100; ++i) {
        ih.raise(entry(i));
        EXPECT_EQ(in_ring(i % 8).source_data[0], i);
        rig.write_reg(REG_OSSSYS_IH_RB_RPTR, write_pointer());
    }
    EXPECT_EQ(write_pointer(), 100 % 8 * IH_ENTRY_BYTES);
    EXPECT_EQ(ih.state().raised, 100u);
    EXPECT_EQ(ih.state().overwritten, 0u);
}

TEST_F(InterruptHandlerTest, AFullRingOverflowsAndSaysSo) {
    enable(control());
    for (std::uint32_t i = 0; i < 7; ++i) ih.raise(entry(i));
    EXPECT_EQ(HW_GET(IH_RB_WPTR, RB_OVERFLOW, write_pointer()), 0u);
    ih.raise(entry(7));
    EXPECT_EQ(write_pointer(), 0u | HW_PREP(IH_RB_WPTR, RB_OVERFLOW, 1));
    EXPECT_EQ(rig.get_bus<std::uint32_t>(kWriteBack), write_pointer());
    EXPECT_EQ(ih.state().overwritten, 1u);
    ih.raise(entry(8));
    EXPECT_EQ(in_ring(0).source_data[0], 8u) << "newest entries win";
    ih.program_control(0, control() | HW_PREP(IH_RB_CNTL, WPTR_OVERFLOW_CLEAR, 1));
    EXPECT_EQ(HW_GET(IH_RB_WPTR, RB_OVERFLOW, write_pointer()), 0u);
}

TEST_F(InterruptHandlerTest, MovingTheReadPointerEndsAnOverflow) {
    enable(control());
    for (std::uint32_t i = 0; i < 9; ++i) ih.raise(entry(i));
    ASSERT_EQ(HW_GET(IH_RB_WPTR, RB_OVERFLOW, write_pointer()), 1u);
    rig.write_reg(REG_OSSSYS_IH_RB_RPTR, write_pointer() & ~1u);
    EXPECT_EQ(HW_GET(IH_RB_WPTR, RB_OVERFLOW, write_pointer()), 0u);
}

TEST_F(InterruptHandlerTest, WithoutOverflowAFullRingDropsTheNewEntry) {
    enable(control() & ~HW_FIELD_MASK(IH_RB_CNTL, WPTR_OVERFLOW_ENABLE));
    for (std::uint32_t i = 0; i < 9; ++i) ih.raise(entry(i));
    EXPECT_EQ(ih.state().raised, 7u);
    EXPECT_EQ(ih.state().dropped_full, 2u);
    EXPECT_EQ(in_ring(0).source_data[0], 0u);
    EXPECT_EQ(interrupts, 7);
}

TEST_F(InterruptHandlerTest, ADisabledRingCountsAndStaysSilent) {
    ih.raise(entry(1));
    EXPECT_EQ(ih.state().dropped_disabled, 1u);
    EXPECT_EQ(interrupts, 0);
    enable(HW_PREP(IH_RB_CNTL, RB_ENABLE, 1) | HW_PREP(IH_RB_CNTL, MC_SPACE, kSpaceBus));
    ih.raise(entry(1));
    EXPECT_EQ(ih.state().dropped_disabled, 2u) << "a ring of 4 bytes holds nothing";
}

TEST_F(InterruptHandlerTest, WithoutEnableIntrEntriesComeWithoutMsi) {
    enable(control() & ~HW_FIELD_MASK(IH_RB_CNTL, ENABLE_INTR));
    ih.raise(entry(1));
    EXPECT_EQ(ih.state().raised, 1u);
    EXPECT_EQ(interrupts, 0);
}

TEST_F(InterruptHandlerTest, TheReadPointerDoorbellReadsBackAtOnce) {
    enable(control());
    rig.write_reg(REG_OSSSYS_IH_DOORBELL_RPTR,
                  HW_PREP(IH_DOORBELL_RPTR, OFFSET, 0x1e8) | HW_PREP(IH_DOORBELL_RPTR, ENABLE, 1));
    EXPECT_TRUE(ih.doorbell(DoorbellIndex{0x1e8}, 0x40));
    EXPECT_EQ(rig.read_reg(REG_OSSSYS_IH_RB_RPTR), 0x40u);
    EXPECT_FALSE(ih.doorbell(DoorbellIndex{0x1ea}, 0x40));
    rig.write_reg(REG_OSSSYS_IH_DOORBELL_RPTR, 0x1e8);
    EXPECT_FALSE(ih.doorbell(DoorbellIndex{0x1e8}, 0x60)) << "not enabled";
}

TEST_F(InterruptHandlerTest, RingsInGpuVmGoThroughVmid0) {
    rig.enable_gart(0x100000, 16);
    rig.put<std::uint64_t>(0x100000 + 2 * 8, 0x200000 | test::kRwx);
    enable(control(kSpaceGpuVm), 0x2000, 0x2800);
    ih.raise(entry(0x77));
    EXPECT_EQ(rig.get<ih_iv_entry>(0x200000).source_data[0], 0x77u);
    EXPECT_EQ(rig.get<std::uint32_t>(0x200800), IH_ENTRY_BYTES);
}

TEST_F(InterruptHandlerTest, ARingOnMissingMemoryHarmsOnlyItself) {
    for (const std::uint32_t space : {kSpaceBus, kSpaceGpuVm, 0u, 7u}) {
        enable(control(space), 0x7'0000'0000, 0x7'0001'0000);
        ih.raise(entry(1));
    }
    EXPECT_EQ(ih.state().dropped_memory, 4u);
    EXPECT_EQ(ih.state().raised, 0u);
    EXPECT_EQ(interrupts, 0);
    EXPECT_FALSE(kernel->has_fault());
    rig.write_reg(REG_OSSSYS_IH_RB_WPTR, 0);
    enable(control());
    ih.raise(entry(2));
    EXPECT_EQ(ih.state().raised, 1u);
}

TEST_F(InterruptHandlerTest, GarbagePointersStayInsideTheRing) {
    enable(control());
    rig.write_reg(REG_OSSSYS_IH_RB_WPTR, 0xfffffffe);
    rig.write_reg(REG_OSSSYS_IH_RB_RPTR, 0x12345679);
    for (std::uint32_t i = 0; i < 20; ++i) ih.raise(entry(i));
    EXPECT_LT(HW_GET(IH_RB_WPTR, OFFSET, write_pointer()) * 4, kRingBytes);
    EXPECT_EQ(rig.get_bus<std::uint32_t>(kRing + kRingBytes), 0u) << "nothing behind the ring";
}

TEST_F(InterruptHandlerTest, GraphicsVmidsGetThePasidOfTheLut) {
    enable(control());
    rig.write_reg(REG_OSSSYS_IH_VMID_0_LUT + 3, 0x8005);
    ih_iv_entry iv = entry(1);
    iv.vmid = 3;
    ih.raise(iv);
    EXPECT_EQ(in_ring(0).pasid, 0x8005);
    iv.pasid = 0x9;
    ih.raise(iv);
    EXPECT_EQ(in_ring(1).pasid, 0x9) << "an entry that knows its process keeps it";
}

TEST_F(InterruptHandlerTest, RingsOneAndTwoHaveRegistersOfTheirOwn) {
    const std::uint32_t first = REG_STRIDE_OSSSYS_IH_RB_CNTL;
    rig.write_reg(REG_OSSSYS_IH_RB_BASE + first, low32(kRing >> 8));
    ih.program_control(1, control());
    ih.raise(entry(0x11), Ring::Ring1);
    EXPECT_EQ(in_ring(0).source_data[0], 0x11u);
    EXPECT_EQ(rig.read_reg(REG_OSSSYS_IH_RB_WPTR + first), IH_ENTRY_BYTES);
    EXPECT_EQ(write_pointer(), 0u);
    ih.raise(entry(0x22), Ring::Ring2);
    EXPECT_EQ(ih.state().dropped_disabled, 1u);
    ih.program_control(3, control());  // no such ring: ignored
}

TEST_F(InterruptHandlerTest, StateSurvivesSaveAndLoad) {
    enable(control());
    ih.raise(entry(1));
    std::vector<std::byte> stream;
    Writer out(stream);
    ih.save(out);
    ih.reset();
    EXPECT_EQ(ih.state().raised, 0u);
    Reader in(stream);
    ASSERT_TRUE(ih.load(in));
    EXPECT_EQ(ih.state().raised, 1u);
    Reader truncated(std::span<const std::byte>(stream).first(3));
    EXPECT_FALSE(ih.load(truncated));
    EXPECT_EQ(ih.state().raised, 0u);
}

}  // namespace
}  // namespace vgpu::softgpu::ih
