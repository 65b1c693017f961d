// SPDX-License-Identifier: MIT
//
// Engine: the video blocks of one VF. They are the MMSCH (the blocks' scheduler), which takes an
// init table from memory (init_table.h), and the ring of each encoder. A driver can start the
// blocks and run jobs, but no video is encoded: the Engine checks the lengths of the commands in an
// IB and drops the commands. So a job ends without output, but with fence and interrupt. step()
// does bounded work; State holds position and waits, so that a ring can be parked, saved and
// continued bit for bit.
//
//   off ---- init table ran to its END ----> on, pointers 0 ---- bad packet, fault ----> halted
//    ^            (VCPU stopped: on, but nothing is fetched)                                |
//    +------------------------ next init table that names the encoder ----------------------+
//
// A bad table gets an error response. Each list of the table turns its encoder off first, and only
// a good list turns the encoder on again; a table with a bad header changes nothing. A bad packet
// halts its ring. A bad IB is dropped and the ring continues, because processes write IBs and the
// kernel writes rings. Every such error is counted. Rings and fences are in VMID 0. The kernel
// writes the rings, so their packets may access every register of the VF.
//
// Called with the VF's lock held: by the workers of cp::Engine, by the poller, and by register or
// doorbell writes.
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
        std::function<void(const ih_iv_entry&)> raise;
        /// A fault in the MM hub; pasid is not filled in.
        std::function<void(const mem::VmFault&)> fault;
        /// The port of a VMID on the MM hub.
        std::function<mem::Port&(Vmid)> port;
        /// True while the register write gate is open.
        std::function<bool()> is_gate_open;
    };

    /// The condition that the head packet of a ring waits for.
    enum class WaitKind : std::uint32_t {
        None,
        Register,  ///< (register & mask) == reference
        MoreData,  ///< a write pointer other than `reference`
    };
    struct Wait {
        WaitKind kind = WaitKind::None;
        std::uint32_t reg = 0;
        std::uint32_t mask = 0;
        std::uint32_t reference = 0;
    };
    /// The ring of an encoder. An init table sets the ring up; registers show its pointers.
    struct Ring {
        std::uint32_t is_on = 0;
        std::uint32_t is_halted = 0;
        std::uint64_t base = 0;
        std::uint32_t dwords = 0;
        std::uint32_t read_pointer = 0;   ///< counts dwords; less than `dwords` if the ring is on
        std::uint32_t write_pointer = 0;  ///< counts dwords; less than `dwords` if the ring is on
        std::uint32_t reserved = 0;
        Wait wait;
    };
    /// State of both encoders.
    struct State {
        std::array<Ring, kEncoders.size()> rings{};
        std::uint32_t next_ring = 0;
        std::uint32_t reserved = 0;
        std::uint64_t tables = 0;       ///< how often a list of an init table has started a ring
        std::uint64_t packets = 0;      ///< packets executed
        std::uint64_t jobs = 0;         ///< IBs, including bad IBs
        std::uint64_t bad_packets = 0;  ///< bad packets, tables and IBs
        std::uint64_t faults = 0;
    };

    /// Claims VCE_MMSCH_VF_MAILBOX_HOST and the status registers in `regs`.
    Engine(regs::RegisterFile& regs, Hooks hooks);

    /// Handles a doorbell write. False, and nothing happens, if the doorbell belongs to no ring
    /// that is on. `value` is the write pointer in dwords, taken modulo the size of the ring.
    bool doorbell(DoorbellIndex index, std::uint64_t value);

    /// Executes packets of the first ring that makes progress; the next step begins with the other
    /// ring.
    StepResult step() override;
    [[nodiscard]] bool has_work() override;
    [[nodiscard]] bool needs_polling() const override;

    [[nodiscard]] const State& state() const { return state_; }
    [[nodiscard]] const Ring& ring(Encoder encoder) const {
        return state_.rings[static_cast<std::size_t>(encoder)];
    }

    void reset() { state_ = {}; }
    void drain() {}
    void save(Writer& out) const { out.value(state_); }
    /// EPROTO if the stream is truncated or a ring has a value that no ring can have; the engine is
    /// then reset.
    [[nodiscard]] Result<> load(Reader& in);

private:
    enum class Outcome : std::uint8_t { Done, Blocked, Starved, Fault, Bad };
    using Packet = std::array<std::uint32_t, VIDEO_MAX_PACKET_DWORDS>;
    using Handler = Outcome (Engine::*)(Encoder encoder, const Packet& packet);
    struct PacketRow;

    /// Boots all encoders that the table names; returns the first failure.
    [[nodiscard]] mmsch_response initialise(std::uint32_t request);
    [[nodiscard]] mmsch_response boot(Encoder encoder, std::span<const std::uint32_t> commands);

    [[nodiscard]] Ring& ring_of(Encoder encoder) {
        return state_.rings[static_cast<std::size_t>(encoder)];
    }
    [[nodiscard]] bool is_active(Encoder encoder) const;
    [[nodiscard]] bool is_wait_over(const Ring& ring);
    [[nodiscard]] bool run_ring(Encoder encoder);
    [[nodiscard]] Outcome run_packet(Encoder encoder);
    /// Bad and Fault halt the ring until an init table sets it up again.
    void finish_packet(Encoder encoder, Outcome outcome);
    [[nodiscard]] bool fetch(const Ring& ring, std::span<std::uint32_t> out);
    void advance(Encoder encoder, std::uint32_t dwords);
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
