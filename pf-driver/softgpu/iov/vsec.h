// SPDX-License-Identifier: MIT
//
// Vsec: the registers of the PF's GPU-IOV capability (hw/gpuiov.h) after its 8-byte header. These
// registers are interrupt enable and status, the device reset (RESET_CONTROL), the mailbox bits
// (HVVM_MBOX1), amounts and slices of VRAM, and the GFX scheduler block. Commands of the scheduler
// block go to the WorldSwitch. Bytes that only software uses are plain storage.
//
// An interrupt sets a bit in INTR_STATUS. The bit stays set until the PF writes 1 to it. If
// INTR_ENABLE has the bit, Vsec raises the bit's MSI-X vector. Vsec also raises the vector when the
// PF enables a bit that is set already.
//
// HVVM_MBOX1 holds two bits per VF. VALID is set while a message of the VF waits: until the PF
// acknowledges the message, the VF withdraws it, or a reset clears the mailbox. ACK is set when the
// VF has taken the PF's message; the PF clears ACK by writing 1 to it.
//
// In a mask with one bit per VF, VF 1 is bit 0 (vf_bit()).
//
// Any thread may call interrupt() and the mailbox functions, with any lock held. The io thread
// (gpu.h) makes all other calls.
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

/// The bit of a VF (VF 1: bit 0) in the masks of the capability and of WAKE_ENABLE. `vf` must not
/// be kPf.
constexpr std::uint32_t vf_bit(VfId vf) {
    return 1u << (raw(vf) - 1u);
}

/// Offsets and commands are those of AMD's host driver (amd/MxGPU-Virtualization, libgv
/// mi300_gpuiov.h), except for the rows of hw/gpuiov.h that are marked "vgpu only".
class Vsec {
public:
    /// All hooks except `raise` are called on the io thread without any lock.
    struct Hooks {
        /// Raises an MSI-X vector: one vector is for world switches, the other for mailboxes and
        /// resets. Called on any thread, with any lock held.
        std::function<void(gpuiov_vector)> raise;
        std::function<std::uint32_t()> busy_vfs;  ///< vf_bit() of every VF that has work
        std::function<void()> reset_device;       ///< GPUIOV_RESET_DEVICE was written
        std::function<bool()> is_resetting;       ///< true: RESET_CONTROL reads 1
    };

    /// `vram` is the size of the device's VRAM.
    Vsec(Bytes vram, WorldSwitch& scheduler, Hooks hooks);
    Vsec(const Vsec&) = delete;
    Vsec& operator=(const Vsec&) = delete;

    /// `offset` counts bytes from the start of the capability; bytes beyond its end read 0. Any
    /// size and alignment. The bytes of one dword are from the same instant.
    void read(std::uint32_t offset, std::span<std::byte> out) const;
    /// Any size and alignment. Bytes that are not written keep their value, because registers of 8
    /// and 16 bits share dwords. A command executes when the PF writes its EXECUTE bit as 1.
    void write(std::uint32_t offset, std::span<const std::byte> data);

    /// `bits` are GPUIOV_INTR_*. Raises the vector of each enabled bit at every call, even if the
    /// bit is still set from an earlier call.
    void interrupt(std::uint32_t bits);
    /// Clears `bits` of INTR_STATUS, because their cause has gone.
    void withdraw(std::uint32_t bits) { status_.fetch_and(~bits); }
    void set_mailbox_valid(VfId vf);    ///< the VF sent a message; raises HVVM_MBOX_VALID
    void clear_mailbox_valid(VfId vf);  ///< no message of the VF waits for the PF any more
    void set_mailbox_ack(VfId vf);      ///< the VF took the PF's message; raises HVVM_MBOX_ACK

    /// Clears INTR_ENABLE; the bits of INTR_STATUS stay set. Called when the PF's client leaves and
    /// when the PF is reset, because then no driver handles interrupts.
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
    /// Bytes that only software uses, and the last command, into which a write of single bytes is
    /// merged. read_dword() computes all other bytes. Used by the io thread only.
    std::array<std::uint32_t, kDwords> storage_{};
    std::atomic<std::uint32_t> status_{0};
    std::atomic<std::uint32_t> enable_{0};
    std::atomic<std::uint32_t> mailbox_{0};
};

}  // namespace vgpu::softgpu::iov
