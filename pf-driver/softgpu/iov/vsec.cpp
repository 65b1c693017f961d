// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/iov/vsec.h"

#include <algorithm>

#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::softgpu::iov {

namespace {

constexpr std::uint32_t kDwordBytes = sizeof(std::uint32_t);
constexpr std::uint32_t kOffsetUnit = 16;  // bytes; unit of GFX_SCH_OFFSET
/// ACTIVE_FUNCTION_ID.VALID of the GFX scheduler.
constexpr std::uint32_t kValidBit = 1u << 31;

constexpr std::uint32_t kMailboxIntrs =
    GPUIOV_INTR_HVVM_MBOX_ACK | GPUIOV_INTR_HVVM_MBOX_VALID | GPUIOV_INTR_VF_FLR;

constexpr std::uint32_t sch(gpuiov_sch_offset offset) {
    return static_cast<std::uint32_t>(GPUIOV_GFX_SCH0) + static_cast<std::uint32_t>(offset);
}

/// Bits of HVVM_MBOX1: VALID of VF n is bit 2 * (n - 1), ACK is the next bit.
constexpr std::uint32_t valid_bit(VfId vf) {
    return 1u << (2 * (raw(vf) - 1u));
}
constexpr std::uint32_t ack_bit(VfId vf) {
    return valid_bit(vf) << 1;
}
constexpr std::uint32_t kAckBits = 0xaaaaaaaau;

/// Puts a 16-bit register into the high half of its dword.
constexpr std::uint32_t high_half(std::uint32_t value) {
    return value << 16;
}

/// Mask of the bytes [first, first + count) of a dword.
std::uint32_t byte_mask(std::size_t first, std::size_t count) {
    return low32(((1ull << (8 * count)) - 1) << (8 * first));
}

}  // namespace

Vsec::Vsec(Bytes vram, WorldSwitch& scheduler, Hooks hooks)
    : vram_(vram), scheduler_(scheduler), hooks_(std::move(hooks)) {}

void Vsec::read(std::uint32_t offset, std::span<std::byte> out) const {
    for (std::size_t done = 0; done < out.size();) {
        const std::uint32_t at = offset + static_cast<std::uint32_t>(done);
        const std::size_t first = at % kDwordBytes;
        const std::size_t count = std::min(out.size() - done, kDwordBytes - first);
        const std::uint32_t value = read_dword(at - static_cast<std::uint32_t>(first));
        std::ranges::copy(bytes_of(value).subspan(first, count), out.subspan(done).begin());
        done += count;
    }
}

void Vsec::write(std::uint32_t offset, std::span<const std::byte> data) {
    for (std::size_t done = 0; done < data.size();) {
        const std::uint32_t at = offset + static_cast<std::uint32_t>(done);
        const std::size_t first = at % kDwordBytes;
        const std::size_t count = std::min(data.size() - done, kDwordBytes - first);
        std::uint32_t value = 0;
        std::ranges::copy(data.subspan(done, count), bytes_of(value).subspan(first).begin());
        write_dword(at - static_cast<std::uint32_t>(first), value, byte_mask(first, count));
        done += count;
    }
}

/// Takes only one view of the world switch, so that function and state in one dword belong
/// together.
std::uint32_t Vsec::read_dword(std::uint32_t offset) const {
    if (offset >= GPUIOV_VSEC_LENGTH) return 0;
    const std::uint32_t stored = storage_[offset / kDwordBytes];
    const WorldSwitch::View view = scheduler_.view();
    const std::uint32_t active = view.function ? raw(*view.function) - 1u : 0u;
    switch (offset) {
        case GPUIOV_INTR_ENABLE:
            return enable_;
        case GPUIOV_INTR_STATUS:
            return status_;
        case GPUIOV_RESET_CONTROL:
            return hooks_.is_resetting() ? GPUIOV_RESET_DEVICE : 0u;
        case GPUIOV_HVVM_MBOX1:
            return mailbox_;
        case GPUIOV_TOTAL_FB_AVAILABLE:
            return stored | low32(vram_.count >> GPUIOV_FB_UNIT_SHIFT);
        case GPUIOV_GFX_SCH_OFFSET & ~(kDwordBytes - 1):
            return high_half(GPUIOV_GFX_SCH0 / kOffsetUnit);
        case sch(GPUIOV_SCH_CMD_CONTROL):
            return view.command;
        case sch(GPUIOV_SCH_CMD_STATUS):
            return view.status;
        case sch(GPUIOV_SCH_VM_BUSY_STATUS):
            return hooks_.busy_vfs();
        case sch(GPUIOV_SCH_ACTIVE_FUNCTION_ID):
            return active | high_half(static_cast<std::uint32_t>(view.state)) |
                   (view.function ? kValidBit : 0u);
        default:
            return stored;
    }
}

void Vsec::write_dword(std::uint32_t offset, std::uint32_t value, std::uint32_t mask) {
    if (offset >= GPUIOV_VSEC_LENGTH) return;
    std::uint32_t& stored = storage_[offset / kDwordBytes];
    const std::uint32_t merged = (stored & ~mask) | (value & mask);
    switch (offset) {
        case GPUIOV_INTR_ENABLE:
            return write_enable(value, mask);
        case GPUIOV_INTR_STATUS:
            status_.fetch_and(~(value & mask));
            return;
        case GPUIOV_RESET_CONTROL:
            if ((value & mask & GPUIOV_RESET_DEVICE) != 0) hooks_.reset_device();
            return;
        case GPUIOV_HVVM_MBOX1:
            mailbox_.fetch_and(~(value & mask & kAckBits));
            return;
        case GPUIOV_TOTAL_FB_AVAILABLE:
            stored = merged & ~byte_mask(0, 2);
            return;
        case GPUIOV_GFX_SCH_OFFSET & ~(kDwordBytes - 1):
        case sch(GPUIOV_SCH_CMD_STATUS):
        case sch(GPUIOV_SCH_VM_BUSY_STATUS):
        case sch(GPUIOV_SCH_ACTIVE_FUNCTION_ID):
            return;
        case sch(GPUIOV_SCH_CMD_CONTROL):
            stored = merged;
            if ((mask & value & GPUIOV_CMD_EXECUTE) != 0) scheduler_.command(merged);
            return;
        default:
            stored = merged;
    }
}

/// Raises the vectors of bits that are set already and become enabled. Otherwise the PF would have
/// to read INTR_STATUS after each write of INTR_ENABLE.
void Vsec::write_enable(std::uint32_t value, std::uint32_t mask) {
    const std::uint32_t before = enable_.load();
    const std::uint32_t now = (before & ~mask) | (value & mask);
    enable_ = now;
    deliver(status_.load() & now & ~before);
}

/// Sets INTR_STATUS before it raises the vector, because the PF's handler must find the bit.
void Vsec::interrupt(std::uint32_t bits) {
    status_.fetch_or(bits);
    deliver(bits & enable_.load());
}

void Vsec::deliver(std::uint32_t bits) {
    if ((bits & ~kMailboxIntrs) != 0) hooks_.raise(GPUIOV_VECTOR_SWITCH);
    if ((bits & kMailboxIntrs) != 0) hooks_.raise(GPUIOV_VECTOR_MAILBOX);
}

void Vsec::set_mailbox_valid(VfId vf) {
    mailbox_.fetch_or(valid_bit(vf));
    interrupt(GPUIOV_INTR_HVVM_MBOX_VALID);
}

/// INTR_STATUS keeps HVVM_MBOX_VALID. A PF that then finds no bit in HVVM_MBOX1 has nothing to do.
void Vsec::clear_mailbox_valid(VfId vf) {
    mailbox_.fetch_and(~valid_bit(vf));
}

void Vsec::set_mailbox_ack(VfId vf) {
    mailbox_.fetch_or(ack_bit(vf));
    interrupt(GPUIOV_INTR_HVVM_MBOX_ACK);
}

}  // namespace vgpu::softgpu::iov
