// SPDX-License-Identifier: MIT
//
// VfControl: the operations of the PF on one VF, and the values of the VF that the PF reads.
// PfRegisters and BulkOps call a VfControl. GpuVf implements VfControl; tests have a fake.
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
    /// Sum of the lengths of all ended time slices. A time slice lasts from Engine::run() until the
    /// last worker has left the VF.
    std::uint64_t run_ns = 0;
    /// Completed LOADs and INITs.
    std::uint64_t switches = 0;
    /// Retired instructions; an instruction of a wave counts once, not once per lane.
    std::uint64_t wave_instructions = 0;
    /// Doorbell writes that were latched because the VF was off the engine.
    std::uint64_t doorbells_latched = 0;
    /// GPUVM faults reported to the guest, of the GFX hub and the MM hub (mem/gpuvm.h).
    std::uint64_t faults = 0;
    /// Refused packets of CP, copy engines and encoders, and the other errors that these blocks
    /// count as bad_packets (cp::Counters, sdma::Engine::State, video::Engine::State).
    std::uint64_t bad_packets = 0;
    /// BAR0 accesses outside the VF's VRAM or while the gate is shut, refused register accesses
    /// (MMIO and RLCG), and dropped doorbell writes.
    std::uint64_t bad_accesses = 0;
    /// Illegal instructions that waves met. Each ends the wave's kernel, unless the guest's trap
    /// handler handles the illegal instruction.
    std::uint64_t illegal_instructions = 0;
};

/// Pointer: SAVE and LOAD leave the VF's blocks in place. TrueCopy: SAVE writes the state of the
/// blocks to a stream, then overwrites this state in the blocks, so that tests find state that a
/// block does not save (docs/world-switch.md).
enum class SwitchMode : std::uint8_t { Pointer, TrueCopy };

/// Called without the VF lock: by the io thread, or by the op thread for bulk operations (gpu.h).
class VfControl {
public:
    virtual ~VfControl() = default;

    /// Replaces the VF's VRAM. `root` is the root of the VF page table. ENOSPC if `size` exceeds
    /// the aperture; errors of mem::VfVram::commit(). After an error the VF has no VRAM. Waits
    /// until no engine holds an old translation.
    [[nodiscard]] virtual Result<> commit_vram(DeviceOffset root, Bytes size) = 0;
    /// Takes the VF's VRAM away. If the VF had VRAM, disconnects the client of the VF's own socket.
    virtual void release_vram() = 0;

    // registers of the VF's bank; io thread
    /// Enables `count` doorbell pages of 4 KiB from page `first` on, and disables all others. Page
    /// 0 begins at the start of BAR2.
    virtual void set_doorbell_pages(std::uint32_t first, std::uint32_t count) = 0;
    /// `mask` has a bit for each CU of the device that the VF may use. With a mask of 0, the VF's
    /// driver sees no CU, but its kernels run on one CU, because they could never end without a CU.
    virtual void set_cu_mask(std::uint64_t mask) = 0;
    /// Length of a time slice on the engine, from the next RUN on; 0: no limit.
    virtual void set_quantum(std::uint32_t quantum_us) = 0;
    /// Opens and shuts gates; `gates` has the fields of VGPU_GATES. The gates are in force on
    /// return. While reset_flags() shows FLR_PENDING, DOORBELL_EN and REGWR_EN stay shut.
    virtual void set_gates(std::uint32_t gates) = 0;
    [[nodiscard]] virtual std::uint32_t gates() const = 0;
    /// Starts an FLR; reset_flags() shows FLR until the reset is done. If an injected fault
    /// (FaultPoint::Flr) drops the FLR, reset_flags() keeps showing FLR.
    virtual void request_flr() = 0;
    /// Clears FLR_PENDING: the PF has seen that a client reset or left the VF.
    virtual void acknowledge_flr() = 0;
    [[nodiscard]] virtual std::uint32_t reset_flags() const = 0;  ///< VGPU_RESET
    [[nodiscard]] virtual std::uint32_t status() = 0;             ///< VGPU_STATUS
    [[nodiscard]] virtual VfStatistics statistics() = 0;
    /// Mailbox::pf_read() and Mailbox::pf_write() of the VF's mailbox.
    [[nodiscard]] virtual std::uint32_t mailbox_read(RegisterIndex index) = 0;
    virtual void mailbox_write(RegisterIndex index, std::uint32_t value) = 0;

    // bulk operations; op thread
    /// read_vram() and write_vram() return false if a byte is beyond the VF's VRAM. Such bytes read
    /// all ones, and writes to them are dropped.
    [[nodiscard]] virtual bool read_vram(VfOffset offset, std::span<std::byte> out) = 0;
    [[nodiscard]] virtual bool write_vram(VfOffset offset, std::span<const std::byte> data) = 0;
    /// Takes the VF off the engine and returns it to the state after power-on, for a new owner.
    /// VRAM, the values that the PF programmed, the configuration space and the counters stay.
    virtual Result<> scrub_state() = 0;
    /// The state of the VF as a stream. EBUSY while the VF runs, is in a step of a world switch, or
    /// is stalled.
    [[nodiscard]] virtual Result<std::vector<std::byte>> save_state() = 0;
    /// Loads a stream of save_state(). EBUSY as save_state(). EPROTO if the stream is invalid; the
    /// VF is then unchanged or reset, never half loaded.
    [[nodiscard]] virtual Result<> load_state(std::span<const std::byte> stream) = 0;
};

/// All VFs of a device, VF 1 first.
struct VfControls {
    std::vector<VfControl*> all;

    [[nodiscard]] std::size_t count() const { return all.size(); }
    /// `vf` must be VF 1 to VF count(), not kPf.
    [[nodiscard]] VfControl& operator[](VfId vf) const { return *all[raw(vf) - 1u]; }
};

}  // namespace vgpu::softgpu::iov
