// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/iov/mailbox.h"

#include <gtest/gtest.h>

#include "pf-driver/hw/fields.h"
#include "pf-driver/softgpu/regs/register_file.h"

namespace vgpu::softgpu::iov {
namespace {

constexpr RegisterIndex kControl{REG_NBIO_MAILBOX_CONTROL};
constexpr std::uint64_t kControlByte0 = REG_NBIO_MAILBOX_CONTROL * 4ull;
constexpr std::uint64_t kControlByte1 = kControlByte0 + 1;

/// A guest that accesses its registers as the stock driver does (bytes of MAILBOX_CONTROL), and a
/// PF that uses dwords.
class MailboxTest : public ::testing::Test {
protected:
    void guest_byte(std::uint64_t offset, std::uint8_t value) {
        registers.mmio_write(offset, bytes_of(std::as_const(value)), regs::Gate::Shut);
    }
    void guest_write(hw_reg number, std::uint32_t value) {
        registers.mmio_write(RegisterIndex{static_cast<std::uint32_t>(number)}, value,
                             regs::Gate::Shut);
    }
    std::uint32_t guest_read(hw_reg number) {
        return registers.mmio_read(RegisterIndex{static_cast<std::uint32_t>(number)});
    }
    void guest_send(std::uint32_t event, std::uint32_t argument = 0) {
        guest_byte(kControlByte0, 0);
        guest_write(REG_NBIO_MAILBOX_MSGBUF_TRN_DW0, event);
        guest_write(REG_NBIO_MAILBOX_MSGBUF_TRN_DW1, argument);
        guest_byte(kControlByte0, 1);
    }
    bool guest_has_ack() {
        return HW_GET(MAILBOX_CONTROL, TRN_ACK, registers.mmio_read(kControl)) != 0;
    }
    void pf_write(hw_reg number, std::uint32_t value) {
        mailbox.pf_write(RegisterIndex{static_cast<std::uint32_t>(number)}, value);
    }
    std::uint32_t pf_read(hw_reg number) {
        return mailbox.pf_read(RegisterIndex{static_cast<std::uint32_t>(number)});
    }
    void pf_send(std::uint32_t event, std::uint32_t argument = 0) {
        pf_write(REG_NBIO_MAILBOX_MSGBUF_TRN_DW0, event);
        pf_write(REG_NBIO_MAILBOX_MSGBUF_TRN_DW2, argument);
        pf_write(REG_NBIO_MAILBOX_CONTROL, HW_PREP(MAILBOX_CONTROL, TRN_VALID, 1));
    }
    void pf_ack() { pf_write(REG_NBIO_MAILBOX_CONTROL, HW_PREP(MAILBOX_CONTROL, RCV_ACK, 1)); }

    regs::RegisterFile registers{regs::Role::Vf};
    int messages = 0;
    int withdrawals = 0;
    int acknowledgements = 0;
    std::vector<ih_source> interrupts;
    Mailbox mailbox{
        registers,
        {[this] { ++messages; }, [this] { ++withdrawals; }, [this] { ++acknowledgements; },
         [this](ih_source source) { interrupts.push_back(source); }}};
};

TEST_F(MailboxTest, AMessageReachesThePfAndIsNeverAnsweredByTheDevice) {
    guest_send(MAILBOX_REQ_GPU_INIT_ACCESS, 7);
    EXPECT_EQ(messages, 1);
    EXPECT_EQ(pf_read(REG_NBIO_MAILBOX_MSGBUF_RCV_DW0), MAILBOX_REQ_GPU_INIT_ACCESS);
    EXPECT_EQ(pf_read(REG_NBIO_MAILBOX_MSGBUF_RCV_DW1), 7u);
    EXPECT_EQ(HW_GET(MAILBOX_CONTROL, RCV_VALID, pf_read(REG_NBIO_MAILBOX_CONTROL)), 1u);
    EXPECT_FALSE(guest_has_ack());
    EXPECT_EQ(guest_read(REG_NBIO_MAILBOX_MSGBUF_RCV_DW0), 0u);
    EXPECT_TRUE(interrupts.empty());
}

TEST_F(MailboxTest, ThePfsAcknowledgementIsSeenAndEndsWithTheValidBit) {
    guest_send(MAILBOX_REQ_GPU_INIT_ACCESS);
    pf_ack();
    EXPECT_TRUE(guest_has_ack());
    EXPECT_EQ(HW_GET(MAILBOX_CONTROL, RCV_VALID, pf_read(REG_NBIO_MAILBOX_CONTROL)), 0u);
    guest_byte(kControlByte0, 0);
    EXPECT_FALSE(guest_has_ack());
}

TEST_F(MailboxTest, TheMessageIsTheOneThatWasValidNotWhatTheGuestWritesLater) {
    guest_send(MAILBOX_REQ_GPU_INIT_ACCESS);
    guest_write(REG_NBIO_MAILBOX_MSGBUF_TRN_DW0, MAILBOX_REL_GPU_INIT_ACCESS);
    EXPECT_EQ(pf_read(REG_NBIO_MAILBOX_MSGBUF_RCV_DW0), MAILBOX_REQ_GPU_INIT_ACCESS);
}

TEST_F(MailboxTest, ValidTwiceIsOneMessage) {
    guest_send(MAILBOX_REQ_GPU_INIT_ACCESS);
    guest_byte(kControlByte0, 1);
    EXPECT_EQ(messages, 1);
}

TEST_F(MailboxTest, AWithdrawnMessageIsGoneForThePf) {
    guest_send(MAILBOX_REQ_GPU_INIT_ACCESS);
    guest_byte(kControlByte0, 0);
    EXPECT_EQ(HW_GET(MAILBOX_CONTROL, RCV_VALID, pf_read(REG_NBIO_MAILBOX_CONTROL)), 0u);
    pf_ack();
    EXPECT_FALSE(guest_has_ack());
}

TEST_F(MailboxTest, ThePfsDwordsAppearTogetherWithTheValidBit) {
    pf_write(REG_NBIO_MAILBOX_MSGBUF_TRN_DW0, MAILBOX_VF_READY_TO_ACCESS_GPU);
    EXPECT_EQ(guest_read(REG_NBIO_MAILBOX_MSGBUF_RCV_DW0), 0u);
    pf_send(MAILBOX_VF_READY_TO_ACCESS_GPU, 0x99);
    EXPECT_EQ(guest_read(REG_NBIO_MAILBOX_MSGBUF_RCV_DW0), MAILBOX_VF_READY_TO_ACCESS_GPU);
    EXPECT_EQ(guest_read(REG_NBIO_MAILBOX_MSGBUF_RCV_DW2), 0x99u);
    EXPECT_EQ(HW_GET(MAILBOX_CONTROL, RCV_VALID, registers.mmio_read(kControl)), 1u);
}

TEST_F(MailboxTest, TheGuestsAcknowledgementClearsDword0SoNoStaleReadyMatches) {
    pf_send(MAILBOX_VF_READY_TO_ACCESS_GPU);
    guest_byte(kControlByte1, 2);
    EXPECT_EQ(guest_read(REG_NBIO_MAILBOX_MSGBUF_RCV_DW0), 0u);
    EXPECT_EQ(HW_GET(MAILBOX_CONTROL, RCV_VALID, registers.mmio_read(kControl)), 0u);
    EXPECT_EQ(acknowledgements, 1);
    EXPECT_EQ(HW_GET(MAILBOX_CONTROL, TRN_ACK, pf_read(REG_NBIO_MAILBOX_CONTROL)), 1u);
}

TEST_F(MailboxTest, AnAcknowledgementWithoutMessageIsNothing) {
    guest_byte(kControlByte1, 2);
    pf_ack();
    EXPECT_EQ(acknowledgements, 0);
    EXPECT_FALSE(guest_has_ack());
}

TEST_F(MailboxTest, AnUnacknowledgedEventIsOverwrittenByTheNext) {
    pf_send(MAILBOX_VF_FLR_NOTIFICATION);
    pf_send(MAILBOX_VF_FLR_NOTIFICATION_CMPL);
    EXPECT_EQ(guest_read(REG_NBIO_MAILBOX_MSGBUF_RCV_DW0), MAILBOX_VF_FLR_NOTIFICATION_CMPL);
}

TEST_F(MailboxTest, AcknowledgingTheGuestDoesNotWithdrawThePfsOwnMessage) {
    guest_send(MAILBOX_REQ_GPU_INIT_ACCESS);
    pf_send(MAILBOX_VF_QUERY_ALIVE);
    pf_ack();
    EXPECT_EQ(HW_GET(MAILBOX_CONTROL, RCV_VALID, registers.mmio_read(kControl)), 1u);
    EXPECT_EQ(guest_read(REG_NBIO_MAILBOX_MSGBUF_RCV_DW0), MAILBOX_VF_QUERY_ALIVE);
}

TEST_F(MailboxTest, InterruptsFollowTheirEnables) {
    pf_send(MAILBOX_VF_QUERY_ALIVE);
    EXPECT_TRUE(interrupts.empty());
    guest_write(REG_NBIO_MAILBOX_INT_CNTL, HW_PREP(MAILBOX_INT_CNTL, VALID_INT_EN, 1) |
                                               HW_PREP(MAILBOX_INT_CNTL, ACK_INT_EN, 1));
    pf_send(MAILBOX_VF_QUERY_ALIVE);
    guest_send(MAILBOX_REL_GPU_INIT_ACCESS);
    pf_ack();
    EXPECT_EQ(interrupts, (std::vector{IH_SOURCE_MAILBOX_MSG, IH_SOURCE_MAILBOX_ACK}));
}

TEST_F(MailboxTest, TheGuestCannotForgeReceivedMessagesOrTheDevicesBits) {
    guest_write(REG_NBIO_MAILBOX_MSGBUF_RCV_DW0, MAILBOX_VF_READY_TO_ACCESS_GPU);
    EXPECT_EQ(guest_read(REG_NBIO_MAILBOX_MSGBUF_RCV_DW0), 0u);
    registers.mmio_write(kControl, ~HW_PREP(MAILBOX_CONTROL, RCV_ACK, 1), regs::Gate::Open);
    EXPECT_EQ(registers.mmio_read(kControl), HW_PREP(MAILBOX_CONTROL, TRN_VALID, 1));
}

TEST_F(MailboxTest, AMessageThatWaitsInASavedStateReachesThePfAfterTheLoad) {
    guest_send(MAILBOX_REQ_GPU_INIT_ACCESS);
    std::vector<std::byte> waiting, taken;
    Writer first(waiting), second(taken);
    mailbox.save(first);
    pf_ack();
    mailbox.save(second);
    mailbox.reset();
    messages = 0;
    Reader taken_in(taken);
    ASSERT_TRUE(mailbox.load(taken_in));
    EXPECT_EQ(messages, 0);
    Reader waiting_in(waiting);
    ASSERT_TRUE(mailbox.load(waiting_in));
    EXPECT_EQ(messages, 1);
    EXPECT_EQ(pf_read(REG_NBIO_MAILBOX_MSGBUF_RCV_DW0), std::uint32_t{MAILBOX_REQ_GPU_INIT_ACCESS});
}

TEST_F(MailboxTest, ResetForgetsBothDirections) {
    guest_send(MAILBOX_REQ_GPU_INIT_ACCESS);
    pf_send(MAILBOX_VF_QUERY_ALIVE);
    mailbox.reset();
    EXPECT_EQ(guest_read(REG_NBIO_MAILBOX_MSGBUF_TRN_DW0), 0u);
    EXPECT_EQ(guest_read(REG_NBIO_MAILBOX_MSGBUF_RCV_DW0), 0u);
    EXPECT_EQ(registers.mmio_read(kControl), 0u);
    EXPECT_EQ(pf_read(REG_NBIO_MAILBOX_MSGBUF_RCV_DW0), 0u);
    EXPECT_EQ(withdrawals, 2);  // guest_send() clears TRN_VALID first
}

}  // namespace
}  // namespace vgpu::softgpu::iov
