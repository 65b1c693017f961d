// SPDX-License-Identifier: MIT
//
// Engine: one SDMA v4 copy engine of one VF. It serves the kernel's ring (SDMAn_GFX_* registers)
// and up to two user queues (mapped with an SDMA MQD) in turn. step() does bounded work and may
// stop in the middle of a packet. State holds position, progress and waits, so that a queue can be
// parked, saved and continued at the same point.
//
//   ring (64-bit monotonic byte pointers) --INDIRECT--> IB --INDIRECT--> IB  (at most two levels)
//   first packet of a queue: done | in progress | waiting (POLL_REGMEM, SEM, ATOMIC loop) | starved
//   (the write pointer does not include the whole packet yet) | queue halted (fault, bad packet)
//
// A packet that waits suspends only its queue. A fault or a bad packet halts its queue: a user
// queue until it is unmapped, the kernel's ring until the driver disables and enables the ring. The
// packets of a user queue use the queue's VMID for every access and cannot access registers.
//
// Called with the VF's lock held: by the workers of cp::Engine, by the command processor (map,
// unmap), by the poller (gpu.h), and by register or doorbell writes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>

#include "pf-driver/hw/ih.h"
#include "pf-driver/hw/sdma.h"
#include "pf-driver/softgpu/base/block.h"
#include "pf-driver/softgpu/base/clock.h"
#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/base/packet_source.h"
#include "pf-driver/softgpu/mem/gpuvm.h"
#include "pf-driver/softgpu/mem/port.h"
#include "pf-driver/softgpu/regs/register_file.h"

namespace vgpu::softgpu::sdma {

/// The user queue to map, from the PM4 packet MAP_QUEUES; the MQD holds all other values.
struct MapRequest {
    GpuVa mqd{};  ///< in VMID 0
    DoorbellIndex doorbell{};
    GpuVa write_pointer{};  ///< wptr poll address in `vmid`; 0 or unreadable: use the MQD's wptr
    Vmid vmid{};
    std::uint16_t pasid = 0;
};

/// See the top of this file. Sources (Linux 6.12): packets amdgpu/vega10_sdma_pkt_open.h, registers
/// amdgpu/sdma_v4_0.c, MQD include/v9_structs.h (v9_sdma_mqd).
class Engine final : public PacketSource {
public:
    static constexpr unsigned kQueues = 1 + SDMA_USER_QUEUES;  ///< 0 is the kernel's ring
    static constexpr unsigned kIbDepth = 2;
    static constexpr unsigned kMaxRingLog2 = 24;  ///< log2 of the dwords of the largest ring
    static constexpr unsigned kMaxPacketDwords = 16;

    /// The engine's calls to other blocks of the VF. The VF's lock is held during a call.
    struct Hooks {
        std::function<void(const ih_iv_entry&)> raise;
        std::function<void(const mem::VmFault&)> fault;
        /// The port of a VMID on this engine's hub.
        std::function<mem::Port&(Vmid)> port;
    };

    /// The condition for which the first packet of a queue waits.
    enum class WaitKind : std::uint8_t {
        None,
        Memory,    ///< `width` bytes at `address` in `vmid`
        Register,  ///< register `address`, a dword offset in BAR5
        Retry,     ///< no condition: every step() executes the packet again and counts the poll
        MoreData,  ///< the write pointer differs from `address`, its value when the wait began
    };
    /// A wait. A wait for memory or a register is over when compare(function, value & mask,
    /// reference) is true (compare.h), or when the memory cannot be read.
    struct Wait {
        WaitKind kind = WaitKind::None;
        std::uint8_t function = 0;
        std::uint8_t vmid = 0;
        std::uint8_t width = 0;
        std::uint32_t reserved = 0;
        std::uint64_t reference = 0;
        std::uint64_t mask = 0;
        std::uint64_t address = 0;
    };
    /// An IB that is being executed.
    struct Ib {
        std::uint64_t address = 0;
        std::uint32_t dwords = 0;    ///< size
        std::uint32_t position = 0;  ///< dword of the next packet
        /// VMID of `address` and, unless a packet names another VMID, of the addresses in packets.
        std::uint32_t vmid = 0;
        std::uint32_t reserved = 0;
    };
    /// The kernel's ring or a user queue. The ring follows its registers; a user queue that is not
    /// mapped is all zero. Trivially copyable (Saved, block.h).
    struct Queue {
        std::uint32_t is_mapped = 0;  ///< the kernel's ring: 1 if enabled
        std::uint32_t is_halted = 0;
        std::uint64_t base = 0;            ///< address of the ring in `vmid`
        std::uint64_t read_pointer = 0;    ///< bytes
        std::uint64_t write_pointer = 0;   ///< bytes
        std::uint64_t reported = 0;        ///< `read_pointer` at the last report, or when mapped
        std::uint64_t report_address = 0;  ///< where to write the read pointer; 0: nowhere
        std::uint64_t mqd = 0;             ///< address in VMID 0; 0: the kernel's ring
        std::uint32_t ring_log2 = 0;       ///< log2 of the dwords of the ring
        std::uint32_t doorbell = 0;        ///< dword offset in BAR2
        std::uint32_t has_doorbell = 0;
        std::uint16_t pasid = 0;
        std::uint8_t vmid = 0;
        std::uint8_t ib_depth = 0;  ///< number of entries of `ibs` in use, innermost last
        std::array<Ib, kIbDepth> ibs{};
        std::uint64_t progress = 0;  ///< units of the first packet that are done; see its handler
        std::uint32_t skip = 0;      ///< dwords to skip before the first packet (NOP, COND_EXE)
        std::uint32_t polls = 0;     ///< failed polls of a first packet with a retry count
        Wait wait;
    };
    /// All state that outlives a step(). The counters count since the last reset.
    struct State {
        std::array<Queue, kQueues> queues{};
        std::uint32_t next_queue = 0;  ///< the queue that the next step() tries first
        std::uint32_t reserved = 0;
        std::uint64_t time_offset = 0;  ///< GPU clock ticks; set by TIMESTAMP sub-op 0
        std::uint64_t packets = 0;      ///< completed packets; a completed skip counts as one
        std::uint64_t bytes = 0;        ///< bytes that the packets of transfers.cpp have written
        std::uint64_t bad_packets = 0;
        std::uint64_t faults = 0;
    };

    /// Claims the registers of SDMA engine `index`, 0 or 1. Both references must outlive the
    /// Engine.
    Engine(unsigned index, regs::RegisterFile& regs, const Clock& clock, Hooks hooks);

    /// Maps a user queue. True if the queue is now mapped, or a queue with this MQD already was.
    /// False if both user queues are taken, the VMID is out of range, or the MQD cannot be read or
    /// has an invalid ring size.
    [[nodiscard]] bool map(const MapRequest& request);
    /// Unmaps the user queue with that doorbell; false if none. Saves the queue's position in its
    /// MQD, so that the next map() continues there. If the MQD cannot be written, the position is
    /// lost and State::faults counts the failure.
    bool unmap(DoorbellIndex doorbell);

    /// Handles a doorbell; `value` is the new write pointer in bytes. False if the doorbell belongs
    /// to no queue of this engine.
    bool doorbell(DoorbellIndex index, std::uint64_t value);

    /// Tries the queues in turn until one makes progress; the next call starts after that queue.
    StepResult step(StepBudget budget);
    StepResult step() override { return step(StepBudget{}); }
    [[nodiscard]] bool has_work() override;
    [[nodiscard]] bool needs_polling() const override;

    [[nodiscard]] const State& state() const { return state_; }

    void reset();
    void drain() {}  ///< nothing is in flight between two calls of step()
    void save(Writer& out) const;
    /// EPROTO if the stream is truncated, or an index or size in it is out of range; the engine is
    /// then reset.
    [[nodiscard]] Result<> load(Reader& in);

private:
    /// The outcome of one execution of the first packet; finish_packet() applies it to the queue.
    enum class Outcome : std::uint8_t {
        Done,
        Partial,  ///< the StepBudget is spent; `progress` holds how far
        Blocked,  ///< `wait` holds the condition
        Starved,  ///< the ring does not hold the whole packet or skip yet
        Fault,
        Bad,
    };
    using Handler = Outcome (Engine::*)();
    struct Row;
    /// The row for a packet header; nullptr if there is no such packet: the packet is Bad.
    [[nodiscard]] static const Row* find_row(std::uint32_t header);

    // Registers (engine.cpp). Parameters name the register of engine 0; reg() returns the index of
    // the same register of this engine.
    [[nodiscard]] RegisterIndex reg(std::uint32_t engine0_register) const;
    [[nodiscard]] std::uint32_t get(std::uint32_t engine0_register) const;
    [[nodiscard]] std::uint64_t get_pair(std::uint32_t low, std::uint32_t high) const;
    void claim_registers();
    void on_ring_control();
    void on_read_pointer();
    void on_write_pointer();
    void configure_kernel_ring();
    void show_read_pointer();
    [[nodiscard]] bool polls_write_pointer() const;
    void poll_write_pointer();

    // queues (engine.cpp)
    [[nodiscard]] bool is_halted() const;
    [[nodiscard]] bool is_active(const Queue& queue) const;
    [[nodiscard]] bool is_wait_over(const Queue& queue);
    [[nodiscard]] static std::uint64_t pending_dwords(const Queue& queue);
    /// Executes packets of `queue` until the StepBudget is spent, or the queue waits, halts or is
    /// empty. True if the queue made progress.
    bool run_queue(Queue& queue);
    [[nodiscard]] Outcome run_packet();
    [[nodiscard]] Outcome skip_dwords();
    void finish_packet(Outcome outcome);
    void report_read_pointer();
    void save_position(const Queue& queue);
    static void load_position(Queue& queue, std::span<const std::uint32_t> mqd);

    // the stream of the current queue: its ring or its innermost IB
    [[nodiscard]] std::uint64_t available() const;
    /// The outcome of a packet that is longer than available().
    [[nodiscard]] Outcome truncation_outcome() const;
    /// Reads dwords of the packet, from its dword `first` on; false on a fault.
    [[nodiscard]] bool fetch(std::uint64_t first, std::span<std::uint32_t> out);
    void advance(std::uint64_t dwords);
    [[nodiscard]] Vmid vmid() const;
    [[nodiscard]] mem::Port& port() { return hooks_.port(vmid()); }
    /// True for a stream of the kernel's ring in VMID 0. Its packets may access registers and
    /// choose the VMID of an IB.
    [[nodiscard]] bool is_privileged() const;

    // packets (packets.cpp)
    Outcome nop();
    Outcome indirect();
    Outcome fence();
    Outcome trap();
    Outcome semaphore();
    Outcome poll();
    Outcome poll_hdp_flush();
    Outcome conditional();
    Outcome atomic();
    Outcome set_timestamp();
    Outcome get_timestamp();
    Outcome write_register();
    Outcome pass();  ///< a packet without effect
    [[nodiscard]] Outcome wait_for(const Wait& wait);

    // packets that move data (transfers.cpp)
    Outcome copy_linear();
    Outcome copy_broadcast();
    Outcome copy_window();
    Outcome write_linear();
    Outcome fill();
    Outcome generate_entries();
    /// Copies at most `bytes`, up to the next page boundary of `from` or `to`; returns the number
    /// of bytes copied, 0 on a fault.
    [[nodiscard]] std::uint64_t copy_piece(std::uint64_t to, std::uint64_t from,
                                           std::uint64_t bytes);
    /// The number of units to do next: the rest of `total`, but at most `limit`, and at most what
    /// the StepBudget allows, which is at least 1.
    [[nodiscard]] std::uint64_t next_units(std::uint64_t total, std::uint64_t unit_bytes,
                                           std::uint64_t limit) const;
    /// Counts units that are done: in the packet's progress, in State::bytes and in the StepBudget.
    void account(std::uint64_t units, std::uint64_t unit_bytes);

    /// The 64-bit value with its low half in dword `dword` of the packet and its high half in the
    /// next.
    [[nodiscard]] std::uint64_t pair(unsigned dword) const;

    const unsigned index_;
    regs::RegisterFile& regs_;
    const Clock& clock_;
    Hooks hooks_;
    State state_;

    // valid during one step()
    Queue* queue_ = nullptr;  // the queue that run_queue() executes
    StepBudget budget_;
    std::array<std::uint32_t, kMaxPacketDwords> packet_{};
    std::uint64_t length_ = 0;  // dwords of the packet with its payload, or of a skip
    Ib call_;                   // the IB that the packet calls; 0 dwords if none
};

}  // namespace vgpu::softgpu::sdma
