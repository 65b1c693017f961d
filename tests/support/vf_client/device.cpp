// SPDX-License-Identifier: MIT
#include "tests/support/vf_client/device.h"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "pf-driver/hw/doorbell.h"
#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/pci.h"
#include "pf-driver/hw/regs.h"
#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::test {
namespace {

using softgpu::bytes_of;

// PCI configuration header and MSI capability, from the PCI specifications
constexpr std::uint64_t kPciCommand = 0x04;
constexpr std::uint16_t kPciMemoryAndBusMaster = 0x6;
constexpr std::uint64_t kMsiControl = VGPU_CAP_MSI + 2;
constexpr std::uint64_t kMsiAddress = VGPU_CAP_MSI + 4;
constexpr std::uint64_t kMsiData = VGPU_CAP_MSI + 12;
constexpr std::uint16_t kMsiEnable64 = 0x81;

constexpr std::uint32_t kRlcgLegacyWrite = 8;
constexpr milliseconds kRlcgLimit{500};

}  // namespace

VfDevice::VfDevice(const std::string& socket_path, GuestMemory& ram, Sealing sealing)
    : connection_(socket_path), ram_(ram), irq_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    map_ram(sealing);
    enable_pci();
    map_vram();
}

void VfDevice::map_ram(Sealing sealing) {
    if (sealing == Sealing::Unsealed)
        connection_.serve_dma(
            {[this](auto iova, auto out) { return ram_.read_file(iova, out); },
             [this](auto iova, auto data) { return ram_.write_file(iova, data); }});
    connection_.dma_map(GuestMemory::kIova, ram_.size(), ram_.fd(), 0);
}

void VfDevice::enable_pci() {
    connection_.set_irq(wire::kIrqMsi, irq_.get());
    const std::uint64_t address = 0xfee00000;
    connection_.write(wire::kRegionConfig, kMsiAddress, bytes_of(address));
    const std::uint16_t data = 0x4041;
    connection_.write(wire::kRegionConfig, kMsiData, bytes_of(data));
    connection_.write(wire::kRegionConfig, kMsiControl, bytes_of(kMsiEnable64));
    connection_.write(wire::kRegionConfig, kPciCommand, bytes_of(kPciMemoryAndBusMaster));
}

void VfDevice::reset() {
    connection_.reset();
    enable_pci();
    map_vram();
}

void VfDevice::map_vram() {
    auto region = connection_.region(VGPU_BAR_VRAM);
    aperture_bytes_ = region.size;
    vram_.reset();
    if (region.areas.empty() || !region.fd) return;
    const auto& area = region.areas.front();
    if (area.offset != 0) throw VfError("BAR0: the mappable area does not start at 0");
    void* const start = ::mmap(nullptr, area.size, PROT_READ | PROT_WRITE, MAP_SHARED,
                               region.fd.get(), static_cast<off_t>(region.fd_offset));
    if (start == MAP_FAILED)
        throw VfError(fmt::format("BAR0 map: {}", std::strerror(errno)), errno);
    vram_ = Mapping(start, area.size);
}

std::span<std::byte> VfDevice::vram_at(std::uint64_t offset, std::uint64_t bytes) const {
    const auto all = vram_.bytes();
    if (bytes > all.size() || offset > all.size() - bytes)
        throw VfError(fmt::format("VRAM {:#x}+{:#x} is outside the mapping of {:#x} bytes", offset,
                                  bytes, all.size()));
    return all.subspan(offset, bytes);
}

void VfDevice::vram_read_trapped(std::uint64_t offset, std::span<std::byte> out) {
    connection_.read(VGPU_BAR_VRAM, offset, out);
}

void VfDevice::vram_write_trapped(std::uint64_t offset, std::span<const std::byte> data) {
    connection_.write(VGPU_BAR_VRAM, offset, data);
}

std::uint32_t VfDevice::read(std::uint32_t reg) {
    std::uint32_t value = 0;
    connection_.read(VGPU_BAR_REGISTERS, std::uint64_t{reg} * 4, bytes_of(value));
    trace_.add(TraceKind::Read, reg, value);
    return value;
}

void VfDevice::write(std::uint32_t reg, std::uint32_t value) {
    trace_.add(TraceKind::Write, reg, value);
    connection_.write_posted(VGPU_BAR_REGISTERS, std::uint64_t{reg} * 4, bytes_of(value));
}

std::uint8_t VfDevice::read_byte(std::uint32_t reg, unsigned byte) {
    std::uint8_t value = 0;
    connection_.read(VGPU_BAR_REGISTERS, std::uint64_t{reg} * 4 + byte, bytes_of(value));
    trace_.add(TraceKind::Read, reg, value);
    return value;
}

void VfDevice::write_byte(std::uint32_t reg, unsigned byte, std::uint8_t value) {
    trace_.add(TraceKind::Write, reg, value);
    connection_.write_posted(VGPU_BAR_REGISTERS, std::uint64_t{reg} * 4 + byte, bytes_of(value));
}

std::uint32_t VfDevice::try_rlcg_write(std::uint32_t reg, std::uint32_t value) {
    trace_.add(TraceKind::RlcgWrite, reg, value);
    trace_.set_recording(false);
    write(REG_GC_SCRATCH_REG0, value);
    write(REG_GC_SCRATCH_REG1, HW_PREP(SCRATCH_REG1, RLCG_COMMAND, kRlcgLegacyWrite) |
                                   HW_PREP(SCRATCH_REG1, RLCG_OFFSET, reg));
    write(REG_GC_RLC_SPARE_INT, 1);
    std::uint32_t answer = 0;
    wait_for(fmt::format("RLCG write of register {:#x}", reg), kRlcgLimit, [&] {
        answer = read(REG_GC_SCRATCH_REG1);
        return HW_GET(SCRATCH_REG1, RLCG_OFFSET, answer) == 0;
    });
    trace_.set_recording(true);
    return HW_GET(SCRATCH_REG1, RLCG_ERROR, answer);
}

void VfDevice::rlcg_write(std::uint32_t reg, std::uint32_t value) {
    const auto error = try_rlcg_write(reg, value);
    if (error != 0)
        throw VfError(fmt::format("RLCG write of register {:#x}: error answer {}", reg, error));
}

void VfDevice::select(HqdSelect bank) {
    const auto value =
        HW_PREP(GRBM_GFX_CNTL, ME, bank.me) | HW_PREP(GRBM_GFX_CNTL, PIPE, bank.pipe) |
        HW_PREP(GRBM_GFX_CNTL, QUEUE, bank.queue) | HW_PREP(GRBM_GFX_CNTL, VMID, bank.vmid);
    write(REG_GC_SCRATCH_REG2, value);
    write(REG_GC_GRBM_GFX_CNTL, value);
}

void VfDevice::flush_hdp() {
    write(REG_NBIO_HDP_MEM_COHERENCY_FLUSH_CNTL, 0);
    (void)read(REG_NBIO_RCC_CONFIG_MEMSIZE);
}

void VfDevice::doorbell(std::uint32_t index, std::uint64_t value) {
    trace_.add(TraceKind::Doorbell, index, value);
    connection_.write_posted(VGPU_BAR_DOORBELL, std::uint64_t{index} * 4, bytes_of(value));
}

void VfDevice::doorbell32(std::uint32_t index, std::uint32_t value) {
    trace_.add(TraceKind::Doorbell, index, value);
    connection_.write_posted(VGPU_BAR_DOORBELL, std::uint64_t{index} * 4, bytes_of(value));
}

}  // namespace vgpu::test
