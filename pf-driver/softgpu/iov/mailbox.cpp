// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/iov/mailbox.h"

#include "pf-driver/hw/fields.h"

namespace vgpu::softgpu::iov {

namespace {

constexpr RegisterIndex kControl{REG_NBIO_MAILBOX_CONTROL};
constexpr RegisterIndex kIntCntl{REG_NBIO_MAILBOX_INT_CNTL};
constexpr std::uint32_t kFirst = REG_NBIO_MAILBOX_MSGBUF_TRN_DW0;

constexpr std::uint32_t kTrnValid = HW_FIELD_MASK(MAILBOX_CONTROL, TRN_VALID);
constexpr std::uint32_t kTrnAck = HW_FIELD_MASK(MAILBOX_CONTROL, TRN_ACK);
constexpr std::uint32_t kRcvValid = HW_FIELD_MASK(MAILBOX_CONTROL, RCV_VALID);
constexpr std::uint32_t kRcvAck = HW_FIELD_MASK(MAILBOX_CONTROL, RCV_ACK);

constexpr RegisterIndex vf_trn(std::uint32_t dword) {
    return RegisterIndex{REG_NBIO_MAILBOX_MSGBUF_TRN_DW0 + dword};
}
constexpr RegisterIndex vf_rcv(std::uint32_t dword) {
    return RegisterIndex{REG_NBIO_MAILBOX_MSGBUF_RCV_DW0 + dword};
}

}  // namespace

Mailbox::Mailbox(regs::RegisterFile& vf_registers, Hooks hooks)
    : registers_(vf_registers), hooks_(std::move(hooks)) {
    registers_.claim(kControl, 1, {},
                     [this](RegisterIndex, std::uint32_t value) { vf_control(value); });
}

void Mailbox::vf_control(std::uint32_t value) {
    const std::uint32_t before = state_.control;
    set_control(before);  // undoes the write: only the device changes the register
    if ((value & kRcvAck) != 0) return vf_acknowledge();
    const bool was_valid = (before & kTrnValid) != 0;
    const bool is_valid = (value & kTrnValid) != 0;
    if (is_valid && !was_valid) vf_send();
    if (!is_valid) vf_withdraw();
}

/// Copies the registers, because the guest may change them while the PF reads.
void Mailbox::vf_send() {
    for (std::uint32_t i = 0; i < MAILBOX_DWORDS; ++i) state_.to_pf[i] = registers_.get(vf_trn(i));
    ++state_.messages;
    set_control((state_.control | kTrnValid) & ~kTrnAck);
    hooks_.message_for_pf();
}

/// The driver clears TRN_VALID after it has seen TRN_ACK, or when it stops waiting for TRN_ACK.
void Mailbox::vf_withdraw() {
    set_control(state_.control & ~(kTrnValid | kTrnAck));
    hooks_.no_message_for_pf();
}

/// Clears RCV_DW0: a driver that polls for a message by its number must not see the message twice.
void Mailbox::vf_acknowledge() {
    if ((state_.control & kRcvValid) == 0) return;
    set_control(state_.control & ~kRcvValid);
    registers_.set(vf_rcv(0), 0);
    state_.pf_has_ack = 1;
    hooks_.acknowledged_by_vf();
}

std::uint32_t Mailbox::pf_read(RegisterIndex index) const {
    registers_.check_lock();
    const std::uint32_t offset = raw(index) - kFirst;
    if (offset < MAILBOX_DWORDS) return state_.staged[offset];
    if (offset < 2 * MAILBOX_DWORDS) return state_.to_pf[offset - MAILBOX_DWORDS];
    if (index == kIntCntl) return state_.pf_int_cntl;
    const std::uint32_t vf = state_.control;
    std::uint32_t value = 0;
    value = HW_SET(MAILBOX_CONTROL, TRN_VALID, value, (vf & kRcvValid) != 0 ? 1 : 0);
    value = HW_SET(MAILBOX_CONTROL, TRN_ACK, value, state_.pf_has_ack);
    return HW_SET(MAILBOX_CONTROL, RCV_VALID, value, has_message_for_pf() ? 1 : 0);
}

bool Mailbox::has_message_for_pf() const {
    return (state_.control & kTrnValid) != 0 && (state_.control & kTrnAck) == 0;
}

void Mailbox::pf_write(RegisterIndex index, std::uint32_t value) {
    registers_.check_lock();
    const std::uint32_t offset = raw(index) - kFirst;
    if (offset < MAILBOX_DWORDS) state_.staged[offset] = value;
    if (index == kIntCntl) state_.pf_int_cntl = value;
    if (index == kControl) pf_control(value);
}

void Mailbox::pf_control(std::uint32_t value) {
    if ((value & kRcvAck) != 0) return pf_acknowledge();
    if ((value & kTrnValid) != 0) return pf_send();
    pf_withdraw();
}

/// Sets the dwords before RCV_VALID, so that a driver that sees RCV_VALID reads the whole message.
void Mailbox::pf_send() {
    for (std::uint32_t i = 0; i < MAILBOX_DWORDS; ++i) registers_.set(vf_rcv(i), state_.staged[i]);
    state_.pf_has_ack = 0;
    set_control(state_.control | kRcvValid);
    interrupt(HW_FIELD_MASK(MAILBOX_INT_CNTL, VALID_INT_EN), IH_SOURCE_MAILBOX_MSG);
}

/// Leaves the dwords, because a driver that polls RCV_DW0 and not RCV_VALID must still see them.
void Mailbox::pf_withdraw() {
    state_.pf_has_ack = 0;
    set_control(state_.control & ~kRcvValid);
}

/// Ignores an acknowledgement if no message waits, or if the message is already acknowledged: the
/// interrupt would only confuse the guest.
void Mailbox::pf_acknowledge() {
    if (!has_message_for_pf()) return;
    set_control(state_.control | kTrnAck);
    hooks_.no_message_for_pf();
    interrupt(HW_FIELD_MASK(MAILBOX_INT_CNTL, ACK_INT_EN), IH_SOURCE_MAILBOX_ACK);
}

void Mailbox::set_control(std::uint32_t value) {
    state_.control = value;
    registers_.set(kControl, value);
}

void Mailbox::interrupt(std::uint32_t enable_bit, ih_source source) {
    if ((registers_.get(kIntCntl) & enable_bit) != 0) hooks_.interrupt_vf(source);
}

void Mailbox::reset() {
    state_ = {};
    for (std::uint32_t i = 0; i < MAILBOX_DWORDS; ++i) {
        registers_.set(vf_trn(i), 0);
        registers_.set(vf_rcv(i), 0);
    }
    registers_.set(kIntCntl, 0);
    set_control(0);
    hooks_.no_message_for_pf();
}

Result<> Mailbox::load(Reader& in) {
    const Result<> read = in.value(state_);
    if (!read) reset();
    registers_.set(kControl, state_.control);
    if (has_message_for_pf())
        hooks_.message_for_pf();
    else
        hooks_.no_message_for_pf();
    return read;
}

}  // namespace vgpu::softgpu::iov
