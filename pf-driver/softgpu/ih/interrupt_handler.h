// SPDX-License-Identifier: MIT
//
// InterruptHandler (IH): the three interrupt rings of one VF. raise() puts an entry into a ring in
// guest memory, then publishes the write pointer (in the register and, for ring 0 and if enabled,
// in memory), then raises MSI, if enabled. The order guarantees that a guest that sees the
// interrupt sees the entry. All ring state is in the IH_* registers, so a driver can read back a
// new read pointer at once, even while the VF is off the engine.
//
// A full ring with overflow enabled loses its oldest entries and sets RB_OVERFLOW; a full ring with
// overflow disabled drops the new entry. Entries for a disabled or too small ring, or for unmapped
// memory, are dropped and counted. MMIO of a VF cannot write IH_RB_CNTL. The privileged paths
// (register_file.h) can, such as the PSP command PROG_REG. A write of WPTR_OVERFLOW_CLEAR or of the
// read pointer clears RB_OVERFLOW. The read pointer clears the bit because a VF's driver without
// full access cannot write WPTR_OVERFLOW_CLEAR: if the bit stayed set, the driver would read the
// whole ring at every interrupt. All calls are made with the VF's lock held.
#pragma once

#include <cstdint>
#include <functional>

#include "pf-driver/hw/ih.h"
#include "pf-driver/softgpu/base/block.h"
#include "pf-driver/softgpu/base/clock.h"
#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/mem/port.h"
#include "pf-driver/softgpu/mem/system_memory.h"
#include "pf-driver/softgpu/regs/register_file.h"

namespace vgpu::softgpu::ih {

/// The blocks of softgpu put all entries into Main (ring 0); drivers may set up the other two
/// rings.
enum class Ring : std::uint8_t { Main, Ring1, Ring2 };

/// Entry layout, registers and doorbells: Linux 6.12, amdgpu/vega10_ih.c.
class InterruptHandler {
public:
    /// Statistics only. A dropped entry is lost.
    struct State {
        std::uint64_t raised = 0;            ///< entries written to a ring
        std::uint64_t dropped_disabled = 0;  ///< entries for a ring that is off or too small
        std::uint64_t dropped_full = 0;      ///< entries for a full ring without overflow
        std::uint64_t overwritten = 0;       ///< entries that set RB_OVERFLOW
        /// Entries, and write-backs of the write pointer, to memory that cannot be reached.
        std::uint64_t dropped_memory = 0;
    };

    /// `kernel` is a port of VMID 0 for rings in GPUVM, `system` the bus memory for other rings.
    /// `msi` raises the function's interrupt. All references outlive the object. Claims IH_RB_CNTL
    /// and IH_RB_RPTR of the three rings.
    InterruptHandler(regs::RegisterFile& regs, mem::SystemMemory& system, mem::Port& kernel,
                     const Clock& clock, std::function<void()> msi);

    /// Fills in the time stamp and, if the entry has a VMID other than 0 and no PASID, the VMID's
    /// PASID from IH_VMID_0_LUT. Never fails: an entry that cannot be delivered is counted in State
    /// and dropped, as on hardware.
    void raise(ih_iv_entry entry, Ring ring = Ring::Main);

    /// Writes IH_RB_CNTL of ring 0..2 for the PSP command PROG_REG. Ignores other ring numbers.
    void program_control(unsigned ring, std::uint32_t value);

    /// Handles a doorbell: if `index` is an enabled IH doorbell, sets the ring's read pointer to
    /// `value` (bytes); otherwise returns false. The VF may be off the engine.
    bool doorbell(DoorbellIndex index, std::uint32_t value);

    [[nodiscard]] const State& state() const { return state_; }

    void reset() { state_ = {}; }
    void drain() {}
    void save(Writer& out) const { out.value(state_); }
    /// EPROTO if the stream is short.
    [[nodiscard]] Result<> load(Reader& in);

private:
    /// The registers of a ring; read for every entry, because the guest may have moved the ring.
    struct RingView;
    [[nodiscard]] RingView view(Ring ring) const;
    [[nodiscard]] bool write_entry(const RingView& ring, std::uint32_t offset,
                                   const ih_iv_entry& entry);
    void publish(const RingView& ring, std::uint32_t write_pointer);
    [[nodiscard]] bool write_memory(const RingView& ring, std::uint64_t address,
                                    std::span<const std::byte> data);
    void on_read_pointer(Ring ring);
    void on_control(Ring ring, std::uint32_t value);

    regs::RegisterFile& regs_;
    mem::SystemMemory& system_;
    mem::Port& kernel_;
    const Clock& clock_;
    std::function<void()> msi_;
    State state_;
};

}  // namespace vgpu::softgpu::ih
