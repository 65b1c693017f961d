// SPDX-License-Identifier: MIT
//
// VfPanel: what the PF can do to one VF and learn about it, as the PF's registers and bulk
// operations see it. GpuVf implements it over the VF's blocks; tests fake it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/base/result.h"
#include "pf-driver/softgpu/base/units.h"

namespace vgpu::softgpu::iov {

/// What the PF's registers show of a VF. It counts since the device started; an FLR changes nothing
/// here.
struct VfStatistics {
    /// Time on the engine of all stays that have ended, from run to the last worker out.
    std::uint64_t run_ns = 0;
    /// Completed LOADs and INITs.
    std::uint64_t switches = 0;
    /// Retired; one per wave, not per lane.
    std::uint64_t wave_instructions = 0;
    /// Rings that came while the VF was off the engine.
    std::uint64_t doorbells_latched = 0;
    /// GPUVM faults reported to the guest, both hubs.
    std::uint64_t faults = 0;
    /// Refused packets of CP, copy engines and encoders.
    std::uint64_t bad_packets = 0;
    /// Outside VRAM, refused registers (MMIO and RLCG), dropped doorbells.
    std::uint64_t bad_accesses = 0;
    /// Each ends a kernel, unless the guest's trap handler takes it.
    std::uint64_t illegal_instructions = 0;
};

/// Pointer: SAVE and LOAD leave the VF's own blocks where they are. TrueCopy: SAVE makes them a
/// stream and poisons them, which finds state that a block forgot (docs/world-switch.md).
enum class SwitchMode : std::uint8_t { Pointer, TrueCopy };

/// Calls come on the io thread, those of bulk operations on the op thread, without the VF lock.
class VfPanel {
public:
    virtual ~VfPanel() = default;

    /// An error leaves the VF without VRAM. Waits until no engine holds an old translation.
    [[nodiscard]] virtual Result<> commit_vram(DeviceOffset root, Bytes size) = 0;
    /// Hangs up the client that has the VF open.
    virtual void release_vram() = 0;

    // registers of the VF's bank
    /// In 4 KiB pages from the start of BAR2.
    virtual void set_doorbell_pages(std::uint32_t first, std::uint32_t count) = 0;
    /// Bit per CU of the device; 0 leaves the VF one CU, or its kernels could never end.
    virtual void set_cu_mask(std::uint64_t mask) = 0;
    /// Length of a stay on the engine, from the next RUN on; 0: no end.
    virtual void set_quantum(std::uint32_t quantum_us) = 0;
    /// Fields of VGPU_GATES. In force when this returns; while reset_flags() shows FLR_PENDING,
    /// DOORBELL_EN and REGWR_EN stay shut.
    virtual void set_gates(std::uint32_t gates) = 0;
    [[nodiscard]] virtual std::uint32_t gates() const = 0;
    /// Starts an FLR; reset_flags() shows FLR until it is done. A lost one (fault plan) never is.
    virtual void request_flr() = 0;
    /// The PF has seen that a client reset the VF: FLR_PENDING goes.
    virtual void acknowledge_flr() = 0;
    [[nodiscard]] virtual std::uint32_t reset_flags() const = 0;  ///< VGPU_RESET
    [[nodiscard]] virtual std::uint32_t status() = 0;             ///< VGPU_STATUS
    [[nodiscard]] virtual VfStatistics statistics() = 0;
    /// The PF's view of a mailbox register (Mailbox).
    [[nodiscard]] virtual std::uint32_t mailbox_read(RegisterIndex index) = 0;
    virtual void mailbox_write(RegisterIndex index, std::uint32_t value) = 0;

    // bulk operations; op thread
    /// False if a byte is beyond the VF's VRAM; it reads all ones.
    [[nodiscard]] virtual bool read_vram(VfOffset offset, std::span<std::byte> out) = 0;
    [[nodiscard]] virtual bool write_vram(VfOffset offset, std::span<const std::byte> data) = 0;
    /// All of the VF but VRAM back to power-on, off the engine if it is there: for a new owner.
    virtual Result<> scrub_state() = 0;
    /// EBUSY while the VF is on the engine or a step of its switch lasts.
    [[nodiscard]] virtual Result<std::vector<std::byte>> save_state() = 0;
    [[nodiscard]] virtual Result<> load_state(std::span<const std::byte> stream) = 0;
};

/// All VFs of a device, VF 1 first.
struct VfPanels {
    std::vector<VfPanel*> all;

    [[nodiscard]] std::size_t count() const { return all.size(); }
    [[nodiscard]] VfPanel& operator[](VfId vf) const { return *all[raw(vf) - 1u]; }
};

}  // namespace vgpu::softgpu::iov
