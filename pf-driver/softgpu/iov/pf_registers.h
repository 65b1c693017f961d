// SPDX-License-Identifier: MIT
//
// PfRegisters: the PF-only range of BAR5 (block VGPU of hw/regs.def) and the PF's side of the
// mailboxes. It turns register accesses into calls: VF banks go to VfPanels, operations to BulkOps,
// the run log to RunLog. It keeps no state but what the registers hold.
//
// Built once over the PF's RegisterFile; everything runs on the io thread with the PF's lock held,
// which comes before every VF lock.
#pragma once

#include <cstdint>
#include <functional>

#include "pf-driver/softgpu/base/clock.h"
#include "pf-driver/softgpu/base/units.h"
#include "pf-driver/softgpu/iov/bulk_ops.h"
#include "pf-driver/softgpu/iov/run_log.h"
#include "pf-driver/softgpu/iov/vf_panel.h"
#include "pf-driver/softgpu/regs/register_file.h"

namespace vgpu::softgpu::iov {

/// Register numbers, fields and units are those of hw/regs.def, block VGPU.
class PfRegisters {
public:
    /// Constants that the PF can read; checked by Gpu.
    struct Spec {
        Bytes vram;
        Bytes aperture;
        std::uint32_t compute_units = 0;
        SwitchMode switch_mode = SwitchMode::Pointer;
    };
    /// Where a write goes that is no VF's; on the io thread.
    struct Hooks {
        std::function<void(std::uint32_t vf_bits)> set_wake_mask;
        std::function<void(SwitchMode)> set_switch_mode;
    };

    /// All references outlive it. Claims its registers at once and writes the constants.
    PfRegisters(const Spec& spec, regs::RegisterFile& registers, VfPanels vfs, BulkOps& ops,
                RunLog& log, const Clock& clock, Hooks hooks);
    PfRegisters(const PfRegisters&) = delete;
    PfRegisters& operator=(const PfRegisters&) = delete;

private:
    /// `stored` is what the register file holds; the answer is what the PF reads.
    using BankRead = std::uint32_t (PfRegisters::*)(VfId vf, std::uint32_t stored);
    using BankWrite = void (PfRegisters::*)(VfId vf, std::uint32_t value);
    /// One register of every VF's bank; the table is in pf_registers.cpp.
    struct BankRow;
    static const BankRow kBank[];

    void write_constants();
    void claim_device();
    void claim_operations();
    void claim_log();
    void claim_mailbox();
    void claim_banks();
    /// Claims one register whose reads are plain storage.
    void on_write(hw_reg first, std::function<void(std::uint32_t)> write);

    void start_operation(std::uint32_t command);
    /// VGPU_TIME_NS_LO latches the high half, so that the PF reads one instant in two accesses: low
    /// first.
    [[nodiscard]] std::uint32_t latch_time();

    // bank rows
    /// Writing ROOT_HI is what commits; FB_SIZE_MB and ROOT_LO are written before. Without the
    /// VALID bit the VF loses its VRAM.
    void commit_table(VfId vf, std::uint32_t high);
    void write_doorbells(VfId vf, std::uint32_t value);
    void write_cu_mask(VfId vf, std::uint32_t value);
    void write_reset(VfId vf, std::uint32_t value);
    template <auto Set> void tell(VfId vf, std::uint32_t value);
    template <auto Get> std::uint32_t ask(VfId vf, std::uint32_t stored);
    /// 64-bit counters: reading the low half latches the high one, as for the time.
    template <auto Member, hw_reg High> std::uint32_t read_wide(VfId vf, std::uint32_t stored);
    /// 32-bit counters: the low half; a PF takes differences.
    template <auto Member> std::uint32_t read_counter(VfId vf, std::uint32_t stored);

    [[nodiscard]] std::uint32_t bank(VfId vf, hw_reg first) const;
    void set_bank(VfId vf, hw_reg first, std::uint32_t value);
    [[nodiscard]] std::uint64_t pair(hw_reg low) const;
    /// MAILBOX_INDEX; kPf if it names no VF, then the mailbox reads 0 and writes go nowhere.
    [[nodiscard]] VfId selected_vf() const;

    const Spec spec_;
    regs::RegisterFile& registers_;
    const VfPanels vfs_;
    BulkOps& ops_;
    RunLog& log_;
    const Clock& clock_;
    Hooks hooks_;
};

}  // namespace vgpu::softgpu::iov
