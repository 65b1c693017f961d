// SPDX-License-Identifier: MIT
//
// Engine: the video blocks of one VF. They are the MMSCH, a scheduler that takes an init table from
// memory (init_table.h), and the ring of each encoder. A driver can start the blocks and submit
// jobs, but no video is encoded. A job is the list of commands in one IB; the Engine checks the
// lengths of the commands and drops the commands. So a job has no output, but the fence and
// interrupt packets after the job have their usual effect. step() does bounded work. State holds
// the position and the wait of each ring, so that a ring can be parked, saved and continued at the
// same point.
//
//   off ---- init table ran to its END ----> on, pointers 0 ---- bad packet, fault ----> halted
//    ^            (while the VCPU is stopped: on, but no packet is fetched)                 |
//    +------------------------ next init table that names the encoder ----------------------+
//
// A bad table gets an error response. If the table cannot be read or its header is bad, the rings
// stay as they are. Each list of a table first turns its encoder's ring off; only a good list turns
// the ring on again. A bad packet halts its ring. After a bad IB the ring continues: processes
// write IBs, but only the kernel writes rings. The Engine counts all these errors. Rings and fences
// are in VMID 0. Packets may access every register of the VF, because only the kernel writes rings.
//
// Called with the VF's lock held: by the workers of cp::Engine, by the poller (gpu.h), and by
// register or doorbell writes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>

#include "pf-driver/hw/ih.h"
#include "pf-driver/hw/mmsch.h"
#include "pf-driver/hw/video.h"
#include "pf-driver/softgpu/base/block.h"
#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/base/packet_source.h"
#include "pf-driver/softgpu/mem/gpuvm.h"
#include "pf-driver/softgpu/mem/port.h"
#include "pf-driver/softgpu/regs/register_file.h"
#include "pf-driver/softgpu/video/encoder.h"

namespace vgpu::softgpu::video {

/// Executes the packets that the stock driver's tests of rings and IBs require.
class Engine final : public PacketSource {
public:
    struct Hooks {
        /// Raises an interrupt.
        std::function<void(const ih_iv_entry&)> raise;
        /// Reports a fault in the MM hub (mem/gpuvm.h); VmFault::pasid is 0, and the hook sets it.
        std::function<void(const mem::VmFault&)> fault;
        /// The port of a VMID on the MM hub.
        std::function<mem::Port&(Vmid)> port;
        /// True while the VF's register write gate is open (full access).
        std::function<bool()> is_gate_open;
    };

    /// The condition for which the first packet of a ring waits.
    enum class WaitKind : std::uint32_t {
        None,
        Register,  ///< (register & mask) == reference
        MoreData,  ///< a write pointer other than `reference`
    };
    struct Wait {
        WaitKind kind = WaitKind::None;
        std::uint32_t reg = 0;  ///< dword offset in BAR5
        std::uint32_t mask = 0;
        std::uint32_t reference = 0;
    };
    /// The ring of an encoder. An init table sets up the ring; registers show its pointers.
    struct Ring {
        std::uint32_t is_on = 0;
        std::uint32_t is_halted = 0;
        std::uint64_t base = 0;           ///< address in VMID 0
        std::uint32_t dwords = 0;         ///< size; 0 if the ring is off
        std::uint32_t read_pointer = 0;   ///< counts dwords; less than `dwords` if the ring is on
        std::uint32_t write_pointer = 0;  ///< counts dwords; less than `dwords` if the ring is on
        std::uint32_t reserved = 0;
        Wait wait;
    };
    /// State of both encoders. The counters count since the last reset.
    struct State {
        std::array<Ring, kEncoders.size()> rings{};
        std::uint32_t next_ring = 0;  ///< the ring that the next step() tries first
        std::uint32_t reserved = 0;
        std::uint64_t ring_starts = 0;  ///< rings started by lists of init tables
        std::uint64_t packets = 0;      ///< packets executed
        std::uint64_t jobs = 0;         ///< IBs, including bad IBs
        std::uint64_t bad_packets = 0;  ///< bad packets, bad IBs, and init requests that failed
        std::uint64_t faults = 0;
    };

    /// Claims VCE_MMSCH_VF_MAILBOX_HOST and the status registers in `regs`.
    Engine(regs::RegisterFile& regs, Hooks hooks);

    /// Handles a doorbell write; `value` is the write pointer in dwords, modulo the size of the
    /// ring. Has no effect and returns false unless the doorbell belongs to a ring that is on.
    bool doorbell(DoorbellIndex index, std::uint64_t value);

    /// Tries the rings in turn until one makes progress; the next call starts after that ring.
    StepResult step() override;
    [[nodiscard]] bool has_work() override;
    [[nodiscard]] bool needs_polling() const override;

    [[nodiscard]] const State& state() const { return state_; }
    [[nodiscard]] const Ring& ring(Encoder encoder) const {
        return state_.rings[static_cast<std::size_t>(encoder)];
    }

    void reset() { state_ = {}; }
    void drain() {}  ///< nothing is in flight between two calls of step()
    void save(Writer& out) const { out.value(state_); }
    /// EPROTO if the stream is truncated, or if an index, a size or a wait in it is invalid; the
    /// engine is then reset.
    [[nodiscard]] Result<> load(Reader& in);

private:
    enum class Outcome : std::uint8_t { Done, Blocked, Starved, Fault, Bad };
    using Packet = std::array<std::uint32_t, VIDEO_MAX_PACKET_DWORDS>;
    using Handler = Outcome (Engine::*)(Encoder encoder, const Packet& packet);
    struct PacketRow;

    /// Executes the init table: calls boot() for all encoders for which the table has a list.
    /// `request` is the value written to MAILBOX_HOST. Returns DONE or the first failure.
    [[nodiscard]] mmsch_response initialise(std::uint32_t request);
    /// Turns the ring of one encoder off, runs the encoder's list and, if the list is good, starts
    /// the ring.
    [[nodiscard]] mmsch_response boot(Encoder encoder, std::span<const std::uint32_t> commands);

    [[nodiscard]] Ring& ring_of(Encoder encoder) {
        return state_.rings[static_cast<std::size_t>(encoder)];
    }
    [[nodiscard]] bool is_active(Encoder encoder) const;
    [[nodiscard]] bool is_wait_over(const Ring& ring);
    [[nodiscard]] bool run_ring(Encoder encoder);
    [[nodiscard]] Outcome run_packet(Encoder encoder);
    /// Applies the outcome. Bad and Fault halt the ring until an init table sets up the ring again.
    void finish_packet(Encoder encoder, Outcome outcome);
    /// Reads from the read pointer on; false on a fault.
    [[nodiscard]] bool fetch(const Ring& ring, std::span<std::uint32_t> out);
    void advance(Encoder encoder, std::uint32_t dwords);
    /// Reports the fault of the VMID's port; OutOfRange if only an indirect access failed (port.h).
    void report_fault(Vmid vmid);

    [[nodiscard]] static const PacketRow* find_row(std::uint32_t op);
    /// A packet without effect.
    Outcome pass(Encoder encoder, const Packet& packet);
    Outcome fence(Encoder encoder, const Packet& packet);
    Outcome trap(Encoder encoder, const Packet& packet);
    Outcome indirect(Encoder encoder, const Packet& packet);
    Outcome write_register(Encoder encoder, const Packet& packet);
    Outcome wait_register(Encoder encoder, const Packet& packet);

    regs::RegisterFile& regs_;
    Hooks hooks_;
    State state_;
};

}  // namespace vgpu::softgpu::video
