// SPDX-License-Identifier: MIT
//
// Vsec: the registers of the PF's GPU-IOV capability (hw/gpuiov.h) after its 8-byte header. They
// are interrupt enable and status, the HVVM mailbox bits, framebuffer slices, and the GFX scheduler
// block, whose command dword goes to the WorldSwitch. Bytes that only software uses are plain
// storage.
//
// An interrupt sets a bit in INTR_STATUS, which stays set until the PF writes 1 to it. If
// INTR_ENABLE has the bit, the bit's MSI-X vector is raised; the same happens when the PF enables a
// bit that is set already.
// HVVM_MBOX1 holds two bits per VF. VALID is set while a message of the VF waits: until the PF
// acknowledges or the VF withdraws the message. ACK is set when the VF has taken the PF's message;
// the PF writes 1 to clear it.
//
// Masks with one bit per VF start with VF1 = bit 0, like GPUIOV_FCN_VF.
//
// Any thread may call interrupt() and the mailbox functions, with any lock held. The io thread
// makes all other calls.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>

#include "pf-driver/hw/gpuiov.h"
#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/base/units.h"
#include "pf-driver/softgpu/iov/world_switch.h"

namespace vgpu::softgpu::iov {

/// The bit of a VF in the masks of the capability and of WAKE_ENABLE.
constexpr std::uint32_t vf_bit(VfId vf) {
    return 1u << (raw(vf) - 1u);
}

/// Offsets and commands are those of AMD's host driver (amd/MxGPU-Virtualization, libgv
/// mi300_gpuiov.h), with the differences that hw/gpuiov.h marks "vgpu only".
class Vsec {
public:
    /// Called on the io thread without any lock, except raise.
    struct Hooks {
        /// Any thread, any lock held. There is one MSI-X vector for world switches, and one for
        /// mailboxes and resets.
        std::function<void(gpuiov_vector)> raise;
        std::function<std::uint32_t()> busy_vfs;  ///< vf_bit() of every VF that has work
        std::function<void()> reset_device;       ///< GPUIOV_RESET_DEVICE was written
        std::function<bool()> is_resetting;       ///< the value that RESET_CONTROL shows
    };

    Vsec(Bytes vram, WorldSwitch& scheduler, Hooks hooks);
    Vsec(const Vsec&) = delete;
    Vsec& operator=(const Vsec&) = delete;

    /// `offset` counts bytes from the capability's start; bytes beyond its end read 0. Any size and
    /// alignment; each dword is read once.
    void read(std::uint32_t offset, std::span<std::byte> out) const;
    /// Bytes that are not written keep their value, because registers of 8 and 16 bits share
    /// dwords. A command executes when its EXECUTE bit is among the bytes written.
    void write(std::uint32_t offset, std::span<const std::byte> data);

    /// `bits` are GPUIOV_INTR_*. Raises the vector of an enabled bit for every event, even if the
    /// bit is still pending.
    void interrupt(std::uint32_t bits);
    void mailbox_valid(VfId vf);         ///< also raises HVVM_MBOX_VALID
    void mailbox_withdrawn(VfId vf);     ///< the PF acknowledged the message, or the VF withdrew it
    void mailbox_acknowledged(VfId vf);  ///< also raises HVVM_MBOX_ACK

    /// Called when the PF's client leaves or resets the PF, because no driver listens any more.
    /// Bits of INTR_STATUS stay set.
    void disable_interrupts() { enable_ = 0; }

private:
    static constexpr std::size_t kDwords = GPUIOV_VSEC_LENGTH / sizeof(std::uint32_t);

    [[nodiscard]] std::uint32_t read_dword(std::uint32_t offset) const;
    void write_dword(std::uint32_t offset, std::uint32_t value, std::uint32_t mask);
    void write_enable(std::uint32_t value, std::uint32_t mask);
    void deliver(std::uint32_t bits);

    const Bytes vram_;
    WorldSwitch& scheduler_;
    Hooks hooks_;
    /// Values of the bytes without behaviour; read_dword() computes all other bytes.
    std::array<std::uint32_t, kDwords> storage_{};  // io thread
    std::atomic<std::uint32_t> status_{0};
    std::atomic<std::uint32_t> enable_{0};
    std::atomic<std::uint32_t> mailbox_{0};
};

}  // namespace vgpu::softgpu::iov
