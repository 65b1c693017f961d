// SPDX-License-Identifier: MIT
//
// Psp: the platform security processor as a VF sees it. The driver writes commands to C2PMSG
// registers (ring create, destroy, consume; GBR_IH_SET) and puts frames into a ring of 1024 dwords.
// Each frame holds the addresses of a fence and of a command buffer; the command buffer also
// receives the response (hw/psp.h). The PSP accepts firmware of a known type and of at most
// PSP_TMR_BYTES, and never reads the firmware. The command PROG_REG reaches only the control
// registers of the three IH (interrupt handler) rings.
//
// While the VF's register write gate is shut, the PSP refuses every command in a register
// (PSP_REPLY_REFUSED), so frames do not run either. All addresses are MC (memory controller)
// addresses of VMID 0. All calls are made with the VF's lock held.
#pragma once

#include <cstdint>
#include <functional>

#include "pf-driver/hw/psp.h"
#include "pf-driver/softgpu/base/block.h"
#include "pf-driver/softgpu/mem/port.h"
#include "pf-driver/softgpu/regs/register_file.h"

namespace vgpu::softgpu::psp {

/// Source: Linux 6.12, amdgpu/psp_v3_1.c (ring of a VF: C2PMSG_101 to 103), psp_gfx_if.h.
class Psp {
public:
    /// Called with the VF lock held.
    struct Hooks {
        /// True while the register write gate is open.
        std::function<bool()> is_gate_open;
        /// Writes IH_RB_CNTL of ring 0..2.
        std::function<void(unsigned ring, std::uint32_t value)> program_ih;
    };
    /// The guest's ring, and counters.
    struct State {
        std::uint64_t ring = 0;               ///< MC address of the ring
        std::uint32_t ring_read_pointer = 0;  ///< in dwords from the start of the ring
        std::uint32_t has_ring = 0;           ///< 1 from ring create to ring destroy, else 0
        std::uint64_t commands = 0;           ///< commands in frames, also those with an error
        std::uint64_t refused = 0;        ///< commands of frames and registers that had an error
        std::uint64_t memory_errors = 0;  ///< frames with memory that cannot be reached
    };

    /// `kernel`: port of VMID 0. References outlive the object. Claims C2PMSG_64 and C2PMSG_101.
    Psp(regs::RegisterFile& regs, mem::Port& kernel, Hooks hooks);

    [[nodiscard]] const State& state() const { return state_; }

    void reset() { state_ = {}; }
    void drain() {}
    void save(Writer& out) const { out.value(state_); }
    /// EPROTO if the stream is short or the read pointer is not at the start of a frame in the
    /// ring.
    [[nodiscard]] Result<> load(Reader& in);

private:
    using Handler = std::uint32_t (Psp::*)(const psp_command& command);
    struct CommandRow;

    /// Handles a write of C2PMSG_101. On return C2PMSG_101 holds the answer.
    void on_ring_command(std::uint32_t value);
    /// Handles a write of C2PMSG_64. On return C2PMSG_64 holds the answer. GBR_IH_SET, the only
    /// command, is accepted and has no effect.
    void on_ih_set(std::uint32_t value);
    /// Takes the address of the ring from C2PMSG_102 and C2PMSG_103; returns PSP_REPLY_OK.
    [[nodiscard]] std::uint32_t create_ring();
    /// Runs the frames up to `write_pointer` (in dwords), at most one round of the ring, and
    /// returns PSP_REPLY_OK. Stops after a frame that run_frame() cannot run, and returns
    /// PSP_REPLY_BAD_MEMORY. Without a ring, returns PSP_REPLY_BAD_COMMAND.
    [[nodiscard]] std::uint32_t consume(std::uint32_t write_pointer);
    /// Runs the frame at `address`. False if the frame, the command buffer, the response or the
    /// fence is in memory that cannot be reached.
    [[nodiscard]] bool run_frame(std::uint64_t address);
    /// Executes one command and returns its PSP status; PSP_STATUS_NOT_SUPPORTED for an unknown
    /// command.
    [[nodiscard]] std::uint32_t run_command(const psp_command& command);

    // handlers of commands; each returns a PSP status
    std::uint32_t load_firmware(const psp_command& command);
    /// Accepts a command that has no effect, because softgpu has no trusted memory region (TMR).
    std::uint32_t accept(const psp_command& command);
    std::uint32_t program_register(const psp_command& command);

    regs::RegisterFile& regs_;
    mem::Port& kernel_;
    Hooks hooks_;
    State state_;
};

}  // namespace vgpu::softgpu::psp
