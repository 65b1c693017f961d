// SPDX-License-Identifier: MIT
//
// The BARs of a VF: VRAM, doorbells, registers. The VF's client reads and writes them, and may map
// VRAM and, in Poll mode (iov/doorbells.h), doorbells. pci::Function calls the handlers on the io
// thread; offset and size are inside the BAR.
#include <fcntl.h>

#include <algorithm>

#include "pf-driver/hw/fields.h"
#include "pf-driver/softgpu/gpu_vf.h"

namespace vgpu::softgpu {

namespace {

/// A duplicate of `fd` for the client to map [0, bytes); nullopt if `fd` is -1 or cannot be
/// duplicated.
std::optional<pci::MappableMemory> mappable(int fd, std::uint64_t bytes) {
    OwnedFd copy(fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!copy) return std::nullopt;
    return pci::MappableMemory{std::move(copy), {{0, bytes}}};
}

}  // namespace

/// Takes no VF lock: any thread may access VfVram at any time, and a guest that accesses VRAM must
/// not wait for the VF's packets. Beyond the VRAM, VfVram::read() itself fills in all ones.
pci::BarHandler GpuVf::vram_bar() {
    const auto is_open = [this] { return HW_GET(VGPU_GATES, FB_EN, gates()) != 0; };
    return {
        [this, is_open](std::uint64_t offset, std::span<std::byte> out) {
            const bool is_readable = is_open();
            if (is_readable && vram_.read(VfOffset{offset}, out)) return;
            if (!is_readable) std::ranges::fill(out, std::byte{0xff});
            ++bad_accesses_;
        },
        [this, is_open](std::uint64_t offset, std::span<const std::byte> data) {
            if (!is_open() || !vram_.write(VfOffset{offset}, data)) ++bad_accesses_;
        },
        [this, is_open] { return mappable(is_open() ? vram_.memfd() : -1, vram_.size().count); }};
}

pci::BarHandler GpuVf::doorbell_bar() {
    return {[this](std::uint64_t offset, std::span<std::byte> out) {
                const auto lock = enter();
                doorbells_.read(offset, out);
            },
            [this](std::uint64_t offset, std::span<const std::byte> data) {
                const auto lock = enter();
                doorbells_.write(offset, data);
            },
            [this] {
                const std::scoped_lock lock(lock_);
                return mappable(doorbells_.memfd(), DOORBELL_BAR_BYTES);
            }};
}

/// A write reads the gate under the lock, so each write comes completely before or after a
/// set_gates().
pci::BarHandler GpuVf::register_bar() {
    return {[this](std::uint64_t offset, std::span<std::byte> out) {
                const auto lock = enter();
                // A driver reads this register to check that the doorbell with its read pointer
                // arrived. In Poll mode the doorbell may still be in the client's page.
                if (offset / sizeof(std::uint32_t) == REG_OSSSYS_IH_RB_RPTR)
                    doorbells_.scan(iov::Doorbells::Scan::Hot);
                blocks_.registers.mmio_read(offset, out);
            },
            [this](std::uint64_t offset, std::span<const std::byte> data) {
                const auto lock = enter();
                blocks_.registers.mmio_write(offset, data, register_gate());
            }};
}

regs::Gate GpuVf::register_gate() const {
    return HW_GET(VGPU_GATES, REGWR_EN, gates_.load()) != 0 ? regs::Gate::Open : regs::Gate::Shut;
}

}  // namespace vgpu::softgpu
