// SPDX-License-Identifier: MIT
#include "daemon/simulator/model_gpu.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/pci.h"
#include "pf-driver/hw/regs.h"
#include "pf-driver/hw/vf_page_table.h"

namespace vgpu::simulator {

namespace {

constexpr std::uint32_t kVsec = VGPU_ECAP_VSEC;
constexpr std::uint32_t kScheduler = kVsec + GPUIOV_GFX_SCH0;

/// Calls each(page, offset in the page, offset in the range, bytes) for the part of a range in each
/// page.
template <typename Each>
void for_each_page(std::uint64_t offset, std::size_t bytes, const Each& each) {
    for (std::size_t done = 0; done < bytes;) {
        const std::uint64_t at = offset + done;
        const auto count = static_cast<std::size_t>(
            std::min<std::uint64_t>(bytes - done, kVramPage - at % kVramPage));
        each(at / kVramPage, static_cast<std::size_t>(at % kVramPage), done, count);
        done += count;
    }
}

}  // namespace

ModelGpu& ModelGpu::self(vgpu_os* os) {
    return *static_cast<Handle*>(static_cast<void*>(os))->self;  // first member: os
}

const vgpu_os_ops ModelGpu::kOps = {
    .config_read =
        [](vgpu_os* os, std::uint32_t offset, std::uint32_t bytes, std::uint32_t* value) {
            ModelGpu& gpu = self(os);
            if (const int error = gpu.access()) return error;
            *value = gpu.read_config(offset & ~3u) >> (8 * (offset & 3u));
            if (bytes < 4) *value &= (1u << (8 * bytes)) - 1;
            return 0;
        },
    .config_write =
        [](vgpu_os* os, std::uint32_t offset, std::uint32_t, std::uint32_t value) {
            ModelGpu& gpu = self(os);
            if (const int error = gpu.access()) return error;
            gpu.write_config(offset, value);
            return 0;
        },
    .mmio_read =
        [](vgpu_os* os, std::uint32_t reg, std::uint32_t* value) {
            ModelGpu& gpu = self(os);
            if (const int error = gpu.access()) return error;
            *value = gpu.read_register(reg);
            return 0;
        },
    .mmio_write =
        [](vgpu_os* os, std::uint32_t reg, std::uint32_t value) {
            ModelGpu& gpu = self(os);
            if (const int error = gpu.access()) return error;
            gpu.write_register(reg, value);
            return 0;
        },
    .vram_read =
        [](vgpu_os* os, std::uint64_t offset, void* data, std::uint32_t bytes) {
            ModelGpu& gpu = self(os);
            if (const int error = gpu.access()) return error;
            gpu.read_vram(offset, {static_cast<std::uint8_t*>(data), bytes});
            return 0;
        },
    .vram_write =
        [](vgpu_os* os, std::uint64_t offset, const void* data, std::uint32_t bytes) {
            ModelGpu& gpu = self(os);
            if (const int error = gpu.access()) return error;
            gpu.vram_bytes_written += bytes;
            gpu.write_vram(offset, {static_cast<const std::uint8_t*>(data), bytes});
            return 0;
        },
    .dma_alloc =
        [](vgpu_os* os, std::uint32_t bytes, vgpu_os_dma* dma) {
            ModelGpu& gpu = self(os);
            auto block = std::make_shared<std::vector<std::uint64_t>>((bytes + 7) / 8);
            dma->cpu = block->data();
            dma->bus = gpu.dma_next_;
            dma->bytes = bytes;
            // + 0x1000, not 0xfff: no two blocks are adjacent
            gpu.dma_next_ += (bytes + 0x1000ull) & ~0xfffull;
            gpu.dma_[dma->bus] = std::move(block);
            return 0;
        },
    .dma_free =
        [](vgpu_os* os, vgpu_os_dma* dma) {
            self(os).dma_.erase(dma->bus);
            dma->cpu = nullptr;
        },
    .now_ns = [](vgpu_os* os) { return self(os).now_; },
    .timer_arm =
        [](vgpu_os* os, std::uint64_t deadline) {
            self(os).timer_ = deadline;
            if (self(os).is_in_service_) ++self(os).calls_back;
        },
    .events_notify =
        [](vgpu_os* os) {
            ++self(os).notifications;
            self(os).is_in_service_ = true;
            if (self(os).forward.events) self(os).forward.events();
            self(os).is_in_service_ = false;
        },
    .log =
        [](vgpu_os* os, vgpu_os_log_level level, const char* text) {
            if (level != VGPU_OS_LOG_DEBUG) self(os).log_lines.emplace_back(text);
        },
    .stream_write = [](vgpu_os* os, const void* data, std::uint32_t bytes) -> std::int64_t {
        ModelGpu& gpu = self(os);
        if (gpu.forward.stream_write) return gpu.forward.stream_write(data, bytes);
        const auto* from = static_cast<const std::uint8_t*>(data);
        std::size_t count = bytes;
        if (gpu.stream_room) {
            if (*gpu.stream_room == 0) return -EAGAIN;
            count = std::min<std::size_t>(count, *gpu.stream_room);
            *gpu.stream_room -= count;
        }
        gpu.stream_out.insert(gpu.stream_out.end(), from, from + count);
        return static_cast<std::int64_t>(count);
    },
    .stream_read = [](vgpu_os* os, void* data, std::uint32_t bytes) -> std::int64_t {
        ModelGpu& gpu = self(os);
        if (gpu.forward.stream_read) return gpu.forward.stream_read(data, bytes);
        return static_cast<std::int64_t>(gpu.stream_in.read(data, bytes));
    },
    .request_done =
        [](vgpu_os* os, std::uint64_t token, int error, const char* message) {
            self(os).is_in_service_ = true;
            if (self(os).forward.request_done)
                self(os).forward.request_done(token, error, message);
            else
                self(os).done[token] = {error, message};
            self(os).is_in_service_ = false;
        },
};

ModelGpu::ModelGpu(Options options) : options_(options), handle_{{&kOps}, this} {
    now_ = options.start_ns;
    vfs_.resize(options.total_vfs + 1);
}

ModelGpu::Snapshot ModelGpu::save() const {
    Snapshot snapshot{*this, {}};
    for (const auto& [bus, block] : dma_) snapshot.dma[bus] = *block;
    return snapshot;
}

void ModelGpu::restore(const Snapshot& snapshot) {
    ModelGpuState& state = *this;
    state = snapshot.state;
    for (const auto& [bus, words] : snapshot.dma) *dma_.at(bus) = words;
}

int ModelGpu::access() {
    ++accesses;
    if (is_gone) return -ENODEV;
    if (!fail_after) return 0;
    if (*fail_after == 0) {
        fail_after.reset();
        ++accesses_failed;
        return -EIO;
    }
    --*fail_after;
    return 0;
}

std::uint8_t& ModelGpu::byte(std::uint64_t offset) {
    auto& page = vram_[offset / kVramPage];
    if (!page)
        page = std::make_shared<std::vector<std::uint8_t>>(kVramPage);
    else if (page.use_count() > 1)
        page = std::make_shared<std::vector<std::uint8_t>>(*page);
    return (*page)[offset % kVramPage];
}

std::uint8_t ModelGpu::peek(std::uint64_t offset) {
    const auto page = vram_.find(offset / kVramPage);
    return page == vram_.end() ? std::uint8_t{0} : (*page->second)[offset % kVramPage];
}

void ModelGpu::read_vram(std::uint64_t offset, std::span<std::uint8_t> out) const {
    for_each_page(
        offset, out.size(),
        [&](std::uint64_t number, std::size_t in_page, std::size_t at, std::size_t count) {
            const auto page = vram_.find(number);
            if (page == vram_.end())
                std::memset(&out[at], 0, count);
            else
                std::memcpy(&out[at], &(*page->second)[in_page], count);
        });
}

/// Writes VRAM. Zeroes do not allocate pages.
void ModelGpu::write_vram(std::uint64_t offset, std::span<const std::uint8_t> data) {
    for_each_page(
        offset, data.size(),
        [&](std::uint64_t number, std::size_t in_page, std::size_t at, std::size_t count) {
            const auto piece = data.subspan(at, count);
            if (!vram_.contains(number) &&
                std::ranges::all_of(piece, [](std::uint8_t b) { return b == 0; }))
                return;
            std::memcpy(&byte(number * kVramPage + in_page), piece.data(), count);
        });
}

// --- time

void ModelGpu::at(std::uint64_t time, std::function<void()> run) {
    events_.emplace(std::max(time, now_), Event{std::move(run)});
}

void ModelGpu::deliver() {
    while (irq_ && core_ != nullptr) {
        irq_ = false;
        vgpu_pf_interrupt(core_);
    }
}

void ModelGpu::run_until(std::uint64_t time) {
    deliver();
    for (;;) {
        const std::uint64_t event = events_.empty() ? kEndless : events_.begin()->first;
        const std::uint64_t timer = timer_ != 0 ? std::max(timer_, now_) : kEndless;
        if (std::min(event, timer) > time) break;
        if (event <= timer) {
            now_ = event;
            const auto run = std::move(events_.begin()->second.run);
            events_.erase(events_.begin());
            run();
        } else {
            now_ = timer;
            timer_ = 0;
            if (core_ != nullptr) vgpu_pf_timer(core_);
        }
        deliver();
    }
    now_ = time;
}

std::uint64_t ModelGpu::next_event() const {
    const std::uint64_t event = events_.empty() ? kEndless : events_.begin()->first;
    return timer_ != 0 ? std::min(event, std::max(timer_, now_)) : event;
}

void ModelGpu::interrupt(std::uint32_t bits) {
    intr_status_ |= bits;
    if ((bits & intr_enable_) != 0 && !lose_interrupts) irq_ = true;
}

// --- config space

std::uint32_t ModelGpu::busy_mask() const {
    std::uint32_t mask = 0;
    for (std::uint32_t n = 1; n < vfs_.size(); ++n)
        if (vfs_[n].work_ns != 0) mask |= 1u << (n - 1);
    return mask;
}

std::uint32_t ModelGpu::read_config(std::uint32_t dword) {
    switch (dword) {
        case VGPU_PCI_ECAP_FIRST:
            return 0x10u | 1u << 16 | kVsec << 20;  // SR-IOV, version 1; next: kVsec
        case kVsec:
            return VGPU_PCI_ECAP_VENDOR | 1u << 16;
        case kVsec + VGPU_PCI_VSEC_HEADER:
            return GPUIOV_VSEC_ID | GPUIOV_VSEC_REV << 16 | GPUIOV_VSEC_LENGTH << 20;
        case kVsec + (GPUIOV_GFX_SCH_OFFSET & ~3u):
            return GPUIOV_GFX_SCH0 / 16u << 16;  // byte 2 of the dword; unit: 16 bytes
        case kVsec + GPUIOV_INTR_STATUS:
            return intr_status_;
        case kVsec + GPUIOV_INTR_ENABLE:
            return intr_enable_;
        case kVsec + GPUIOV_HVVM_MBOX1:
            return mbox1_;
        case kVsec + GPUIOV_RESET_CONTROL:
            if (device_reset_ends_ == 0) return 0;
            if (now_ < device_reset_ends_) return GPUIOV_RESET_DEVICE;
            if (device_reset_ns != 0) device_reset();
            device_reset_ends_ = 0;
            return 0;
        case kScheduler + GPUIOV_SCH_CMD_CONTROL:
            return command_;
        case kScheduler + GPUIOV_SCH_CMD_STATUS:
            return status_;
        case kScheduler + GPUIOV_SCH_VM_BUSY_STATUS:
            return busy_mask();
        case kScheduler + GPUIOV_SCH_ACTIVE_FUNCTION_ID: {
            if (loaded_ == 0) return 0;
            const std::uint32_t state = is_stalled_   ? GPUIOV_FUNCTION_STALLED
                                        : is_running_ ? GPUIOV_FUNCTION_ACTIVE
                                                      : GPUIOV_FUNCTION_IDLE;
            return (loaded_ - 1) | state << 16 | 1u << 31;  // bit 31: valid
        }
        default:
            return 0;
    }
}

void ModelGpu::write_config(std::uint32_t offset, std::uint32_t value) {
    switch (offset) {
        case kVsec + GPUIOV_INTR_STATUS:
            intr_status_ &= ~value;
            break;
        case kVsec + GPUIOV_INTR_ENABLE:
            intr_enable_ = value;
            if ((intr_status_ & value) != 0) irq_ = true;
            break;
        case kVsec + GPUIOV_HVVM_MBOX1:
            mbox1_ &= ~(value & 0xaaaaaaaau);  // 1 clears ACK; RCV_ACK clears VALID
            break;
        case kVsec + GPUIOV_RESET_CONTROL:
            if ((value & GPUIOV_RESET_DEVICE) != 0) {
                ++device_resets;
                device_reset_ends_ = now_ + device_reset_ns;
                if (device_reset_ns == 0) device_reset();
            }
            break;
        case kScheduler + GPUIOV_SCH_CMD_CONTROL:
            if ((command_ & GPUIOV_CMD_EXECUTE) == 0) start_command(value);
            break;
        default:
            break;
    }
}

// --- registers

std::uint32_t ModelGpu::bank(std::uint32_t vf, std::uint32_t reg) const {
    const auto found = regs_.find(reg + vf * HW_VGPU_BANK_STRIDE);
    return found == regs_.end() ? 0 : found->second;
}

void ModelGpu::set_bank(std::uint32_t vf, std::uint32_t reg, std::uint32_t value) {
    regs_[reg + vf * HW_VGPU_BANK_STRIDE] = value;
}

std::uint64_t ModelGpu::pair(std::uint32_t reg_lo) const {
    const auto get = [&](std::uint32_t reg) {
        const auto found = regs_.find(reg);
        return found == regs_.end() ? 0ull : found->second;
    };
    return get(reg_lo) | get(reg_lo + 1) << 32;
}

std::uint32_t ModelGpu::read_register(std::uint32_t reg) {
    const std::uint32_t selected = regs_[REG_NBIO_MAILBOX_INDEX];
    switch (reg) {
        case REG_VGPU_ID:
            return VGPU_ID_MAGIC;
        case REG_VGPU_VERSION:
            return VGPU_REGISTERS_VERSION;
        case REG_VGPU_TOTAL_VFS:
            return options_.total_vfs;
        case REG_VGPU_VRAM_SIZE_MB:
            return options_.vram_mb;
        case REG_VGPU_APERTURE_SIZE_MB:
            return options_.aperture_mb;
        case REG_VGPU_DOORBELL_PAGES:
            return 512;
        case REG_VGPU_CU_COUNT:
            return options_.cu_count;
        case REG_VGPU_TIME_NS_LO:
            // a read of LO latches HI
            regs_[REG_VGPU_TIME_NS_HI] = static_cast<std::uint32_t>(now_ >> 32);
            return static_cast<std::uint32_t>(now_);
        case REG_VGPU_OP_STATUS:
            return op_busy_ ? VGPU_OP_BUSY : op_refused_ ? VGPU_OP_REFUSED : VGPU_OP_DONE;
        case REG_NBIO_MAILBOX_CONTROL:
            return mailbox_control(selected);
        default:
            break;
    }
    if (reg >= REG_NBIO_MAILBOX_MSGBUF_RCV_DW0 && reg <= REG_NBIO_MAILBOX_MSGBUF_RCV_DW3 &&
        selected != 0 && selected < vfs_.size())
        return vfs_[selected].to_pf[reg - REG_NBIO_MAILBOX_MSGBUF_RCV_DW0];
    return reg >= REG_VGPU_VF0_FB_TABLE_ROOT_LO ? read_bank(reg) : regs_[reg];
}

std::uint32_t ModelGpu::mailbox_control(std::uint32_t number) const {
    if (number == 0 || number >= vfs_.size()) return 0;
    const Vf& vf = vfs_[number];
    return HW_PREP(MAILBOX_CONTROL, RCV_VALID, vf.to_pf_valid && !vf.to_pf_acked ? 1 : 0) |
           HW_PREP(MAILBOX_CONTROL, TRN_VALID, vf.to_vf_valid ? 1 : 0);
}

/// Reads a register of a VF's bank. The banks are behind all other registers of the PF.
std::uint32_t ModelGpu::read_bank(std::uint32_t reg) {
    const std::uint32_t vf = (reg - REG_VGPU_VF0_FB_TABLE_ROOT_LO) / HW_VGPU_BANK_STRIDE;
    const std::uint32_t first = reg - vf * HW_VGPU_BANK_STRIDE;
    if (vf >= vfs_.size()) return 0;
    if (first == REG_VGPU_VF0_STATUS)
        return HW_PREP(VGPU_STATUS, HAS_WORK, vfs_[vf].work_ns != 0 ? 1 : 0) |
               HW_PREP(VGPU_STATUS, ATTACHED, vfs_[vf].is_attached ? 1 : 0);
    if (first == REG_VGPU_VF0_RESET)
        return HW_PREP(VGPU_RESET, FLR, bank(vf, first) & 1u) |
               HW_PREP(VGPU_RESET, FLR_PENDING, vfs_[vf].flr_pending ? 1 : 0);
    return regs_[reg];
}

void ModelGpu::write_register(std::uint32_t reg, std::uint32_t value) {
    const std::uint32_t selected = regs_[REG_NBIO_MAILBOX_INDEX];
    if (reg == REG_NBIO_MAILBOX_CONTROL && selected != 0 && selected < vfs_.size()) {
        Vf& vf = vfs_[selected];
        if (HW_GET(MAILBOX_CONTROL, RCV_ACK, value) != 0) {
            vf.to_pf_acked = true;
            mbox1_ &= ~(1u << (2 * (selected - 1)));
        } else if (HW_GET(MAILBOX_CONTROL, TRN_VALID, value) != 0) {
            for (std::uint32_t i = 0; i < 4; ++i)
                vf.to_vf[i] = regs_[REG_NBIO_MAILBOX_MSGBUF_TRN_DW0 + i];
            vf.to_vf_valid = true;
            const bool is_notice = vf.to_vf[0] == MAILBOX_VF_FLR_NOTIFICATION;
            (is_notice && !vf.has_interrupts ? vf.undelivered : vf.received).push_back(vf.to_vf[0]);
            if (do_guests_acknowledge_at_once) acknowledge(selected);
        }
        return;
    }
    if (reg >= REG_VGPU_VF0_FB_TABLE_ROOT_LO) {
        const std::uint32_t vf = (reg - REG_VGPU_VF0_FB_TABLE_ROOT_LO) / HW_VGPU_BANK_STRIDE;
        if (vf < vfs_.size()) write_bank(vf, reg - vf * HW_VGPU_BANK_STRIDE, value);
        return;
    }
    regs_[reg] = value;
    if (reg == REG_VGPU_OP_COMMAND) start_bulk(value);
    if (reg == REG_VGPU_LOG_SIZE) log_written_ = 0;
}

void ModelGpu::write_bank(std::uint32_t number, std::uint32_t reg, std::uint32_t value) {
    Vf& vf = vfs_[number];
    if (reg == REG_VGPU_VF0_RESET) {
        if (HW_GET(VGPU_RESET, FLR_PENDING, value) != 0) vf.flr_pending = false;
        if (HW_GET(VGPU_RESET, FLR, value) == 0) return;
        set_bank(number, reg, 1);
        // an FLR takes 50 us
        if (!vf.flr_never_ends) at(now_ + 50 * kUs, [this, number] { reset_vf(number); });
        return;
    }
    set_bank(number, reg, value);
    if (reg == REG_VGPU_VF0_FB_TABLE_ROOT_HI) commit_table(number);
}

/// Checks that the new page table maps all VRAM of the VF (leaf pages of 2 MiB). If not, or if
/// refuse_tables is set, refuses the table by clearing VALID.
void ModelGpu::commit_table(std::uint32_t number) {
    const std::uint32_t low = bank(number, REG_VGPU_VF0_FB_TABLE_ROOT_LO);
    if ((low & VF_PAGE_TABLE_VALID) == 0) return;
    const std::uint64_t bytes = std::uint64_t{bank(number, REG_VGPU_VF0_FB_SIZE_MB)} << 20;
    bool is_good = !refuse_tables && bytes != 0;
    ++vfs_[number].tables;
    for (std::uint64_t offset = 0; is_good && offset < bytes; offset += 2ull << 20)
        is_good = vf_to_device(number, offset) != kEndless;
    if (!is_good)
        set_bank(number, REG_VGPU_VF0_FB_TABLE_ROOT_LO, low & ~std::uint32_t{VF_PAGE_TABLE_VALID});
}

std::uint64_t ModelGpu::vf_to_device(std::uint32_t number, std::uint64_t offset) {
    const auto entry = [&](std::uint64_t table, std::uint64_t index) {
        std::array<std::uint8_t, 8> bytes;
        read_vram(table + 8 * index, bytes);
        std::uint64_t value = 0;
        for (unsigned i = 0; i < 8; ++i) value |= std::uint64_t{bytes[i]} << (8 * i);
        return value;
    };
    const std::uint64_t root = (bank(number, REG_VGPU_VF0_FB_TABLE_ROOT_LO) |
                                std::uint64_t{bank(number, REG_VGPU_VF0_FB_TABLE_ROOT_HI)} << 32);
    const std::uint64_t table =
        entry(root & VF_PAGE_TABLE_ADDR_MASK, offset >> VF_PAGE_TABLE_ROOT_SHIFT);
    if ((table & VF_PAGE_TABLE_VALID) == 0) return kEndless;
    const std::uint64_t leaf = entry(table & VF_PAGE_TABLE_ADDR_MASK,
                                     (offset >> VF_PAGE_TABLE_LEAF_SHIFT) % VF_PAGE_TABLE_ENTRIES);
    if ((leaf & VF_PAGE_TABLE_VALID) == 0) return kEndless;
    const std::uint64_t device = (leaf & VF_PAGE_TABLE_ADDR_MASK) + offset % (2ull << 20);
    return device < (std::uint64_t{options_.vram_mb} << 20) ? device : kEndless;
}

}  // namespace vgpu::simulator
