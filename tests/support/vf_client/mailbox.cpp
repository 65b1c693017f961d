// SPDX-License-Identifier: MIT
#include "tests/support/vf_client/mailbox.h"

#include <fmt/format.h>

#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/mailbox.h"
#include "pf-driver/hw/regs.h"

namespace vgpu::test {
namespace {

constexpr unsigned kTransmit = 0;  // byte of MAILBOX_CONTROL
constexpr unsigned kReceive = 1;
constexpr std::uint8_t kValid = 1;
constexpr std::uint8_t kAck = 2;

}  // namespace

bool Mailbox::send(std::uint32_t event, std::array<std::uint32_t, 3> data) {
    wait_for("mailbox: ACK of the last message to clear", milliseconds(MAILBOX_GUEST_ACK_LIMIT_MS),
             [&] {
                 device_.write_byte(REG_NBIO_MAILBOX_CONTROL, kTransmit, 0);
                 return (device_.read_byte(REG_NBIO_MAILBOX_CONTROL, kTransmit) & kAck) == 0;
             });
    device_.trace().add(TraceKind::MailboxSend, event);
    device_.write(REG_NBIO_MAILBOX_MSGBUF_TRN_DW0, event);
    device_.write(REG_NBIO_MAILBOX_MSGBUF_TRN_DW1, data[0]);
    device_.write(REG_NBIO_MAILBOX_MSGBUF_TRN_DW2, data[1]);
    device_.write(REG_NBIO_MAILBOX_MSGBUF_TRN_DW3, data[2]);
    device_.write_byte(REG_NBIO_MAILBOX_CONTROL, kTransmit, kValid);
    const Deadline deadline{milliseconds(MAILBOX_GUEST_ACK_LIMIT_MS)};
    bool acked = false;
    while (!acked && !deadline.passed()) {
        acked = (device_.read_byte(REG_NBIO_MAILBOX_CONTROL, kTransmit) & kAck) != 0;
        if (!acked) polling_pause();
    }
    device_.write_byte(REG_NBIO_MAILBOX_CONTROL, kTransmit, 0);
    return acked;
}

bool Mailbox::peek(std::uint32_t event, milliseconds limit) {
    const Deadline deadline(limit);
    while (device_.read(REG_NBIO_MAILBOX_MSGBUF_RCV_DW0) != event) {
        if (deadline.passed()) return false;
        polling_pause();
    }
    device_.trace().add(TraceKind::MailboxGot, event);
    return true;
}

bool Mailbox::receive(std::uint32_t event, milliseconds limit) {
    if (!peek(event, limit)) return false;
    device_.write_byte(REG_NBIO_MAILBOX_CONTROL, kReceive, kAck);
    return true;
}

void Mailbox::request(std::uint32_t event, std::uint32_t answer) {
    const auto start = std::chrono::steady_clock::now();
    if (!send(event)) throw VfError(fmt::format("mailbox: the PF did not acknowledge {}", event));
    if (!receive(answer, milliseconds(MAILBOX_GUEST_MSG_LIMIT_MS)))
        throw VfError(fmt::format("mailbox: no answer {} to request {}", answer, event));
    last_answer_ = std::chrono::steady_clock::now() - start;
}

void Mailbox::enable_interrupts() {
    device_.write(REG_NBIO_MAILBOX_INT_CNTL, HW_PREP(MAILBOX_INT_CNTL, VALID_INT_EN, 1) |
                                                 HW_PREP(MAILBOX_INT_CNTL, ACK_INT_EN, 1));
}

}  // namespace vgpu::test
