// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/psp/psp.h"

#include <gtest/gtest.h>

#include "tests/unit/mem/memory_rig.h"

namespace vgpu::softgpu::psp {
namespace {

using mem::kFbBase;

constexpr std::uint64_t kRing = 0x10000;  // VRAM offsets
constexpr std::uint64_t kBuffer = 0x20000;
constexpr std::uint64_t kFence = 0x30000;

struct PspTest : testing::Test {
    test::MemoryRig rig;
    std::unique_ptr<mem::Port> kernel = rig.gpuvm->make_port(Vmid{0}, mem::Hub::Mm);
    bool is_gate_open = true;
    std::vector<std::pair<unsigned, std::uint32_t>> programmed;
    Psp psp{rig.regs,
            *kernel,
            {[this] { return is_gate_open; },
             [this](unsigned ring, std::uint32_t value) { programmed.emplace_back(ring, value); }}};
    std::uint32_t write_pointer = 0;
    std::uint32_t fence = 0;

    std::uint32_t ring_command(std::uint32_t command) {
        rig.write_reg(REG_MP0_MP0_SMN_C2PMSG_101, command);
        return rig.read_reg(REG_MP0_MP0_SMN_C2PMSG_101);
    }
    std::uint32_t create(std::uint64_t address = kFbBase + kRing) {
        rig.write_reg(REG_MP0_MP0_SMN_C2PMSG_102, low32(address));
        rig.write_reg(REG_MP0_MP0_SMN_C2PMSG_103, high32(address));
        return ring_command(PSP_RING_CREATE);
    }
    std::uint32_t consume(std::uint32_t pointer) {
        rig.write_reg(REG_MP0_MP0_SMN_C2PMSG_102, pointer);
        return ring_command(PSP_RING_CONSUME);
    }
    void queue_frame(std::uint64_t buffer = kFbBase + kBuffer,
                     std::uint64_t fence_address = kFbBase + kFence) {
        psp_frame frame{};
        frame.command_lo = low32(buffer);
        frame.command_hi = high32(buffer);
        frame.fence_lo = low32(fence_address);
        frame.fence_hi = high32(fence_address);
        frame.fence_value = ++fence;
        rig.put(kRing + write_pointer * 4, frame);
        write_pointer = (write_pointer + PSP_FRAME_DWORDS) % PSP_RING_DWORDS;
    }
    /// Runs one command and returns its response.
    psp_response run(std::uint32_t id, std::array<std::uint32_t, 5> words = {}) {
        psp_command command{};
        command.id = id;
        std::copy(words.begin(), words.end(), command.words);
        rig.put(kBuffer, command);
        queue_frame();
        EXPECT_EQ(consume(write_pointer), PSP_REPLY_READY);
        EXPECT_EQ(rig.get<std::uint32_t>(kFence), fence);
        return rig.get<psp_response>(kBuffer + PSP_RESPONSE_OFFSET);
    }
};

TEST_F(PspTest, SosIsAlive) {
    EXPECT_NE(rig.read_reg(REG_MP0_MP0_SMN_C2PMSG_81), 0u);
}

TEST_F(PspTest, RingIsCreatedUsedAndDestroyed) {
    EXPECT_EQ(create(), PSP_REPLY_READY);
    EXPECT_EQ(psp.state().ring, kFbBase + kRing);
    const psp_response response = run(PSP_CMD_SETUP_VMR, {0x400000, 0xf4, 0x400000, 2, 0});
    EXPECT_EQ(response.status, PSP_STATUS_OK);
    EXPECT_EQ(response.session_id, 1u);
    EXPECT_EQ(response.tmr_bytes, PSP_TMR_BYTES);
    EXPECT_EQ(ring_command(PSP_RING_DESTROY), PSP_REPLY_READY);
    EXPECT_NE(consume(16) & PSP_REPLY_STATUS_MASK, 0u);
}

TEST_F(PspTest, FirmwareIsAcceptedWithinLimits) {
    create();
    EXPECT_EQ(run(PSP_CMD_LOAD_IP_FW, {0, 0, 0x4000, 4, 0}).status, PSP_STATUS_OK);
    EXPECT_EQ(run(PSP_CMD_LOAD_IP_FW, {0xffffffff, 0xffffffff, 0x100, 5, 0}).status, PSP_STATUS_OK)
        << "the contents are never read";
    EXPECT_EQ(run(PSP_CMD_LOAD_IP_FW, {0, 0, 0x100, PSP_FIRMWARE_TYPES, 0}).status,
              PSP_STATUS_BAD_PARAMETERS);
    EXPECT_EQ(run(PSP_CMD_LOAD_IP_FW, {0, 0, 0xffffffff, 4, 0}).status, PSP_STATUS_BAD_PARAMETERS);
}

TEST_F(PspTest, ProgRegReachesTheThreeIhRingsAndNothingElse) {
    create();
    for (std::uint32_t ring = 0; ring < 3; ++ring)
        EXPECT_EQ(run(PSP_CMD_PROG_REG, {0x100 + ring, ring, 0, 0, 0}).status, PSP_STATUS_OK);
    EXPECT_EQ(run(PSP_CMD_PROG_REG, {0x5, 3, 0, 0, 0}).status, PSP_STATUS_BAD_PARAMETERS);
    const std::vector<std::pair<unsigned, std::uint32_t>> expected = {
        {0, 0x100}, {1, 0x101}, {2, 0x102}};
    EXPECT_EQ(programmed, expected);
}

TEST_F(PspTest, UnknownCommandsAreNotSupportedAndTheRingGoesOn) {
    create();
    EXPECT_EQ(run(0x7777).status, PSP_STATUS_NOT_SUPPORTED);
    EXPECT_EQ(run(PSP_CMD_DESTROY_VMR).status, PSP_STATUS_OK);
    EXPECT_EQ(psp.state().commands, 2u);
    EXPECT_EQ(psp.state().refused, 1u);
}

TEST_F(PspTest, EveryFrameUpToTheWritePointerIsRunInOrderAndTheRingWraps) {
    create();
    psp_command command{};
    command.id = PSP_CMD_DESTROY_VMR;
    rig.put(kBuffer, command);
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < 40; ++i) queue_frame();
        EXPECT_EQ(consume(write_pointer), PSP_REPLY_READY);
        EXPECT_EQ(rig.get<std::uint32_t>(kFence), fence);
    }
    EXPECT_EQ(psp.state().commands, 120u);
}

TEST_F(PspTest, AGarbageWritePointerRunsAtMostOneRing) {
    create();
    psp_command command{};
    command.id = PSP_CMD_DESTROY_VMR;
    rig.put(kBuffer, command);
    for (std::uint32_t i = 0; i < PSP_RING_DWORDS / PSP_FRAME_DWORDS; ++i) queue_frame();
    consume(0xffffffff);
    EXPECT_LE(psp.state().commands, PSP_RING_DWORDS / PSP_FRAME_DWORDS);
}

TEST_F(PspTest, UnmappedRingBufferOrFenceIsAnErrorReply) {
    create(0x1000);
    EXPECT_EQ(consume(16), PSP_REPLY_READY | PSP_REPLY_BAD_MEMORY);
    create();
    queue_frame(0x5000);
    EXPECT_EQ(consume(write_pointer), PSP_REPLY_READY | PSP_REPLY_BAD_MEMORY);
    queue_frame(kFbBase + kBuffer, 0x5000);
    EXPECT_EQ(consume(write_pointer), PSP_REPLY_READY | PSP_REPLY_BAD_MEMORY);
    EXPECT_EQ(psp.state().memory_errors, 3u);
    EXPECT_FALSE(kernel->has_fault());
    EXPECT_EQ(run(PSP_CMD_DESTROY_VMR).status, PSP_STATUS_OK);
}

TEST_F(PspTest, GbrIhSetIsAcknowledged) {
    rig.write_reg(REG_MP0_MP0_SMN_C2PMSG_69, 3);
    rig.write_reg(REG_MP0_MP0_SMN_C2PMSG_64, PSP_GBR_IH_SET);
    EXPECT_EQ(rig.read_reg(REG_MP0_MP0_SMN_C2PMSG_64) & 0x8000ffffu, 0x80000000u);
    rig.write_reg(REG_MP0_MP0_SMN_C2PMSG_64, 0x12345);
    EXPECT_NE(rig.read_reg(REG_MP0_MP0_SMN_C2PMSG_64) & 0x8000ffffu, 0x80000000u);
}

TEST_F(PspTest, WithTheGateShutEverythingIsRefusedAndNothingHappens) {
    create();
    is_gate_open = false;
    psp_command command{};
    command.id = PSP_CMD_PROG_REG;
    rig.put(kBuffer, command);
    queue_frame();
    EXPECT_EQ(consume(write_pointer), PSP_REPLY_READY | PSP_REPLY_REFUSED);
    EXPECT_EQ(ring_command(PSP_RING_DESTROY), PSP_REPLY_READY | PSP_REPLY_REFUSED);
    rig.write_reg(REG_MP0_MP0_SMN_C2PMSG_64, PSP_GBR_IH_SET);
    EXPECT_EQ(rig.read_reg(REG_MP0_MP0_SMN_C2PMSG_64), PSP_REPLY_READY | PSP_REPLY_REFUSED);
    EXPECT_TRUE(programmed.empty());
    EXPECT_EQ(psp.state().has_ring, 1u);
    EXPECT_EQ(rig.get<std::uint32_t>(kFence), 0u);
}

TEST_F(PspTest, AnUnknownRingCommandIsABadCommand) {
    EXPECT_EQ(ring_command(0x30000), PSP_REPLY_READY | PSP_REPLY_BAD_COMMAND);
}

TEST_F(PspTest, StateSurvivesSaveAndLoadAndForeignStreamsAreRefused) {
    create();
    run(PSP_CMD_DESTROY_VMR);
    std::vector<std::byte> stream;
    Writer out(stream);
    psp.save(out);
    const Psp::State before = psp.state();
    psp.reset();
    Reader in(stream);
    ASSERT_TRUE(psp.load(in));
    EXPECT_EQ(psp.state().ring, before.ring);
    EXPECT_EQ(psp.state().ring_read_pointer, before.ring_read_pointer);
    store(std::span<std::byte>(stream), offsetof(Psp::State, ring_read_pointer), 0x7000u);
    Reader foreign(stream);
    EXPECT_FALSE(psp.load(foreign));
    EXPECT_EQ(psp.state().has_ring, 0u);
}

}  // namespace
}  // namespace vgpu::softgpu::psp
