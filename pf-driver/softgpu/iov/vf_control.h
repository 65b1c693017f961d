// SPDX-License-Identifier: MIT
//
// VfControl: the operations of the PF on one VF, and the values of the VF that the PF reads.
// PfRegisters and BulkOps call a VfControl. GpuVf implements it over the VF's blocks; tests have a
// fake.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/base/result.h"
#include "pf-driver/softgpu/base/units.h"

namespace vgpu::softgpu::iov {

/// The counters of a VF in the PF's registers. They count since the device started; an FLR does not
/// clear them.
struct VfStatistics {
    /// Time on the engine of all time slices that have ended, each from run() until the last worker
    /// is out.
    std::uint64_t run_ns = 0;
    /// Completed LOADs and INITs.
    std::uint64_t switches = 0;
    /// Retired instructions; an instruction of a wave counts once, not once per lane.
    std::uint64_t wave_instructions = 0;
    /// Doorbells that were latched because they rang while the VF was off the engine.
    std::uint64_t doorbells_latched = 0;
    /// GPUVM faults reported to the guest, both hubs.
    std::uint64_t faults = 0;
    /// Refused packets of CP, copy engines and encoders.
    std::uint64_t bad_packets = 0;
    /// BAR0 accesses outside VRAM or behind a shut gate, refused registers (MMIO and RLCG), dropped
    /// doorbells.
    std::uint64_t bad_accesses = 0;
    /// Waves that met an illegal instruction. Each ends its kernel, unless the guest's trap handler
    /// handles it.
    std::uint64_t illegal_instructions = 0;
};

/// Pointer: SAVE and LOAD leave the VF's blocks in place. TrueCopy: SAVE turns the blocks into a
/// stream and poisons the blocks, so that tests find state that a block does not save
/// (docs/world-switch.md).
enum class SwitchMode : std::uint8_t { Pointer, TrueCopy };

/// Called without the VF lock: by the io thread, or by the op thread for bulk operations.
class VfControl {
public:
    virtual ~VfControl() = default;

    /// Replaces the VF's VRAM; after an error the VF has no VRAM. Waits until no engine holds an
    /// old translation.
    [[nodiscard]] virtual Result<> commit_vram(DeviceOffset root, Bytes size) = 0;
    /// Takes the VF's VRAM away and, if the VF had VRAM, disconnects its client.
    virtual void release_vram() = 0;

    // registers of the VF's bank; io thread
    /// Enables `count` doorbell pages of 4 KiB. `first` is the number of the first page; page 0
    /// begins at the start of BAR2.
    virtual void set_doorbell_pages(std::uint32_t first, std::uint32_t count) = 0;
    /// Bit per CU of the device. 0 leaves the VF one CU, because its kernels could never end
    /// without a CU.
    virtual void set_cu_mask(std::uint64_t mask) = 0;
    /// Length of a time slice on the engine, from the next RUN on; 0: no limit.
    virtual void set_quantum(std::uint32_t quantum_us) = 0;
    /// `gates` has the fields of VGPU_GATES, in force on return. While reset_flags() shows
    /// FLR_PENDING, DOORBELL_EN and REGWR_EN stay shut.
    virtual void set_gates(std::uint32_t gates) = 0;
    [[nodiscard]] virtual std::uint32_t gates() const = 0;
    /// Starts an FLR; reset_flags() shows FLR until the reset is done. An FLR that a planned fault
    /// loses is never done.
    virtual void request_flr() = 0;
    /// Clears FLR_PENDING: the PF has seen that a client reset the VF.
    virtual void acknowledge_flr() = 0;
    [[nodiscard]] virtual std::uint32_t reset_flags() const = 0;  ///< VGPU_RESET
    [[nodiscard]] virtual std::uint32_t status() = 0;             ///< VGPU_STATUS
    [[nodiscard]] virtual VfStatistics statistics() = 0;
    /// The PF's view of a mailbox register (Mailbox).
    [[nodiscard]] virtual std::uint32_t mailbox_read(RegisterIndex index) = 0;
    virtual void mailbox_write(RegisterIndex index, std::uint32_t value) = 0;

    // bulk operations; op thread
    /// read_vram() and write_vram() return false if a byte is beyond the VF's VRAM. Such bytes read
    /// all ones, and writes to them are dropped.
    [[nodiscard]] virtual bool read_vram(VfOffset offset, std::span<std::byte> out) = 0;
    [[nodiscard]] virtual bool write_vram(VfOffset offset, std::span<const std::byte> data) = 0;
    /// Takes the VF off the engine and returns it to the state after power-on, for a new owner.
    /// VRAM and the values that the PF programmed stay.
    virtual Result<> scrub_state() = 0;
    /// EBUSY while the VF runs, is in a step of a world switch, or is stalled.
    [[nodiscard]] virtual Result<std::vector<std::byte>> save_state() = 0;
    [[nodiscard]] virtual Result<> load_state(std::span<const std::byte> stream) = 0;
};

/// All VFs of a device, VF 1 first.
struct VfControls {
    std::vector<VfControl*> all;

    [[nodiscard]] std::size_t count() const { return all.size(); }
    [[nodiscard]] VfControl& operator[](VfId vf) const { return *all[raw(vf) - 1u]; }
};

}  // namespace vgpu::softgpu::iov
