// SPDX-License-Identifier: MIT
//
// Command processor of one VF: the gfx ring and 64 hardware queue descriptors (HQDs) with PM4 or
// AQL packets, the scheduler that maps user queues from run lists, and the kernels these queues
// have in flight. Packets are executed by step(), a bounded amount at a time; kernels are handed
// out to the engine's workers as work-groups by take_group() and come back with give_back().
//
// The VF lock is held for every call. Work-groups run outside the lock, between take_group() and
// give_back(); all that a group is travels in the Workgroup, so the command processor may stop,
// save or drop it at any instruction.
//
// What a guest gets wrong ends in an interrupt vector, an error code in the queue's inactive
// signal, a halted queue and a counter; a halted queue still obeys UNMAP_QUEUES. Nothing a guest
// does can make a call fail, throw or run without bound.
//
// Called by: regs::RegisterFile (claims), iov/gpu (doorbells, save, load, has_work), cp::Engine.
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
#include "pf-driver/softgpu/regs/register_file.h"

namespace vgpu::softgpu::cp {

struct Core;
struct ResidentGroup;

/// Bytes of a doorbell write.
enum class DoorbellWidth : std::uint8_t { Dword = 4, Qword = 8 };

/// Since reset; part of the state.
struct Counters {
    /// Retired; one per wave.
    std::uint64_t wave_instructions = 0;
    std::uint64_t illegal_instructions = 0;  ///< waves ended by one
    std::uint64_t faults = 0;                ///< memory faults answered to the guest
    std::uint64_t bad_packets = 0;           ///< packets refused
    std::uint64_t packets = 0;
    std::uint64_t dispatches = 0;  ///< kernels completed
    std::uint64_t workgroups = 0;  ///< work-groups completed
};

/// A work-group on loan to a worker. `context` and `group` are valid until give_back().
/// All a worker needs; it looks up nothing else of the VF.
struct GroupLoan {
    /// Names the loan to give_back(); opaque to the worker.
    ResidentGroup* resident = nullptr;
    isa::Workgroup* group = nullptr;
    /// Of the group's VMID and this worker, like `cache`: no other thread uses them.
    mem::Port* port = nullptr;
    isa::DecodeCache* cache = nullptr;
    isa::Apertures apertures;
    isa::TrapHandler trap;
    isa::GlobalWaveSync* wave_sync = nullptr;      ///< of the process; threads share it
    const isa::AddressWatches* watches = nullptr;  ///< of the VF; threads share it
    Vmid vmid{};
};

/// s_sendmsg(MSG_INTERRUPT) of a wave; a number alone is a message of nowhere in particular.
struct Message {
    /// M0 of the wave.
    std::uint32_t payload = 0;
    std::uint32_t hw_id = 0;     ///< HW_ID of the wave
    bool is_privileged = false;  ///< its trap handler sent it

    Message(std::uint32_t data) : payload(data) {}
    Message(const isa::WaveState& sender, std::uint32_t data)
        : payload(data), hw_id(sender.hw_id), is_privileged(sender.is_privileged != 0) {}
};
/// What a group sent while it was on loan.
using Messages = std::vector<Message>;

class CommandProcessor final : public PacketSource {
public:
    /// Constant after build.
    struct Spec {
        VfId vf{1};
        std::uint32_t compute_units = 8;
        std::uint32_t workers = 1;                ///< worker indices of take_group()
        std::uint64_t reference_hz = 27'000'000;  ///< "GPU clock" of packets and s_memrealtime
    };

    /// Claims its registers in `registers`; all four outlive the command processor.
    CommandProcessor(const Spec& spec, regs::RegisterFile& registers, Services& services,
                     const Clock& clock);
    ~CommandProcessor() override;
    CommandProcessor(const CommandProcessor&) = delete;
    CommandProcessor& operator=(const CommandProcessor&) = delete;

    // --- block -------------------------------------------------------------------------------
    // The engine must be parked, or never have run this VF: no group is on loan.
    /// Also the counters; GpuVf keeps their sums.
    void reset();
    /// Nothing to do: with the engine parked there are no loans. It asserts that.
    void drain();
    /// Queues, scheduler, dispatches with all their waves. Register storage is RegisterFile's.
    void save(Writer& out) const;
    /// EPROTO if the stream cannot come from save(): indices, phases and sizes are all checked, as
    /// the stream may have been through a file. The CP is in its reset state then.
    [[nodiscard]] Result<> load(Reader& in);
    /// Overwrites the live state with garbage that is not valid anywhere: after save() in true-copy
    /// mode, only load() or reset() may follow.
    void poison();

    // --- packets -----------------------------------------------------------------------------
    /// A doorbell of this VF that is open and belongs to the CP, or to nobody: ignored if no mapped
    /// queue listens.
    void doorbell(DoorbellIndex index, std::uint64_t value, DoorbellWidth width);
    /// True if `index` is a doorbell that a mapped queue listens to.
    [[nodiscard]] bool owns_doorbell(DoorbellIndex index) const;

    [[nodiscard]] StepResult step() override;
    [[nodiscard]] bool has_work() override;
    [[nodiscard]] bool needs_polling() const override;

    // --- work-groups (cp::Engine) ------------------------------------------------------------
    /// Lends worker `worker` a group to run; it must look at `stop` often. Nothing to run: nullopt.
    [[nodiscard]] std::optional<GroupLoan> take_group(std::uint32_t worker,
                                                      std::atomic<bool>& stop);
    /// A group could be taken now: another worker would find something to do.
    [[nodiscard]] bool has_groups() const;
    /// The group is back, with what happened to it.
    void give_back(const GroupLoan& loan, const isa::RunResult& result, const Messages& messages);
    /// True while a group is on loan.
    /// While it is true, reset(), save() and load() must not be called.
    [[nodiscard]] bool has_loans() const;

    /// Bit per VMID: workers drop what they have decoded of its code before their next block.
    /// With the VF's lock held; waves may be running.
    void invalidate_code(std::uint16_t vmids);

    // --- management --------------------------------------------------------------------------
    /// Compute units the VF may use (VGPU_VF0_CU_MASK_*); groups already running stay.
    void set_compute_units(std::uint64_t mask);
    [[nodiscard]] const Counters& counters() const;

private:
    /// Its address is taken by register claims: it lives as long as this and never moves.
    std::unique_ptr<Core> core_;
};

}  // namespace vgpu::softgpu::cp
