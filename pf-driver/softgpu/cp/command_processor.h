// SPDX-License-Identifier: MIT
//
// CommandProcessor: the command processor (CP) of one VF. It consists of the gfx ring, 64 hardware
// queue descriptors (HQDs) for rings of PM4 or AQL packets, the queue scheduler (scheduler.h),
// which maps user queues from run lists, and the kernels that these queues have in flight. step()
// executes packets, a bounded amount at a time. take_group() leases a work-group (group) of a
// kernel to one of the engine's workers: only this worker uses the group until the worker calls
// release().
//
// The VF lock is held for every call, except counters() while no worker is inside the VF
// (engine.h). Groups run outside the lock, between take_group() and release(). A group stops at an
// instruction boundary, and the state of its waves is in its Workgroup, so the command processor
// can save or drop a group that has not ended.
//
// An invalid packet, a memory fault, an illegal instruction or a trap (except the debug trap) halts
// its queue, unless the wave's trap handler handles the error. An invalid entry of a run list ends
// the list. The command processor counts the error and reports it to the guest by an interrupt
// vector, by the queue's inactive signal (aql.h) or by both. A halted queue still obeys
// UNMAP_QUEUES. No action of a guest can make a call throw or run without bound.
//
// Main callers: regs::RegisterFile (accesses to the registers that the CP claims), GpuVf
// (doorbells, has_work), VfBlocks (reset, save, load), cp::Engine (step, groups).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "pf-driver/softgpu/base/block.h"
#include "pf-driver/softgpu/base/clock.h"
#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/base/packet_source.h"
#include "pf-driver/softgpu/cp/services.h"
#include "pf-driver/softgpu/isa/execute.h"
#include "pf-driver/softgpu/isa/translate/code_memory.h"
#include "pf-driver/softgpu/regs/register_file.h"

namespace vgpu::softgpu::cp {

struct Core;
struct ResidentGroup;

/// The size of a doorbell write in bytes.
enum class DoorbellWidth : std::uint8_t { Dword = 4, Qword = 8 };

/// Counts since the last reset; part of the saved state.
struct Counters {
    /// Retired instructions; an instruction of a wave counts once, not once per lane.
    std::uint64_t wave_instructions = 0;
    /// Illegal instructions in waves, including those that a trap handler handled. The waves of
    /// dropped kernels do not count, here and in `faults`.
    std::uint64_t illegal_instructions = 0;
    /// Memory faults of queues, run lists and waves, including those that a trap handler handled.
    std::uint64_t faults = 0;
    /// Refused packets, run list entries and context save areas, and kernels that an illegal
    /// instruction or a trap ended.
    std::uint64_t bad_packets = 0;
    /// Packets completed, without one-dword fillers and the entries of run lists.
    std::uint64_t packets = 0;
    std::uint64_t dispatches = 0;  ///< kernels completed
    std::uint64_t workgroups = 0;  ///< work-groups completed
};

/// A group leased to a worker, with everything that the worker needs to run the group. Valid until
/// release().
struct GroupLease {
    /// Identifies the lease in release(); opaque to the worker.
    ResidentGroup* resident = nullptr;
    isa::Workgroup* group = nullptr;
    /// Reads and writes memory in the group's VMID. No other worker uses this port.
    mem::Port* port = nullptr;
    /// Decoded code of the group's VMID. No other worker uses this cache.
    isa::DecodeCache* cache = nullptr;
    /// Windows of LDS and scratch in the group's VMID.
    isa::Apertures apertures;
    isa::TrapHandler trap;
    /// GWS of the guest process, shared by all workers; nullptr if the process has no GWS.
    isa::GlobalWaveSync* wave_sync = nullptr;
    const isa::AddressWatches* watches = nullptr;  ///< address watches of the VF
    Vmid vmid{};                                   ///< VMID of the group
};

/// An interrupt message: a wave executed s_sendmsg(MSG_INTERRUPT). `hw_id` stays 0 if the sender is
/// not known.
struct Message {
    /// M0 of the wave.
    std::uint32_t payload = 0;
    std::uint32_t hw_id = 0;     ///< HW_ID of the wave
    bool is_privileged = false;  ///< true if the wave's trap handler sent it

    Message(std::uint32_t data) : payload(data) {}
    Message(const isa::WaveState& sender, std::uint32_t data)
        : payload(data), hw_id(sender.hw_id), is_privileged(sender.is_privileged != 0) {}
};
/// The messages that a group sent while it was leased.
using Messages = std::vector<Message>;

class CommandProcessor final : public PacketSource {
public:
    /// Constant after construction.
    struct Spec {
        VfId vf{1};
        std::uint32_t compute_units = 8;  ///< of the device; set_compute_units() selects the VF's
        std::uint32_t workers = 1;        ///< take_group() takes an index from 0 to workers - 1
        /// Memory for translated code; outlives the command processor. nullptr: waves are
        /// interpreted.
        isa::CodeMemory* code = nullptr;
        /// Number of times that a block of code is interpreted before it is translated.
        std::uint32_t hot_runs = isa::CodeShare::kHotRuns;
    };

    /// Claims its registers in `registers`. `registers`, `services` and `clock` outlive the command
    /// processor.
    CommandProcessor(const Spec& spec, regs::RegisterFile& registers, Services& services,
                     const Clock& clock);
    ~CommandProcessor() override;
    CommandProcessor(const CommandProcessor&) = delete;
    CommandProcessor& operator=(const CommandProcessor&) = delete;

    // --- block -------------------------------------------------------------------------------
    // Call these functions only while no group is leased, for example while the VF is off the
    // engine.

    /// Returns to the state after power-on, except that the CU mask stays. Also clears the
    /// counters; the caller adds them to its own sums before the call.
    void reset();
    /// Only asserts that no group is leased, which the parked engine ensures.
    void drain();
    /// Saves the counters, the queues with their registers, the queue scheduler, and the kernels in
    /// flight with all their waves. RegisterFile saves the other registers.
    void save(Writer& out) const;
    /// Restores the state that save() wrote. EPROTO if the stream is truncated, or if a phase, an
    /// index or a size in the stream is impossible; the CP is then in its reset state. load() does
    /// not trust the stream, which may come from a file.
    [[nodiscard]] Result<> load(Reader& in);
    /// Called after save() in true-copy mode (base/block.h), so that a use of the old state fails
    /// visibly. Overwrites the state of queues and scheduler with invalid values and drops the
    /// kernels. Only load() or reset() may follow.
    void poison();

    // --- packets -----------------------------------------------------------------------------
    /// Handles a write to an enabled doorbell of this VF. `value` is the queue's write pointer in
    /// dwords (PM4) or the index of the last packet (AQL). Ignores the write if no mapped queue
    /// listens to the doorbell.
    void doorbell(DoorbellIndex index, std::uint64_t value, DoorbellWidth width);
    /// True if `index` is a doorbell that a mapped queue listens to.
    [[nodiscard]] bool owns_doorbell(DoorbellIndex index) const;

    [[nodiscard]] StepResult step() override;
    [[nodiscard]] bool has_work() override;
    [[nodiscard]] bool needs_polling() const override;

    // --- time limits -------------------------------------------------------------------------
    // The time limit of UNMAP_QUEUES and the quanta of processes do not include the time for which
    // the VF has work but not the engine. They include the time for which a VF without work is off
    // the engine: otherwise a queue that only waits would never reach its time limit.

    /// The VF is off the engine and has work. Later calls before end_wait() change nothing.
    void begin_wait();
    /// The VF is on the engine again. Does nothing without begin_wait().
    void end_wait();
    /// Moves the ends of the time limits by `ns` (modulo 2^64), after the load of a state that was
    /// saved by another clock or at another time.
    void postpone_time_limits(std::uint64_t ns);

    // --- work-groups (cp::Engine) ------------------------------------------------------------
    /// Leases a group to worker `worker`; nullopt if no group can run now. The CP sets `stop` to
    /// get the group back early, so the worker must read the flag often while it runs the group.
    [[nodiscard]] std::optional<GroupLease> take_group(std::uint32_t worker,
                                                       std::atomic<bool>& stop);
    /// True if take_group() would lease a group now.
    [[nodiscard]] bool has_groups() const;
    /// Takes a group back, with the result of its run and the messages that it sent.
    void release(const GroupLease& lease, const isa::RunResult& result, const Messages& messages);
    /// True while a group is leased.
    [[nodiscard]] bool has_leased_groups() const;

    /// Makes workers drop the decoded code of the VMIDs whose bits are set in `vmids`. A running
    /// wave drops the code before its next block of instructions.
    void invalidate_code(std::uint16_t vmids);

    // --- management --------------------------------------------------------------------------
    /// Sets the compute units that the VF may use: a bit per CU of the device (VGPU_VF0_CU_MASK_*).
    /// A mask that selects no CU counts as CU 0. Groups on other CUs stay until they end.
    void set_compute_units(std::uint64_t mask);
    [[nodiscard]] const Counters& counters() const;

private:
    /// Never moves, because the handlers of the claimed registers refer to the Core.
    std::unique_ptr<Core> core_;
};

}  // namespace vgpu::softgpu::cp
