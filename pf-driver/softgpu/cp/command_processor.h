// SPDX-License-Identifier: MIT
//
// CommandProcessor: the command processor (CP) of one VF. It has the gfx ring and 64 hardware queue
// descriptors (HQDs) with PM4 or AQL packets, the scheduler that maps user queues from run lists,
// and the kernels that these queues have in flight. step() executes packets, a bounded amount at a
// time. take_group() leases the work-groups of kernels to the engine's workers; release() returns
// them.
//
// The VF lock is held for every call. Work-groups run outside the lock, between take_group() and
// release(). All state of a group is in its Workgroup, so the command processor may stop, save or
// drop the group at any instruction.
//
// A guest's mistake halts its queue or ends its run list. The command processor counts the mistake
// and reports it to the guest by an interrupt vector or the queue's inactive signal. A halted queue
// still obeys UNMAP_QUEUES. No action of a guest can make a call fail, throw or run without bound.
//
// Called by: regs::RegisterFile (claims), GpuVf (doorbells, save, load, has_work), cp::Engine.
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

/// Counts since the last reset; part of the state.
struct Counters {
    /// Retired instructions; an instruction of a wave counts once, not once per lane.
    std::uint64_t wave_instructions = 0;
    /// Illegal instructions that waves met, also those that a trap handler handled.
    std::uint64_t illegal_instructions = 0;
    /// Memory faults of queues and waves, also those that a trap handler handled.
    std::uint64_t faults = 0;
    /// Packets refused, and kernels that an illegal instruction or a trap ended.
    std::uint64_t bad_packets = 0;
    std::uint64_t packets = 0;     ///< packets completed
    std::uint64_t dispatches = 0;  ///< kernels completed
    std::uint64_t workgroups = 0;  ///< work-groups completed
};

/// A work-group leased to a worker, with everything that the worker needs of the VF. Valid until
/// release().
struct GroupLease {
    /// Names the lease in release(); opaque to the worker.
    ResidentGroup* resident = nullptr;
    isa::Workgroup* group = nullptr;
    /// Reads and writes memory in the group's VMID. Belongs to this worker alone.
    mem::Port* port = nullptr;
    /// Decoded code of the group's VMID. Belongs to this worker alone.
    isa::DecodeCache* cache = nullptr;
    isa::Apertures apertures;
    isa::TrapHandler trap;
    isa::GlobalWaveSync* wave_sync = nullptr;      ///< belongs to the process; threads share it
    const isa::AddressWatches* watches = nullptr;  ///< belongs to the VF; threads share it
    Vmid vmid{};
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
        std::uint32_t compute_units = 8;
        std::uint32_t workers = 1;  ///< number of worker indices of take_group()
        /// Memory for translated code; outlives the command processor. nullptr: waves are
        /// interpreted.
        isa::CodeMemory* code = nullptr;
        /// Times that a block is interpreted before it is translated; tests use fewer.
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
    // Call these functions only while no group is leased: the engine is parked, or has never run
    // this VF.

    /// Returns to the state after power-on. Also clears the counters, whose sums GpuVf keeps.
    void reset();
    /// Only asserts that no group is leased, which the parked engine ensures.
    void drain();
    /// Saves the counters, the queues, the scheduler, and the dispatches with all their waves.
    /// RegisterFile saves the registers.
    void save(Writer& out) const;
    /// Restores what save() wrote. EPROTO if the stream cannot come from save(); then the CP is in
    /// its reset state. Checks all indices, phases and sizes, because the stream may have been
    /// in a file.
    [[nodiscard]] Result<> load(Reader& in);
    /// In true-copy mode, called after save(). Overwrites the state of queues and scheduler with
    /// invalid values and drops the kernels. Only load() or reset() may follow.
    void poison();

    // --- packets -----------------------------------------------------------------------------
    /// Handles a write to an enabled doorbell of this VF. Ignores the write if no mapped queue
    /// listens to the doorbell.
    void doorbell(DoorbellIndex index, std::uint64_t value, DoorbellWidth width);
    /// True if `index` is a doorbell that a mapped queue listens to.
    [[nodiscard]] bool owns_doorbell(DoorbellIndex index) const;

    [[nodiscard]] StepResult step() override;
    [[nodiscard]] bool has_work() override;
    [[nodiscard]] bool needs_polling() const override;

    // --- work-groups (cp::Engine) ------------------------------------------------------------
    /// Leases a group to worker `worker`, which must read `stop` often while it runs the group;
    /// nullopt if no group can run now.
    [[nodiscard]] std::optional<GroupLease> take_group(std::uint32_t worker,
                                                       std::atomic<bool>& stop);
    /// True if a group could be taken now, so that another worker would find work.
    [[nodiscard]] bool has_groups() const;
    /// Takes a group back, with the result of its run and the messages that it sent.
    void release(const GroupLease& lease, const isa::RunResult& result, const Messages& messages);
    /// True while a group is leased; reset(), save() and load() must not be called then.
    [[nodiscard]] bool has_leased_groups() const;

    /// `vmids` has a bit per VMID: workers drop their decoded code of these VMIDs before their next
    /// block of code. With the VF's lock held; waves may run.
    void invalidate_code(std::uint16_t vmids);

    // --- management --------------------------------------------------------------------------
    /// Sets the compute units that the VF may use (VGPU_VF0_CU_MASK_*); groups that already run
    /// stay.
    void set_compute_units(std::uint64_t mask);
    [[nodiscard]] const Counters& counters() const;

private:
    /// Register claims refer to the Core, so it lives as long as this object and never moves.
    std::unique_ptr<Core> core_;
};

}  // namespace vgpu::softgpu::cp
