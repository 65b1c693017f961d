// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/gpu_pf.h"

#include <algorithm>

#include "pf-driver/softgpu/base/log.h"

namespace vgpu::softgpu {

namespace {

/// Size of the GPU-IOV capability's header, which is plain configuration space; the registers of
/// Vsec begin after the header.
constexpr std::uint32_t kVsecHeaderBytes = GPUIOV_CTRL;

}  // namespace

/// The size of BAR0 is that of VRAM, rounded up to a power of two by pf_function(). Addresses
/// beyond VRAM read all ones.
GpuPf::GpuPf(const Spec& spec, mem::DeviceVram& vram, iov::WorldSwitch& world_switch,
             const iov::VfControls& vfs, iov::FaultPlan& faults, const Clock& clock, Device& device)
    : faults_(faults),
      device_(device),
      log_([this](Iova at, std::span<const std::byte> data) { return system_.write(at, data); }),
      operations_(vram, system_, vfs),
      pf_registers_(spec, registers_, vfs, operations_, log_, clock,
                    {[this](std::uint32_t mask) { device_.set_wake_mask(mask); },
                     [this](iov::SwitchMode mode) { device_.set_switch_mode(mode); }}),
      vsec_(spec.vram, world_switch,
            {[this](gpuiov_vector vector) { raise(vector); }, [this] { return device_.busy_vfs(); },
             [this] { device_.reset_device(); }, [this] { return device_.is_resetting(); }}),
      function_(pci::pf_function(spec.vram, static_cast<std::uint16_t>(vfs.count()), spec.aperture),
                *this, *this) {
    make_bars(vram);
    bars_moved();
    function_.config().set_absence([this] { return faults_.holds(kPf, iov::FaultPoint::Device); });
    const auto read = [this](std::uint32_t offset, std::span<std::byte> out) {
        vsec_.read(offset + kVsecHeaderBytes, out);
    };
    const auto write = [this](std::uint32_t offset, std::span<const std::byte> data) {
        vsec_.write(offset + kVsecHeaderBytes, data);
    };
    function_.config().claim(VGPU_ECAP_VSEC + kVsecHeaderBytes,
                             GPUIOV_VSEC_LENGTH - kVsecHeaderBytes, read, write);
}

/// BAR0 is the whole device VRAM. No client can map BAR0, because no memfd holds all VRAM: each
/// memfd holds the VRAM of one VF (mem/vf_vram.h). BAR5 has no gate: REGWR_EN applies to VFs only.
void GpuPf::make_bars(mem::DeviceVram& vram) {
    function_.set_bar(VGPU_BAR_VRAM,
                      {[&vram](std::uint64_t offset, std::span<std::byte> out) {
                           if (!vram.read(DeviceOffset{offset}, out))
                               std::ranges::fill(out, std::byte{0xff});
                       },
                       [&vram](std::uint64_t offset, std::span<const std::byte> data) {
                           (void)vram.write(DeviceOffset{offset}, data);
                       }});
    function_.set_bar(VGPU_BAR_REGISTERS,
                      {[this](std::uint64_t offset, std::span<std::byte> out) {
                           registers_.mmio_read(offset, out);
                       },
                       [this](std::uint64_t offset, std::span<const std::byte> data) {
                           registers_.mmio_write(offset, data, regs::Gate::Open);
                       }});
}

Result<> GpuPf::attached(std::shared_ptr<Peer>) {
    log::info("PF: driver attached");
    return {};
}

/// Ends interrupts, WAKE and the run log, because the client is gone, and with it the memory of the
/// log's ring. All other state stays, because a restarted PF core continues from it.
void GpuPf::detached() {
    log::info("PF: driver gone; no world switches and no mailbox answers until it is back");
    vsec_.disable_interrupts();
    device_.set_wake_mask(0);
    log_.configure({}, 0);
}

/// Like detached(), ends interrupts, WAKE and the run log. VFs continue to run; only
/// GPUIOV_RESET_CONTROL resets the whole device.
void GpuPf::reset(pci::ResetKind) {
    vsec_.disable_interrupts();
    device_.set_wake_mask(0);
    log_.configure({}, 0);
}

/// The PF reaches memory only through fds, never by messages to the client: the threads that switch
/// worlds write the run log, and a client that does not answer would delay all VFs. So a range
/// without a usable fd is unreachable.
Result<> GpuPf::map(const vfio_user::DmaRange& range, int fd) {
    using mem::Access;
    std::uint8_t access = 0;
    if (range.is_readable) access |= static_cast<std::uint8_t>(Access::Read);
    if (range.is_writeable) access |= static_cast<std::uint8_t>(Access::Write);
    return system_.map({range.address, {range.size}, fd, range.fd_offset, access});
}

void GpuPf::unmap(const vfio_user::DmaRange& range) {
    const Result<> unmapped = system_.unmap(range.address, {range.size});
    if (!unmapped) log::warn("PF: DMA unmap: {}", unmapped.error().message);
}

void GpuPf::unmap_all() {
    system_.unmap_all();
}

void GpuPf::raise(gpuiov_vector vector) {
    if (faults_.take(kPf, iov::FaultPoint::Interrupt)) return;
    function_.raise(static_cast<std::uint32_t>(vector));
}

}  // namespace vgpu::softgpu
