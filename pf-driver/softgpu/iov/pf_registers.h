// SPDX-License-Identifier: MIT
//
// PfRegisters: the PF-only range of BAR5 (block VGPU of hw/regs.def) and the PF's side of the
// mailboxes. PfRegisters turns register accesses into calls to VfControls, BulkOps, RunLog and, for
// the whole device, Hooks. Each VF has a bank of registers: VGPU_VF0_* plus the VF number times
// HW_VGPU_BANK_STRIDE. The registers hold all state of PfRegisters.
//
// There is one PfRegisters, over the PF's RegisterFile. All calls run on the io thread (gpu.h), so
// PfRegisters needs no lock; a VfControl takes the lock of its VF.
#pragma once

#include <cstdint>
#include <functional>

#include "pf-driver/softgpu/base/clock.h"
#include "pf-driver/softgpu/base/units.h"
#include "pf-driver/softgpu/iov/bulk_ops.h"
#include "pf-driver/softgpu/iov/run_log.h"
#include "pf-driver/softgpu/iov/vf_control.h"
#include "pf-driver/softgpu/regs/register_file.h"

namespace vgpu::softgpu::iov {

/// Register numbers, fields and units are those of hw/regs.def, block VGPU.
class PfRegisters {
public:
    /// Constants that the PF reads, which Gpu has checked; `switch_mode` is the mode at power-on.
    struct Spec {
        Bytes vram;
        Bytes aperture;
        std::uint32_t compute_units = 0;
        SwitchMode switch_mode = SwitchMode::Pointer;
    };
    /// Writes that concern the whole device; called on the io thread.
    struct Hooks {
        /// `vf_bits`: vf_bit() (vsec.h) of each VF whose new work raises WAKE.
        std::function<void(std::uint32_t vf_bits)> set_wake_mask;
        std::function<void(SwitchMode)> set_switch_mode;
    };

    /// All references outlive the PfRegisters. Claims its registers at once and writes the
    /// constants.
    PfRegisters(const Spec& spec, regs::RegisterFile& registers, VfControls vfs, BulkOps& ops,
                RunLog& log, const Clock& clock, Hooks hooks);
    PfRegisters(const PfRegisters&) = delete;
    PfRegisters& operator=(const PfRegisters&) = delete;

private:
    /// `stored` is the value in the register file. Returns the value that the PF reads.
    using BankRead = std::uint32_t (PfRegisters::*)(VfId vf, std::uint32_t stored);
    using BankWrite = void (PfRegisters::*)(VfId vf, std::uint32_t value);
    /// One row per register of a VF's bank that has a behaviour (pf_registers.cpp).
    struct BankRow;
    static const BankRow kBank[];

    void write_constants();
    void claim_device();
    void claim_operations();
    void claim_log();
    void claim_mailbox();
    void claim_banks();
    /// Claims the writes of one register; its reads give the stored value.
    void on_write(hw_reg number, std::function<void(std::uint32_t)> write);

    void start_operation(std::uint32_t command);
    /// Handles a read of VGPU_TIME_NS_LO: returns the low half of the time and latches the high
    /// half. So a PF that reads the low half first gets both halves of one instant.
    [[nodiscard]] std::uint32_t latch_time();

    // bank rows
    /// Handles a write of FB_TABLE_ROOT_HI, which commits the VF page table. The PF has written
    /// FB_SIZE_MB and ROOT_LO before. Without the VALID bit in ROOT_LO, the VF loses its VRAM.
    void commit_table(VfId vf, std::uint32_t high);
    void write_doorbells(VfId vf, std::uint32_t value);
    void write_cu_mask(VfId vf, std::uint32_t value);
    void write_reset(VfId vf, std::uint32_t value);
    /// Calls the member function `Set` or `Get` of the VF's VfControl.
    template <auto Set> void write_setting(VfId vf, std::uint32_t value);
    template <auto Get> std::uint32_t read_live(VfId vf, std::uint32_t stored);
    /// A 64-bit counter: a read of the low half latches the high half, as latch_time() does.
    template <auto Member, hw_reg High> std::uint32_t read_wide(VfId vf, std::uint32_t stored);
    /// A 32-bit counter: the low half of the count. A PF computes differences, so wraps do not
    /// matter.
    template <auto Member> std::uint32_t read_counter(VfId vf, std::uint32_t stored);

    /// The stored value of the register of the VF's bank that corresponds to `first` in bank 0.
    [[nodiscard]] std::uint32_t bank(VfId vf, hw_reg first) const;
    void set_bank(VfId vf, hw_reg first, std::uint32_t value);
    [[nodiscard]] std::uint64_t pair(hw_reg low) const;
    /// The VF that MAILBOX_INDEX selects. kPf if the index names no VF: the mailbox registers then
    /// read 0 and ignore writes.
    [[nodiscard]] VfId selected_vf() const;

    const Spec spec_;
    regs::RegisterFile& registers_;
    const VfControls vfs_;
    BulkOps& ops_;
    RunLog& log_;
    const Clock& clock_;
    Hooks hooks_;
};

}  // namespace vgpu::softgpu::iov
