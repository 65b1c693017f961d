// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/iov/pf_registers.h"

#include "pf-driver/hw/doorbell.h"
#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/vf_page_table.h"
#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/base/log.h"

namespace vgpu::softgpu::iov {

namespace {

constexpr unsigned kMegabyteShift = 20;

constexpr RegisterIndex reg(hw_reg number) {
    return RegisterIndex{static_cast<std::uint32_t>(number)};
}

/// The register of the VF's bank that corresponds to `first` in bank 0.
constexpr RegisterIndex bank_reg(VfId vf, hw_reg first) {
    return RegisterIndex{static_cast<std::uint32_t>(first) + raw(vf) * HW_VGPU_BANK_STRIDE};
}

}  // namespace

/// The behaviour of one register of every VF's bank. `first` is the register in bank 0; a `read` or
/// `write` of nullptr means plain storage.
struct PfRegisters::BankRow {
    hw_reg first;
    BankRead read;
    BankWrite write;
};

const PfRegisters::BankRow PfRegisters::kBank[] = {
    {REG_VGPU_VF0_FB_TABLE_ROOT_HI, nullptr, &PfRegisters::commit_table},
    {REG_VGPU_VF0_DOORBELLS, nullptr, &PfRegisters::write_doorbells},
    {REG_VGPU_VF0_CU_MASK_LO, nullptr, &PfRegisters::write_cu_mask},
    {REG_VGPU_VF0_CU_MASK_HI, nullptr, &PfRegisters::write_cu_mask},
    {REG_VGPU_VF0_GATES, &PfRegisters::read_live<&VfControl::gates>,
     &PfRegisters::write_setting<&VfControl::set_gates>},
    {REG_VGPU_VF0_QUANTUM_US, nullptr, &PfRegisters::write_setting<&VfControl::set_quantum>},
    {REG_VGPU_VF0_RESET, &PfRegisters::read_live<&VfControl::reset_flags>,
     &PfRegisters::write_reset},
    {REG_VGPU_VF0_STATUS, &PfRegisters::read_live<&VfControl::status>, nullptr},
    {REG_VGPU_VF0_RUN_NS_LO, &PfRegisters::read_wide<&VfStatistics::run_ns, REG_VGPU_VF0_RUN_NS_HI>,
     nullptr},
    {REG_VGPU_VF0_SWITCHES, &PfRegisters::read_counter<&VfStatistics::switches>, nullptr},
    {REG_VGPU_VF0_WAVE_INSTR_LO,
     &PfRegisters::read_wide<&VfStatistics::wave_instructions, REG_VGPU_VF0_WAVE_INSTR_HI>,
     nullptr},
    {REG_VGPU_VF0_DOORBELLS_LATCHED, &PfRegisters::read_counter<&VfStatistics::doorbells_latched>,
     nullptr},
    {REG_VGPU_VF0_FAULTS, &PfRegisters::read_counter<&VfStatistics::faults>, nullptr},
    {REG_VGPU_VF0_BAD_PACKETS, &PfRegisters::read_counter<&VfStatistics::bad_packets>, nullptr},
    {REG_VGPU_VF0_BAD_ACCESSES, &PfRegisters::read_counter<&VfStatistics::bad_accesses>, nullptr},
    {REG_VGPU_VF0_ILLEGAL_INSTR, &PfRegisters::read_counter<&VfStatistics::illegal_instructions>,
     nullptr},
};

PfRegisters::PfRegisters(const Spec& spec, regs::RegisterFile& registers, VfControls vfs,
                         BulkOps& ops, RunLog& log, const Clock& clock, Hooks hooks)
    : spec_(spec),
      registers_(registers),
      vfs_(std::move(vfs)),
      ops_(ops),
      log_(log),
      clock_(clock),
      hooks_(std::move(hooks)) {
    claim_device();
    claim_operations();
    claim_log();
    claim_mailbox();
    claim_banks();
    write_constants();
}

/// Writes the values that a PF driver reads at its probe, before the driver writes any register.
void PfRegisters::write_constants() {
    const auto mib = [](Bytes size) { return low32(size.count >> kMegabyteShift); };
    registers_.set(reg(REG_VGPU_TOTAL_VFS), static_cast<std::uint32_t>(vfs_.count()));
    registers_.set(reg(REG_VGPU_VRAM_SIZE_MB), mib(spec_.vram));
    registers_.set(reg(REG_VGPU_APERTURE_SIZE_MB), mib(spec_.aperture));
    registers_.set(reg(REG_VGPU_DOORBELL_PAGES), DOORBELL_PAGES);
    registers_.set(reg(REG_VGPU_CU_COUNT), spec_.compute_units);
    registers_.set(reg(REG_NBIO_RCC_IOV_FUNC_IDENTIFIER),
                   HW_PREP(RCC_IOV_FUNC_IDENTIFIER, IOV_ENABLE, 1));
    registers_.set(reg(REG_NBIO_RCC_CONFIG_MEMSIZE), mib(spec_.vram));
    registers_.set(
        reg(REG_VGPU_SWITCH_MODE),
        HW_PREP(VGPU_SWITCH_MODE, TRUE_COPY, spec_.switch_mode == SwitchMode::TrueCopy ? 1 : 0));
}

void PfRegisters::on_write(hw_reg number, std::function<void(std::uint32_t)> write) {
    registers_.claim(
        reg(number), 1, {},
        [call = std::move(write)](RegisterIndex, std::uint32_t value) { call(value); });
}

void PfRegisters::claim_device() {
    registers_.claim(reg(REG_VGPU_TIME_NS_LO), 1,
                     [this](RegisterIndex, std::uint32_t) { return latch_time(); }, {});
    on_write(REG_VGPU_SWITCH_MODE, [this](std::uint32_t value) {
        hooks_.set_switch_mode(HW_GET(VGPU_SWITCH_MODE, TRUE_COPY, value) != 0
                                   ? SwitchMode::TrueCopy
                                   : SwitchMode::Pointer);
    });
    on_write(REG_VGPU_WAKE_ENABLE, [this](std::uint32_t value) { hooks_.set_wake_mask(value); });
}

std::uint32_t PfRegisters::latch_time() {
    const auto now = static_cast<std::uint64_t>(clock_.now().count());
    registers_.set(reg(REG_VGPU_TIME_NS_HI), high32(now));
    return low32(now);
}

/// A write of OP_COMMAND starts an operation; its operands are plain storage, which the PF writes
/// first.
void PfRegisters::claim_operations() {
    on_write(REG_VGPU_OP_COMMAND, [this](std::uint32_t value) { start_operation(value); });
    registers_.claim(reg(REG_VGPU_OP_STATUS), 1,
                     [this](RegisterIndex, std::uint32_t) {
                         const vgpu_hw_op_status status = ops_.status();
                         if (status == VGPU_OP_BUSY) return static_cast<std::uint32_t>(status);
                         // A finished operation shows its size, which SAVE_STATE changes.
                         registers_.set(reg(REG_VGPU_OP_SIZE_LO), low32(ops_.size()));
                         registers_.set(reg(REG_VGPU_OP_SIZE_HI), high32(ops_.size()));
                         return static_cast<std::uint32_t>(status);
                     },
                     {});
}

void PfRegisters::start_operation(std::uint32_t command) {
    BulkOps::Request request;
    request.opcode = HW_GET(VGPU_OP_COMMAND, OPCODE, command);
    request.vf = VfId{static_cast<std::uint8_t>(HW_GET(VGPU_OP_COMMAND, VF, command))};
    request.source = pair(REG_VGPU_OP_SRC_LO);
    request.destination = pair(REG_VGPU_OP_DST_LO);
    request.size = pair(REG_VGPU_OP_SIZE_LO);
    ops_.start(request);
}

void PfRegisters::claim_log() {
    on_write(REG_VGPU_LOG_SIZE, [this](std::uint32_t entries) {
        log_.configure(Iova{pair(REG_VGPU_LOG_BASE_LO)}, entries);
    });
    registers_.claim(reg(REG_VGPU_LOG_WPTR), 1,
                     [this](RegisterIndex, std::uint32_t) { return log_.write_pointer(); }, {});
}

/// The PF's mailbox registers are a window onto the mailbox that MAILBOX_INDEX selects. Writes of
/// MAILBOX_INDEX and of the window update the stored values, because mmio_write() merges the bytes
/// of a partial write with the stored value.
void PfRegisters::claim_mailbox() {
    constexpr auto kFirst = REG_NBIO_MAILBOX_MSGBUF_TRN_DW0;
    constexpr std::uint32_t kCount = REG_NBIO_MAILBOX_INT_CNTL - kFirst + 1u;
    const auto shown = [this](RegisterIndex index) {
        const VfId vf = selected_vf();
        return vf == kPf ? 0u : vfs_[vf].mailbox_read(index);
    };
    registers_.claim(
        reg(kFirst), kCount, [shown](RegisterIndex index, std::uint32_t) { return shown(index); },
        [this, shown](RegisterIndex index, std::uint32_t value) {
            const VfId vf = selected_vf();
            if (vf != kPf) vfs_[vf].mailbox_write(index, value);
            registers_.set(index, shown(index));
        });
    on_write(REG_NBIO_MAILBOX_INDEX, [this, shown](std::uint32_t) {
        for (std::uint32_t i = 0; i < kCount; ++i) {
            const RegisterIndex index{static_cast<std::uint32_t>(kFirst) + i};
            registers_.set(index, shown(index));
        }
    });
}

VfId PfRegisters::selected_vf() const {
    const std::uint32_t number =
        HW_GET(MAILBOX_INDEX, VF, registers_.get(reg(REG_NBIO_MAILBOX_INDEX)));
    return number <= vfs_.count() ? VfId{static_cast<std::uint8_t>(number)} : kPf;
}

/// Makes one closure per VF and register, so that an access costs one table look-up.
void PfRegisters::claim_banks() {
    for (std::uint32_t number = 1; number <= vfs_.count(); ++number) {
        const VfId vf{static_cast<std::uint8_t>(number)};
        for (const BankRow& row : kBank) {
            regs::RegisterFile::Read read;
            regs::RegisterFile::Write write;
            if (row.read != nullptr)
                read = [this, vf, call = row.read](RegisterIndex, std::uint32_t stored) {
                    return (this->*call)(vf, stored);
                };
            if (row.write != nullptr)
                write = [this, vf, call = row.write](RegisterIndex, std::uint32_t value) {
                    (this->*call)(vf, value);
                };
            registers_.claim(bank_reg(vf, row.first), 1, std::move(read), std::move(write));
        }
    }
}

/// If the VF refuses the table, clears the VALID bit in ROOT_LO, so that the PF sees the refusal.
void PfRegisters::commit_table(VfId vf, std::uint32_t high) {
    const std::uint32_t low = bank(vf, REG_VGPU_VF0_FB_TABLE_ROOT_LO);
    const std::uint64_t root = join(low, high);
    if ((root & VF_PAGE_TABLE_VALID) == 0) return vfs_[vf].release_vram();
    const Bytes size{std::uint64_t{bank(vf, REG_VGPU_VF0_FB_SIZE_MB)} << kMegabyteShift};
    const Result<> committed =
        vfs_[vf].commit_vram(DeviceOffset{root & VF_PAGE_TABLE_ADDR_MASK}, size);
    if (committed) return;
    log::warn("VF{}: VF page table refused: {}", raw(vf), committed.error().message);
    set_bank(vf, REG_VGPU_VF0_FB_TABLE_ROOT_LO, low & ~low32(VF_PAGE_TABLE_VALID));
}

void PfRegisters::write_doorbells(VfId vf, std::uint32_t value) {
    vfs_[vf].set_doorbell_pages(HW_GET(VGPU_DOORBELLS, FIRST_PAGE, value),
                                HW_GET(VGPU_DOORBELLS, PAGES, value));
}

void PfRegisters::write_cu_mask(VfId vf, std::uint32_t) {
    vfs_[vf].set_cu_mask(
        join(bank(vf, REG_VGPU_VF0_CU_MASK_LO), bank(vf, REG_VGPU_VF0_CU_MASK_HI)));
}

template <auto Set> void PfRegisters::write_setting(VfId vf, std::uint32_t value) {
    (vfs_[vf].*Set)(value);
}

template <auto Get> std::uint32_t PfRegisters::read_live(VfId vf, std::uint32_t) {
    return (vfs_[vf].*Get)();
}

/// One write may set both bits: FLR_PENDING acknowledges the last reset by a client, and FLR begins
/// the next reset.
void PfRegisters::write_reset(VfId vf, std::uint32_t value) {
    if (HW_GET(VGPU_RESET, FLR_PENDING, value) != 0) vfs_[vf].acknowledge_flr();
    if (HW_GET(VGPU_RESET, FLR, value) != 0) vfs_[vf].request_flr();
}

template <auto Member, hw_reg High> std::uint32_t PfRegisters::read_wide(VfId vf, std::uint32_t) {
    const std::uint64_t value = vfs_[vf].statistics().*Member;
    set_bank(vf, High, high32(value));
    return low32(value);
}

template <auto Member> std::uint32_t PfRegisters::read_counter(VfId vf, std::uint32_t) {
    return low32(vfs_[vf].statistics().*Member);
}

std::uint32_t PfRegisters::bank(VfId vf, hw_reg first) const {
    return registers_.get(bank_reg(vf, first));
}

void PfRegisters::set_bank(VfId vf, hw_reg first, std::uint32_t value) {
    registers_.set(bank_reg(vf, first), value);
}

/// The values of register `low` and of the next register, as one 64-bit number.
std::uint64_t PfRegisters::pair(hw_reg low) const {
    const RegisterIndex high{static_cast<std::uint32_t>(low) + 1u};
    return join(registers_.get(reg(low)), registers_.get(high));
}

}  // namespace vgpu::softgpu::iov
