// SPDX-License-Identifier: MIT
//
// VfDevice: the function as a driver sees it: registers (direct and through the RLCG scratch
// interface), VRAM through BAR0, doorbells, the MSI vector as an eventfd, guest RAM mapped for DMA.
// Every access is recorded in a Trace. One thread uses a VfDevice.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tests/support/vf_client/connection.h"
#include "tests/support/vf_client/guest_memory.h"
#include "tests/support/vf_client/trace.h"

namespace vgpu::test {

/// A bank of HQD registers, as GRBM_GFX_CNTL selects it.
struct HqdSelect {
    std::uint32_t me = 0, pipe = 0, queue = 0, vmid = 0;
};

class VfDevice {
public:
    /// Attaches: maps all of `ram` for DMA, turns on memory space, bus mastering and MSI.
    VfDevice(const std::string& socket_path, GuestMemory& ram, Sealing sealing);

    [[nodiscard]] std::uint32_t read(std::uint32_t reg);
    void write(std::uint32_t reg, std::uint32_t value);
    [[nodiscard]] std::uint8_t read_byte(std::uint32_t reg, unsigned byte);
    void write_byte(std::uint32_t reg, unsigned byte, std::uint8_t value);
    /// Register write by RLCG; throws with the error answer if the device refuses.
    void rlcg_write(std::uint32_t reg, std::uint32_t value);
    /// Error bits of SCRATCH_REG1 after an RLCG write; 0: done.
    [[nodiscard]] std::uint32_t try_rlcg_write(std::uint32_t reg, std::uint32_t value);
    void select(HqdSelect bank);

    /// Makes stores to VRAM visible to the engines, as the driver does before using them.
    void flush_hdp();

    /// Write 64 or 32 bits to a doorbell; `index` counts dwords.
    void doorbell(std::uint32_t index, std::uint64_t value);
    void doorbell32(std::uint32_t index, std::uint32_t value);

    /// DEVICE_RESET, then what a VMM sets up after it: configuration space, interrupts, BAR0.
    void reset();

    /// Maps BAR0 again; a test calls it after the PF has given the VF its VRAM.
    void map_vram();
    /// VRAM as mapped; empty before map_vram() or when the device offers no mapping.
    [[nodiscard]] std::span<std::byte> vram() const { return vram_.bytes(); }
    [[nodiscard]] std::span<std::byte> vram_at(std::uint64_t offset, std::uint64_t bytes) const;
    /// Access BAR0 by REGION_READ or REGION_WRITE.
    void vram_read_trapped(std::uint64_t offset, std::span<std::byte> out);
    void vram_write_trapped(std::uint64_t offset, std::span<const std::byte> data);
    /// Moves the mapping out, for tests of a client that keeps it after closing the device.
    [[nodiscard]] Mapping take_vram() { return std::move(vram_); }
    [[nodiscard]] std::uint64_t aperture_bytes() const { return aperture_bytes_; }

    [[nodiscard]] int irq_fd() const { return irq_.get(); }
    [[nodiscard]] Connection& connection() { return connection_; }
    [[nodiscard]] GuestMemory& ram() { return ram_; }
    [[nodiscard]] Trace& trace() { return trace_; }

private:
    void enable_pci();
    void map_ram(Sealing sealing);

    Connection connection_;
    GuestMemory& ram_;
    Trace trace_;
    UniqueFd irq_;
    Mapping vram_;
    std::uint64_t aperture_bytes_ = 0;
};

}  // namespace vgpu::test
