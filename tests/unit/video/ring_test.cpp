// SPDX-License-Identifier: MIT
//
// The encoder rings: the driver's IB tests, fences and interrupts, TLB flushes, save and load in
// the middle, and what a guest can do wrong.
#include <gtest/gtest.h>

#include <cstddef>

#include "pf-driver/hw/doorbell.h"
#include "tests/unit/video/video_rig.h"

namespace vgpu::softgpu::video::test {
namespace {

using softgpu::mem::kFbBase;

constexpr std::uint64_t kFenceAddress = kFbBase + kFence;
constexpr std::uint64_t kJobAddress = kFbBase + kJob;

// IB tests: a session is created, then destroyed
const Dwords kUvdCreate{0x18, 1, 1, 0, 0xf4, 0x150000, 0x14, 2, 0x1c, 0, 0, 8, 0x08000001};
const Dwords kUvdDestroy{0x18, 1, 1, 0, 0xf4, 0x150000, 0x14, 2, 0x1c, 0, 0, 8, 0x08000002};
const Dwords kVceCreate{0xc, 1,    1,    0x40,  0x01000001, 0,    0x42,     0xa,
                        1,   0x80, 0x60, 0x100, 0x100,      0xc,  0,        0,
                        0,   0,    0,    0x14,  0x05000005, 0xf4, 0x150000, 1};
const Dwords kVceDestroy{0xc, 1, 1, 0x20, 2, ~0u, 1, 0, 0, ~0u, 0, 8, 0x02000001};

/// The VF's VRAM at its MC addresses; counts what was asked for without a Hold.
class WatchedPort final : public mem::Port {
public:
    explicit WatchedPort(softgpu::test::MemoryRig& memory)
        : Port(memory.gpuvm->epoch(Vmid{0})), memory_(memory) {}

    unsigned writes = 0;
    unsigned without_hold = 0;

private:
    Translation walk(GpuVa va, mem::Access access) override {
        writes += access == mem::Access::Write ? 1 : 0;
        without_hold += is_held() ? 0 : 1;
        const std::uint64_t page = (raw(va) - kFbBase) / kPageBytes * kPageBytes;
        const auto granted = static_cast<std::uint8_t>(access);
        return {memory_.vram->host(VfOffset{page}), granted, {}};
    }
    bool read_indirect(GpuVa, std::span<std::byte>) override { return false; }
    bool write_indirect(GpuVa, std::span<const std::byte>) override { return false; }

    softgpu::test::MemoryRig& memory_;
};

struct EncoderRings : testing::Test {
    VideoRig rig;

    void SetUp() override { rig.bring_up(); }
    [[nodiscard]] std::uint32_t fence_value() const {
        return rig.memory.get<std::uint32_t>(kFence);
    }
    [[nodiscard]] std::uint32_t read_pointer(Encoder encoder) {
        return rig.memory.read_reg(row_of(encoder).read_pointer);
    }
    void submit_job(Encoder encoder, const Dwords& dwords, std::uint32_t value) {
        rig.put_job(kJob, dwords);
        rig.submit(encoder, job(Vmid{0}, kJobAddress, static_cast<std::uint32_t>(dwords.size())) +
                                fence(kFenceAddress, value));
    }
    void expect_interrupt(const ih_iv_entry& entry, unsigned client, unsigned source) {
        EXPECT_EQ(entry.client_id, client);
        EXPECT_EQ(entry.source_id, source);
        EXPECT_EQ(entry.source_data[0], 0u) << "the number of the ring";
        EXPECT_EQ(entry.vmid, 0u);
    }
};

TEST_F(EncoderRings, VcePassesTheIbTestOfTheDriver) {
    submit_job(Encoder::Vce, kVceCreate, 1);
    EXPECT_EQ(rig.run(), StepResult::Idle);
    EXPECT_EQ(fence_value(), 1u);
    submit_job(Encoder::Vce, kVceDestroy, 2);
    EXPECT_EQ(rig.run(), StepResult::Idle);
    EXPECT_EQ(fence_value(), 2u);
    ASSERT_EQ(rig.interrupts.size(), 2u);
    expect_interrupt(rig.interrupts[0], 0x11, 167);
    EXPECT_EQ(read_pointer(Encoder::Vce), 128u);
    EXPECT_EQ(rig.engine->state().jobs, 2u);
    EXPECT_EQ(rig.engine->state().bad_packets, 0u);
}

TEST_F(EncoderRings, UvdPassesTheIbTestOfTheDriver) {
    submit_job(Encoder::Uvd, kUvdCreate, 1);
    rig.run();
    submit_job(Encoder::Uvd, kUvdDestroy, 2);
    EXPECT_EQ(rig.run(), StepResult::Idle);
    EXPECT_EQ(fence_value(), 2u);
    ASSERT_EQ(rig.interrupts.size(), 2u);
    expect_interrupt(rig.interrupts[1], 0x10, 119);
    EXPECT_EQ(read_pointer(Encoder::Uvd), 128u);
    EXPECT_EQ(rig.engine->state().bad_packets, 0u);
}

TEST_F(EncoderRings, TakeTurns) {
    for (const Encoder encoder : kEncoders) rig.submit(encoder, no_ops(64));
    EXPECT_EQ(rig.engine->step(), StepResult::Progress);
    EXPECT_EQ(rig.engine->step(), StepResult::Progress);
    for (const Encoder encoder : kEncoders) EXPECT_EQ(read_pointer(encoder), 16u);
}

TEST_F(EncoderRings, WrapInsideAPacket) {
    rig.submit_bare(Encoder::Vce, no_ops(kRingDwords - 2));
    rig.run();
    rig.submit_bare(Encoder::Vce, fence(kFenceAddress, 77));
    EXPECT_EQ(rig.run(), StepResult::Idle);
    EXPECT_EQ(fence_value(), 77u);
    EXPECT_EQ(read_pointer(Encoder::Vce), 4u);
}

TEST_F(EncoderRings, FlushAProcessAsTheDriverDoes) {
    const std::uint32_t base = REG_MMHUB_VM_CONTEXT0_PAGE_TABLE_BASE_ADDR_LO32 + 8 * 2;
    const std::uint64_t before = rig.memory.gpuvm->state().invalidations;
    rig.submit(Encoder::Vce,
               wait_register(REG_MMHUB_VM_INVALIDATE_ENG0_SEM + 4, 1, 1) +
                   write_register(base, 0x1001) + write_register(base + 1, 0) +
                   write_register(REG_MMHUB_VM_INVALIDATE_ENG0_REQ + 4, 1u << 8) +
                   wait_register(REG_MMHUB_VM_INVALIDATE_ENG0_ACK + 4, 1u << 8, 1u << 8) +
                   write_register(REG_MMHUB_VM_INVALIDATE_ENG0_SEM + 4, 0) +
                   wait_register(base, ~0u, 0x1001) + fence(kFenceAddress, 5));
    EXPECT_EQ(rig.run(), StepResult::Idle);
    EXPECT_EQ(fence_value(), 5u);
    EXPECT_EQ(rig.memory.read_reg(base), 0x1001u);
    EXPECT_GT(rig.memory.gpuvm->state().invalidations, before);
}

TEST_F(EncoderRings, WaitForARegisterWithoutHoldingUpTheOther) {
    rig.submit(Encoder::Vce, wait_register(REG_GC_SCRATCH_REG2, 0xff, 7) + fence(kFenceAddress, 1));
    rig.submit(Encoder::Uvd, fence(kFenceAddress + 8, 2));
    EXPECT_EQ(rig.run(), StepResult::Blocked);
    EXPECT_EQ(rig.memory.get<std::uint32_t>(kFence + 8), 2u);
    EXPECT_EQ(fence_value(), 0u);
    EXPECT_FALSE(rig.engine->has_work());
    EXPECT_TRUE(rig.engine->needs_polling());
    EXPECT_EQ(read_pointer(Encoder::Vce), 0u);
    rig.memory.write_reg(REG_GC_SCRATCH_REG2, 0x307);
    EXPECT_TRUE(rig.engine->has_work());
    EXPECT_EQ(rig.run(), StepResult::Idle);
    EXPECT_EQ(fence_value(), 1u);
    EXPECT_FALSE(rig.engine->needs_polling());
}

TEST_F(EncoderRings, FetchNothingWhileTheVcpuIsInReset) {
    rig.memory.write_reg(REG_VCE_VCE_SOFT_RESET, 1);
    rig.submit(Encoder::Vce, fence(kFenceAddress, 1));
    EXPECT_FALSE(rig.engine->has_work());
    EXPECT_EQ(rig.run(), StepResult::Idle);
    EXPECT_EQ(fence_value(), 0u);
    rig.memory.write_reg(REG_VCE_VCE_SOFT_RESET, 0);
    rig.run();
    EXPECT_EQ(fence_value(), 1u);
}

TEST_F(EncoderRings, RaiseNoInterruptThatIsNotEnabled) {
    rig.memory.write_reg(REG_VCE_VCE_SYS_INT_EN, 0);
    rig.memory.write_reg(REG_UVD_UVD_MASTINT_EN, 2);
    for (const Encoder encoder : kEncoders) rig.submit(encoder, fence(kFenceAddress, 9));
    rig.run();
    EXPECT_EQ(fence_value(), 9u);
    EXPECT_TRUE(rig.interrupts.empty());
}

TEST_F(EncoderRings, WriteTheFenceBeforeTheInterrupt) {
    std::vector<std::uint32_t> seen;
    rig.on_interrupt = [&] { seen.push_back(fence_value()); };
    rig.submit(Encoder::Vce, fence(kFenceAddress, 3) + fence(kFenceAddress, 4));
    rig.run();
    EXPECT_EQ(seen, (std::vector<std::uint32_t>{3, 4}));
}

TEST_F(EncoderRings, IgnoreADoorbellBeforeTheyAreOn) {
    VideoRig fresh;
    EXPECT_FALSE(fresh.engine->doorbell(DoorbellIndex{DOORBELL_VCE}, 64));
    EXPECT_FALSE(fresh.engine->has_work());
    EXPECT_EQ(fresh.run(), StepResult::Idle);
    fresh.bring_up();
    EXPECT_FALSE(fresh.engine->has_work()) << "what was rung before counts for nothing";
    EXPECT_EQ(fresh.memory.read_reg(REG_VCE_VCE_RB_WPTR), 0u);
    EXPECT_TRUE(fresh.engine->doorbell(DoorbellIndex{DOORBELL_VCE}, 0));
    EXPECT_FALSE(fresh.engine->doorbell(DoorbellIndex{DOORBELL_VCE + 2}, 64));
}

TEST_F(EncoderRings, HaltAtABadPacketUntilTheNextTable) {
    rig.submit(Encoder::Vce, Dwords{0x2} + fence(kFenceAddress, 1));
    EXPECT_EQ(rig.run(), StepResult::Idle);
    EXPECT_EQ(fence_value(), 0u);
    EXPECT_EQ(rig.ring(Encoder::Vce).is_halted, 1u);
    EXPECT_EQ(rig.engine->state().bad_packets, 1u);
    EXPECT_FALSE(rig.engine->has_work());
    rig.submit(Encoder::Uvd, fence(kFenceAddress, 2));
    rig.run();
    EXPECT_EQ(fence_value(), 2u) << "the other ring goes on";
    rig.bring_up();
    rig.submit(Encoder::Vce, fence(kFenceAddress, 3));
    rig.run();
    EXPECT_EQ(fence_value(), 3u);
}

TEST_F(EncoderRings, RefuseAJobOfAVmidThatIsNone) {
    rig.submit(Encoder::Vce, job(Vmid{16}, kJobAddress, 4));
    rig.run();
    EXPECT_EQ(rig.ring(Encoder::Vce).is_halted, 1u);
    EXPECT_EQ(rig.engine->state().bad_packets, 1u);
}

TEST_F(EncoderRings, DropABadJobAndGoOn) {
    const std::vector<Dwords> jobs{
        {4, 1},           // frame smaller than its head
        {10, 1, 0},       // not whole dwords
        {16, 1, 0},       // longer than the job
        {8, 1, 12, 1},    // the second one too
        {~0u, 1},         // as long as can be
        {0xfffffffc, 1},  //
    };
    std::uint32_t value = 0;
    for (const Dwords& dwords : jobs) {
        submit_job(Encoder::Uvd, dwords, ++value);
        EXPECT_EQ(rig.run(), StepResult::Idle);
        EXPECT_EQ(fence_value(), value);
        EXPECT_EQ(rig.engine->state().bad_packets, value);
    }
    rig.submit(Encoder::Uvd,
               job(Vmid{0}, kJobAddress, VIDEO_MAX_IB_DWORDS + 1) + fence(kFenceAddress, ++value));
    rig.run();
    EXPECT_EQ(fence_value(), value);
    EXPECT_EQ(rig.engine->state().bad_packets, value);
    EXPECT_EQ(rig.ring(Encoder::Uvd).is_halted, 0u);
}

TEST_F(EncoderRings, TakePaddingAndEmptyJobs) {
    submit_job(Encoder::Vce, kVceDestroy + no_ops(1000), 1);
    rig.submit(Encoder::Vce, job(Vmid{0}, 0, 0) + fence(kFenceAddress, 2));
    rig.run();
    EXPECT_EQ(fence_value(), 2u);
    EXPECT_EQ(rig.engine->state().bad_packets, 0u);
    EXPECT_TRUE(rig.faults.empty());
}

TEST_F(EncoderRings, ReadJobsInTheirOwnVmidAndReportFaultsThere) {
    rig.put_job(kUserVram, kVceCreate);
    rig.submit(Encoder::Vce, job(kUserVmid, kUserPage, 24) + fence(kFenceAddress, 1));
    rig.run();
    EXPECT_TRUE(rig.faults.empty());
    rig.submit(Encoder::Vce, job(kUserVmid, kUserPage + 0x1000, 24) + fence(kFenceAddress, 2));
    rig.run();
    ASSERT_EQ(rig.faults.size(), 1u);
    EXPECT_EQ(rig.faults[0].vmid, kUserVmid);
    EXPECT_EQ(raw(rig.faults[0].fault.va), kUserPage + 0x1000);
    EXPECT_EQ(fence_value(), 2u) << "the ring is the kernel's and goes on";
}

TEST_F(EncoderRings, HaltAtAFenceWithoutMemory) {
    rig.submit(Encoder::Vce, fence(0x1000, 1));
    rig.run();
    EXPECT_EQ(rig.ring(Encoder::Vce).is_halted, 1u);
    EXPECT_EQ(rig.faults.size(), 1u);
    EXPECT_TRUE(rig.interrupts.empty());
}

TEST_F(EncoderRings, HoldTheMemoryThatTheyTouch) {
    WatchedPort port(rig.memory);
    rig.kernel_port = &port;
    rig.submit(Encoder::Vce, fence(kFenceAddress, 1));
    rig.run();
    EXPECT_EQ(fence_value(), 1u);
    EXPECT_EQ(port.writes, 1u);
    EXPECT_EQ(port.without_hold, 0u) << "it could be unmapped in the middle";
}

TEST_F(EncoderRings, SurviveAPacketThatStartsTheMmsch) {
    rig.submit(Encoder::Vce, write_register(REG_VCE_VCE_MMSCH_VF_MAILBOX_HOST, MMSCH_HOST_INIT) +
                                 fence(kFenceAddress, 1));
    EXPECT_EQ(rig.run(), StepResult::Idle);
    EXPECT_EQ(rig.ring(Encoder::Vce).read_pointer, 0u) << "the ring was started anew";
    rig.submit(Encoder::Uvd, write_register(REG_VCE_VCE_MMSCH_VF_MAILBOX_HOST, 1));
    EXPECT_EQ(rig.run(), StepResult::Idle);
}

TEST_F(EncoderRings, TakeAnyDoorbellValue) {
    for (const std::uint64_t value : {0xffffffffull, 0x8000000000000001ull, 1025ull}) {
        EXPECT_TRUE(rig.engine->doorbell(DoorbellIndex{DOORBELL_VCE}, value));
        rig.run();
        EXPECT_LT(rig.ring(Encoder::Vce).read_pointer, kRingDwords);
    }
}

TEST_F(EncoderRings, WaitForTheRestOfAPacket) {
    const Dwords whole = fence(kFenceAddress, 1);
    rig.submit_bare(Encoder::Vce, {whole[0], whole[1]});
    EXPECT_EQ(rig.run(), StepResult::Idle);
    EXPECT_FALSE(rig.engine->has_work());
    rig.submit_bare(Encoder::Vce, {whole[2], whole[3]});
    rig.run();
    EXPECT_EQ(fence_value(), 1u);
}

TEST_F(EncoderRings, GoOnAfterSaveAndLoadInTheMiddle) {
    rig.submit(Encoder::Vce, no_ops(20) + fence(kFenceAddress, 1) +
                                 wait_register(REG_GC_SCRATCH_REG2, 1, 1) +
                                 fence(kFenceAddress, 2));
    EXPECT_EQ(rig.engine->step(), StepResult::Progress);
    for (int i = 0; i < 3; ++i) {
        std::vector<std::byte> stream;
        Writer out(stream);
        rig.engine->drain();
        rig.engine->save(out);
        rig.engine->reset();
        EXPECT_FALSE(rig.engine->has_work());
        Reader in(stream);
        ASSERT_TRUE(rig.engine->load(in));
        if (i == 1) {
            EXPECT_EQ(rig.run(), StepResult::Blocked);
        }
    }
    EXPECT_EQ(fence_value(), 1u);
    EXPECT_TRUE(rig.engine->needs_polling());
    rig.memory.write_reg(REG_GC_SCRATCH_REG2, 1);
    EXPECT_EQ(rig.run(), StepResult::Idle);
    EXPECT_EQ(fence_value(), 2u);
    EXPECT_EQ(rig.interrupts.size(), 2u);
}

TEST_F(EncoderRings, RefuseAForeignStream) {
    std::vector<std::byte> stream;
    Writer out(stream);
    rig.engine->save(out);
    Reader truncated(std::span<const std::byte>(stream).first(stream.size() - 1));
    EXPECT_FALSE(rig.engine->load(truncated));
    EXPECT_EQ(rig.ring(Encoder::Vce).is_on, 0u);
    constexpr std::size_t kPointer = offsetof(Engine::Ring, read_pointer);
    store(std::span<std::byte>(stream), kPointer, kRingDwords);
    Reader foreign(stream);
    EXPECT_FALSE(rig.engine->load(foreign));
    std::vector<std::byte> zeros(stream.size());
    store(std::span<std::byte>(zeros), offsetof(Engine::Ring, is_on), 1u);
    Reader without_size(zeros);
    EXPECT_FALSE(rig.engine->load(without_size)) << "a ring without a size cannot be on";
    EXPECT_FALSE(rig.engine->has_work());
}

TEST_F(EncoderRings, AreOffAfterReset) {
    rig.submit(Encoder::Vce, fence(kFenceAddress, 1));
    rig.engine->reset();
    rig.memory.regs.reset();
    EXPECT_FALSE(rig.engine->has_work());
    EXPECT_EQ(rig.memory.read_reg(REG_VCE_VCE_STATUS), 0u);
    EXPECT_FALSE(rig.engine->doorbell(DoorbellIndex{DOORBELL_VCE}, 64));
}

}  // namespace
}  // namespace vgpu::softgpu::video::test
