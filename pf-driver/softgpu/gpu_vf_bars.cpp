// SPDX-License-Identifier: MIT
//
// The BARs of a VF, which its client reads, writes and maps. Calls come on the io thread, through
// pci::Function; offset and size are inside the BAR.
#include <fcntl.h>

#include <algorithm>

#include "pf-driver/hw/fields.h"
#include "pf-driver/softgpu/gpu_vf.h"
#include "pf-driver/softgpu/regs/mmio.h"

namespace vgpu::softgpu {

namespace {

/// A duplicate of `fd`, which the client closes; the original stays with its block.
std::optional<pci::MappableMemory> mappable(int fd, std::uint64_t bytes) {
    OwnedFd copy(fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!copy) return std::nullopt;
    return pci::MappableMemory{std::move(copy), {{0, bytes}}};
}

}  // namespace

/// BAR0. Takes no VF lock: any thread may read VfVram at any time, and a guest that reads VRAM must
/// not wait for work of its own kernels.
class GpuVf::VramBar final : public pci::BarHandler {
public:
    explicit VramBar(GpuVf& vf) : vf_(vf) {}
    void bar_read(std::uint64_t offset, std::span<std::byte> out) override {
        const bool is_readable = is_open();
        if (is_readable && vf_.vram_.read(VfOffset{offset}, out)) return;
        if (!is_readable) std::ranges::fill(out, std::byte{0xff});
        ++vf_.bad_accesses_;
    }
    void bar_write(std::uint64_t offset, std::span<const std::byte> data) override {
        if (!is_open() || !vf_.vram_.write(VfOffset{offset}, data)) ++vf_.bad_accesses_;
    }
    std::optional<pci::MappableMemory> bar_memory() override {
        return mappable(is_open() ? vf_.vram_.memfd() : -1, vf_.vram_.size().count);
    }

private:
    [[nodiscard]] bool is_open() const { return HW_GET(VGPU_GATES, FB_EN, vf_.gates()) != 0; }

    GpuVf& vf_;
};

class GpuVf::DoorbellBar final : public pci::BarHandler {
public:
    explicit DoorbellBar(GpuVf& vf) : vf_(vf) {}
    void bar_read(std::uint64_t offset, std::span<std::byte> out) override {
        const auto lock = vf_.enter();
        vf_.doorbells_.read(offset, out);
    }
    void bar_write(std::uint64_t offset, std::span<const std::byte> data) override {
        const auto lock = vf_.enter();
        vf_.doorbells_.write(offset, data);
    }
    std::optional<pci::MappableMemory> bar_memory() override {
        const std::scoped_lock lock(vf_.lock_);
        return mappable(vf_.doorbells_.memfd(), DOORBELL_BAR_BYTES);
    }

private:
    GpuVf& vf_;
};

class GpuVf::RegisterBar final : public pci::BarHandler {
public:
    explicit RegisterBar(GpuVf& vf) : vf_(vf) {}
    void bar_read(std::uint64_t offset, std::span<std::byte> out) override {
        const auto lock = vf_.enter();
        ++vf_.mmio_reads_;
        // A driver checks by this register whether its read pointer doorbell arrived.
        if (offset / sizeof(std::uint32_t) == REG_OSSSYS_IH_RB_RPTR)
            vf_.doorbells_.scan(iov::Doorbells::Scan::Hot);
        regs::mmio_read(vf_.blocks_.registers, offset, out);
    }
    /// Reads the gate under the lock, so a write is either before a set_gates() or after it.
    void bar_write(std::uint64_t offset, std::span<const std::byte> data) override {
        const auto lock = vf_.enter();
        ++vf_.mmio_writes_;
        regs::mmio_write(vf_.blocks_.registers, offset, data, vf_.register_gate());
    }

private:
    GpuVf& vf_;
};

void GpuVf::make_bars() {
    const auto add = [this](unsigned bar, std::unique_ptr<pci::BarHandler> handler) {
        bars_.push_back(std::move(handler));
        function_.set_bar(bar, *bars_.back());
    };
    add(VGPU_BAR_VRAM, std::make_unique<VramBar>(*this));
    add(VGPU_BAR_DOORBELL, std::make_unique<DoorbellBar>(*this));
    add(VGPU_BAR_REGISTERS, std::make_unique<RegisterBar>(*this));
}

regs::Gate GpuVf::register_gate() const {
    return HW_GET(VGPU_GATES, REGWR_EN, gates_.load()) != 0 ? regs::Gate::Open : regs::Gate::Shut;
}

}  // namespace vgpu::softgpu
