// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/ih/interrupt_handler.h"

#include <atomic>

#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/regs.h"
#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/regs/gpu_clock.h"

namespace vgpu::softgpu::ih {

namespace {

constexpr std::uint32_t kNone = 0;  // no register: rings 1 and 2 have no write-back

/// The numbers of a ring's registers.
struct RingRegisters {
    std::uint32_t control;
    std::uint32_t base;
    std::uint32_t base_hi;
    std::uint32_t read_pointer;
    std::uint32_t write_pointer;
    std::uint32_t write_back_lo;
    std::uint32_t write_back_hi;
    std::uint32_t doorbell;
};

constexpr RingRegisters ring_registers(std::uint32_t ring) {
    const std::uint32_t at = ring * REG_STRIDE_OSSSYS_IH_RB_CNTL;
    return {REG_OSSSYS_IH_RB_CNTL + at,
            REG_OSSSYS_IH_RB_BASE + at,
            REG_OSSSYS_IH_RB_BASE_HI + at,
            REG_OSSSYS_IH_RB_RPTR + at,
            REG_OSSSYS_IH_RB_WPTR + at,
            ring == 0 ? std::uint32_t{REG_OSSSYS_IH_RB_WPTR_ADDR_LO} : kNone,
            ring == 0 ? std::uint32_t{REG_OSSSYS_IH_RB_WPTR_ADDR_HI} : kNone,
            REG_OSSSYS_IH_DOORBELL_RPTR + at};
}

constexpr std::array<RingRegisters, IH_RINGS> kRings = {ring_registers(0), ring_registers(1),
                                                        ring_registers(2)};

const RingRegisters& registers_of(Ring ring) {
    return kRings[static_cast<unsigned>(ring)];
}

/// Values of IH_RB_CNTL.MC_SPACE.
constexpr std::uint32_t kSpaceBus = 1;
constexpr std::uint32_t kSpaceGpuVm = 4;

/// IH_RB_BASE and IH_RB_BASE_HI hold the ring's address >> 8.
constexpr std::uint32_t kBaseShift = 8;
constexpr std::uint32_t kBaseHiMask = 0xff;
constexpr std::uint32_t kSmallestRing = 2 * IH_ENTRY_BYTES;
constexpr std::uint32_t kOverflow = HW_FIELD_MASK(IH_RB_WPTR, RB_OVERFLOW);

/// The size of a ring whose RB_SIZE is n: min(4 << n, IH_MAX_RING_BYTES).
std::uint32_t ring_bytes(std::uint32_t control) {
    const std::uint32_t log2 = HW_GET(IH_RB_CNTL, RB_SIZE, control);
    const std::uint64_t bytes = sizeof(std::uint32_t) * (1ull << log2);
    return bytes > IH_MAX_RING_BYTES ? IH_MAX_RING_BYTES : static_cast<std::uint32_t>(bytes);
}

}  // namespace

/// One ring, as its registers describe the ring at present.
struct InterruptHandler::RingView {
    const RingRegisters* at;
    std::uint32_t control;
    std::uint32_t bytes;
    std::uint64_t base;

    [[nodiscard]] bool can_take_entries() const {
        return HW_GET(IH_RB_CNTL, RB_ENABLE, control) != 0 && bytes >= kSmallestRing;
    }
    /// The offset in bytes of the entry to which a pointer register points.
    [[nodiscard]] std::uint32_t offset(std::uint32_t pointer) const {
        return pointer & (bytes - 1) & ~(IH_ENTRY_BYTES - 1);
    }
};

InterruptHandler::InterruptHandler(regs::RegisterFile& regs, mem::SystemMemory& system,
                                   mem::Port& kernel, const Clock& clock, std::function<void()> msi)
    : regs_(regs), system_(system), kernel_(kernel), clock_(clock), msi_(std::move(msi)) {
    for (unsigned i = 0; i < IH_RINGS; ++i) {
        const auto ring = static_cast<Ring>(i);
        regs_.claim(RegisterIndex{kRings[i].control}, 1, {},
                    [this, ring](RegisterIndex, std::uint32_t value) { on_control(ring, value); });
        regs_.claim(RegisterIndex{kRings[i].read_pointer}, 1, {},
                    [this, ring](RegisterIndex, std::uint32_t) { on_read_pointer(ring); });
    }
}

InterruptHandler::RingView InterruptHandler::view(Ring ring) const {
    const RingRegisters& at = registers_of(ring);
    const std::uint32_t control = regs_.get(RegisterIndex{at.control});
    const std::uint32_t high = regs_.get(RegisterIndex{at.base_hi}) & kBaseHiMask;
    return {&at, control, ring_bytes(control),
            join(regs_.get(RegisterIndex{at.base}), high) << kBaseShift};
}

/// A ring with one free entry counts as full, because one more entry would make the write pointer
/// equal to the read pointer, as in an empty ring. With WPTR_OVERFLOW_ENABLE, raise() still writes
/// this entry, and sets RB_OVERFLOW.
void InterruptHandler::raise(ih_iv_entry entry, Ring ring) {
    const RingView to = view(ring);
    if (!to.can_take_entries()) {
        ++state_.dropped_disabled;
        return;
    }
    const std::uint32_t stored = regs_.get(RegisterIndex{to.at->write_pointer});
    const std::uint32_t at = to.offset(stored);
    const std::uint32_t next = (at + IH_ENTRY_BYTES) & (to.bytes - 1);
    std::uint32_t overflow = stored & kOverflow;
    if (next == to.offset(regs_.get(RegisterIndex{to.at->read_pointer}))) {
        if (HW_GET(IH_RB_CNTL, WPTR_OVERFLOW_ENABLE, to.control) == 0) {
            ++state_.dropped_full;
            return;
        }
        overflow = kOverflow;
        ++state_.overwritten;
    }
    if (!write_entry(to, at, entry)) {
        ++state_.dropped_memory;
        return;
    }
    ++state_.raised;
    publish(to, next | overflow);
    if (HW_GET(IH_RB_CNTL, ENABLE_INTR, to.control) != 0 && msi_) msi_();
}

/// Fills in time stamp and PASID and writes the entry to memory. Call before the write pointer
/// moves, because the guest reads the entry once the pointer has moved. False if the memory cannot
/// be reached.
bool InterruptHandler::write_entry(const RingView& ring, std::uint32_t offset,
                                   const ih_iv_entry& entry) {
    ih_iv_entry complete = entry;
    const std::uint64_t ticks = regs::gpu_ticks(clock_.now());
    complete.timestamp_lo = low32(ticks);
    complete.timestamp_hi = static_cast<std::uint16_t>(high32(ticks));
    const std::uint32_t vmid = bits(complete.vmid, 0, 4) & 0xf;
    if (complete.pasid == 0 && vmid != 0)
        complete.pasid =
            static_cast<std::uint16_t>(regs_.get(RegisterIndex{REG_OSSSYS_IH_VMID_0_LUT + vmid}));
    return write_memory(ring, ring.base + offset, bytes_of(complete));
}

void InterruptHandler::publish(const RingView& ring, std::uint32_t write_pointer) {
    // The guest polls the pointer from another CPU, so the entry must be visible first.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    regs_.set(RegisterIndex{ring.at->write_pointer}, write_pointer);
    const bool is_written_back = HW_GET(IH_RB_CNTL, WPTR_WRITEBACK_ENABLE, ring.control) != 0 &&
                                 ring.at->write_back_lo != kNone;
    if (!is_written_back) return;
    const std::uint64_t address = join(regs_.get(RegisterIndex{ring.at->write_back_lo}),
                                       regs_.get(RegisterIndex{ring.at->write_back_hi}));
    if (!write_memory(ring, address & ~3ull, bytes_of(write_pointer))) ++state_.dropped_memory;
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

/// IH rings are in bus memory or in memory of VMID 0. False if the write failed; callers only count
/// the failure, because the guest chose the address.
bool InterruptHandler::write_memory(const RingView& ring, std::uint64_t address,
                                    std::span<const std::byte> data) {
    const std::uint32_t space = HW_GET(IH_RB_CNTL, MC_SPACE, ring.control);
    if (space == kSpaceBus) return system_.write(Iova{address}, data);
    if (space != kSpaceGpuVm) return false;
    const bool is_written = kernel_.write(GpuVa{address}, data);
    kernel_.clear_fault();
    return is_written;
}

void InterruptHandler::program_control(unsigned ring, std::uint32_t value) {
    if (ring < IH_RINGS) regs_.write(RegisterIndex{kRings[ring].control}, value);
}

void InterruptHandler::on_control(Ring ring, std::uint32_t value) {
    if (HW_GET(IH_RB_CNTL, WPTR_OVERFLOW_CLEAR, value) == 0) return;
    const RegisterIndex pointer{registers_of(ring).write_pointer};
    regs_.set(pointer, regs_.get(pointer) & ~kOverflow);
}

void InterruptHandler::on_read_pointer(Ring ring) {
    const RegisterIndex pointer{registers_of(ring).write_pointer};
    regs_.set(pointer, regs_.get(pointer) & ~kOverflow);
}

bool InterruptHandler::doorbell(DoorbellIndex index, std::uint32_t value) {
    for (unsigned i = 0; i < IH_RINGS; ++i) {
        const std::uint32_t control = regs_.get(RegisterIndex{kRings[i].doorbell});
        const bool is_enabled = HW_GET(IH_DOORBELL_RPTR, ENABLE, control) != 0;
        if (!is_enabled || HW_GET(IH_DOORBELL_RPTR, OFFSET, control) != raw(index)) continue;
        regs_.write(RegisterIndex{kRings[i].read_pointer}, value);
        return true;
    }
    return false;
}

Result<> InterruptHandler::load(Reader& in) {
    State state;
    TRY_VOID(in.value(state).map_error([this](Error error) {
        reset();
        return error;
    }));
    state_ = state;
    return {};
}

}  // namespace vgpu::softgpu::ih
