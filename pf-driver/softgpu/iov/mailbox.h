// SPDX-License-Identifier: MIT
//
// Mailbox: the mailbox through which one VF and the PF exchange messages. It carries four dwords
// each way, the valid and ack bits, and the interrupts. The device never answers a request itself:
// without a PF driver, requests stay unanswered. The VF uses its own MAILBOX_* registers. After the
// PF has selected the VF with MAILBOX_INDEX, the MAILBOX_* registers of the PF show the same
// mailbox mirrored: the PF's TRN (transmit) is the VF's RCV (receive).
//
//   VF: TRN_VALID 0 -> 1    the device copies the VF's four dwords and interrupts the PF
//   PF: RCV_ACK = 1         the VF's TRN_ACK is set; interrupt 138 (enum ih_source) to the VF if
//                           enabled
//   VF: TRN_VALID -> 0      TRN_ACK and the PF's RCV_VALID are cleared
//   PF: TRN_VALID = 1       all four dwords appear in the VF's RCV at once; interrupt 135 to the VF
//                           if enabled
//   VF: RCV_ACK = 1         RCV_VALID and RCV_DW0 are cleared; the device interrupts the PF
//   PF: TRN_VALID and
//       RCV_ACK = 0         the VF's RCV_VALID is cleared; the dwords stay
//
// A write of RCV_ACK = 1 leaves the writer's own TRN_VALID as it is, so a dword write of RCV_ACK
// withdraws no message. The mailbox also works while the VF is off the engine. The mailbox survives
// a reset of scope FunctionLevel (gpu_vf_blocks.h), such as an FLR that the PF orders, and so do
// the MAILBOX_* registers (kSurvivors in gpu_vf_blocks.cpp). reset() is for resets of scope
// NewOwner. All calls are made with the VF's lock held.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "pf-driver/hw/ih.h"
#include "pf-driver/hw/mailbox.h"
#include "pf-driver/softgpu/base/block.h"
#include "pf-driver/softgpu/regs/register_file.h"

namespace vgpu::softgpu::iov {

/// Dword 0 is the number of the message (hw/mailbox.def); dwords 1 to 3 are its arguments. The
/// device does not interpret the dwords.
using Message = std::array<std::uint32_t, MAILBOX_DWORDS>;

class Mailbox {
public:
    /// Called with the VF lock held, so a hook may take only leaf locks.
    struct Hooks {
        std::function<void()> message_for_pf;      ///< sets the VF's HVVM_MBOX_VALID
        std::function<void()> no_message_for_pf;   ///< clears the VF's HVVM_MBOX_VALID
        std::function<void()> acknowledged_by_vf;  ///< sets the VF's HVVM_MBOX_ACK
        /// Puts an entry of the BIF (bus interface) client with this source into the VF's IH ring
        /// (Linux 6.12, amdgpu/mxgpu_ai.c).
        std::function<void(ih_source)> interrupt_vf;
    };
    /// State of both directions. The dwords that the VF sees are in the VF's registers.
    struct State {
        Message to_pf{};            ///< copied when the VF set TRN_VALID
        Message staged{};           ///< written by the PF, not yet sent
        std::uint32_t control = 0;  ///< MAILBOX_CONTROL as the VF reads it; the register has a copy
        std::uint32_t pf_has_ack = 0;  ///< 1 if the VF acknowledged the PF's last message
        /// The PF's MAILBOX_INT_CNTL. Only stored: INTR_ENABLE of the GPU-IOV capability (Vsec)
        /// enables the PF's interrupts.
        std::uint32_t pf_int_cntl = 0;
        std::uint32_t reserved = 0;
        std::uint64_t messages = 0;  ///< number of messages that the VF sent
    };

    /// Claims MAILBOX_CONTROL of the VF's bank.
    Mailbox(regs::RegisterFile& vf_registers, Hooks hooks);
    Mailbox(const Mailbox&) = delete;
    Mailbox& operator=(const Mailbox&) = delete;

    /// A read by the PF; `index` is one of MAILBOX_MSGBUF_TRN_DW0 .. MAILBOX_INT_CNTL. In
    /// MAILBOX_CONTROL, TRN_VALID is the VF's RCV_VALID, and RCV_VALID is set while a message of
    /// the VF waits for the PF's acknowledgement.
    [[nodiscard]] std::uint32_t pf_read(RegisterIndex index) const;
    /// A write by the PF. In MAILBOX_CONTROL, RCV_ACK = 1 takes precedence over TRN_VALID = 1; a
    /// write with both bits 0 withdraws the PF's message.
    void pf_write(RegisterIndex index, std::uint32_t value);

    [[nodiscard]] const State& state() const { return state_; }

    void reset();  ///< both directions empty, interrupts off
    void drain() {}
    void save(Writer& out) const { out.value(state_); }
    /// Call after load() of the register bank. Writes the bank's MAILBOX_CONTROL again, and calls
    /// the hook message_for_pf or no_message_for_pf. EPROTO if the stream is short.
    [[nodiscard]] Result<> load(Reader& in);

private:
    /// Handles a write of MAILBOX_CONTROL by the VF, whose driver writes single bytes: the TRN bits
    /// are in byte 0, the RCV bits in byte 1 (Linux 6.12, amdgpu/mxgpu_ai.h).
    void vf_control(std::uint32_t value);
    /// True while a message of the VF waits for the PF's acknowledgement.
    [[nodiscard]] bool has_message_for_pf() const;
    void vf_send();
    void vf_withdraw();
    void vf_acknowledge();
    void pf_control(std::uint32_t value);
    void pf_send();
    void pf_withdraw();
    void pf_acknowledge();

    void set_control(std::uint32_t value);
    void interrupt(std::uint32_t enable_bit, ih_source source);

    regs::RegisterFile& registers_;
    Hooks hooks_;
    State state_;
};

}  // namespace vgpu::softgpu::iov
