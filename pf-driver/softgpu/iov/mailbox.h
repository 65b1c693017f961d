// SPDX-License-Identifier: MIT
//
// Mailbox of one VF: the device's half only. It carries four dwords each way, the valid and ack
// bits, and the interrupts; it never answers anything itself (with no PF driver, requests stay
// unanswered). The VF's side lives in the VF's MAILBOX_* registers, the PF sees the same box
// mirrored through its own MAILBOX_* registers after selecting the VF with MAILBOX_INDEX (PF's TRN
// is the VF's RCV).
//
//   VF: TRN_VALID 0 -> 1    the four dwords are taken as they stand, the PF is interrupted
//   PF: RCV_ACK             VF's TRN_ACK is set, interrupt 138 if enabled
//   VF: TRN_VALID -> 0      TRN_ACK and the PF's RCV_VALID go away
//   PF: TRN_VALID = 1       all four dwords appear in the VF's RCV at once, interrupt 135 if
//   enabled VF: RCV_ACK             RCV_VALID and RCV_DW0 are cleared, the PF is interrupted
//
// A write that acknowledges leaves the sender's bits alone, so a dword write of RCV_ACK withdraws
// nothing. Works the same while the VF is off the engine. Survives an FLR (the register bank keeps
// its MAILBOX_* values over it); reset() is for a new owner. All calls with the VF's lock held.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "pf-driver/hw/ih.h"
#include "pf-driver/hw/mailbox.h"
#include "pf-driver/softgpu/base/block.h"
#include "pf-driver/softgpu/regs/register_file.h"

namespace vgpu::softgpu::iov {

/// Dword 0 is the request or event (hw/mailbox.def), the others its arguments. To the device they
/// are four numbers.
using Message = std::array<std::uint32_t, MAILBOX_DWORDS>;

class Mailbox {
public:
    /// Called with the VF lock held; what they reach must be a leaf.
    struct Hooks {
        std::function<void()> message_for_pf;      ///< HVVM_MBOX_VALID of this VF
        std::function<void()> withdrawn_for_pf;    ///< its pending bit goes away, no interrupt
        std::function<void()> acknowledged_by_vf;  ///< HVVM_MBOX_ACK of this VF
        /// Puts a vector of the BIF client into the VF's IH ring (Linux 6.12, amdgpu/mxgpu_ai.c).
        std::function<void(ih_source)> interrupt_vf;
    };
    /// Both directions, apart from the dwords that stand in the VF's registers.
    struct State {
        Message to_pf{};               ///< as it stood when the VF set TRN_VALID
        Message staged{};              ///< written by the PF, not yet sent
        std::uint32_t control = 0;     ///< as the VF reads it; MAILBOX_CONTROL's storage follows
        std::uint32_t pf_has_ack = 0;  ///< the VF acknowledged the PF's last message
        /// The PF's MAILBOX_INT_CNTL; stored, but its interrupts are enabled in the capability
        /// (Vsec).
        std::uint32_t pf_int_cntl = 0;
        std::uint32_t reserved = 0;
        std::uint64_t messages = 0;  ///< sent by the VF
    };

    /// Claims MAILBOX_CONTROL of the VF's bank.
    Mailbox(regs::RegisterFile& vf_registers, Hooks hooks);
    Mailbox(const Mailbox&) = delete;
    Mailbox& operator=(const Mailbox&) = delete;

    /// The PF's view: `index` is one of MAILBOX_MSGBUF_TRN_DW0 .. MAILBOX_INT_CNTL.
    /// Control shows the PF's view: its TRN_VALID is the VF's RCV_VALID, and RCV_VALID only while
    /// the VF's message is not acknowledged.
    [[nodiscard]] std::uint32_t pf_read(RegisterIndex index) const;
    /// Of MAILBOX_CONTROL the acknowledgement wins over TRN_VALID, and neither set means
    /// "withdrawn".
    void pf_write(RegisterIndex index, std::uint32_t value);

    [[nodiscard]] const State& state() const { return state_; }

    void reset();  ///< both directions empty, interrupts off
    void drain() {}
    void save(Writer& out) const { out.value(state_); }
    /// After the register bank, whose MAILBOX_CONTROL it makes consistent again.
    [[nodiscard]] Result<> load(Reader& in);

private:
    /// A write of MAILBOX_CONTROL as the VF's driver does it, a byte at a time: TRN in byte 0, RCV
    /// in byte 1 (Linux 6.12, amdgpu/mxgpu_ai.h).
    void vf_control(std::uint32_t value);
    void vf_send();
    void vf_withdraw();
    void vf_acknowledge();
    void pf_control(std::uint32_t value);
    void pf_send();
    void pf_withdraw();
    void pf_acknowledge();

    void set_control(std::uint32_t value);
    void interrupt(std::uint32_t enabled, ih_source source);

    regs::RegisterFile& registers_;
    Hooks hooks_;
    State state_;
};

}  // namespace vgpu::softgpu::iov
