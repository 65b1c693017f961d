// SPDX-License-Identifier: MIT
//
// Engine: one SDMA v4 copy engine of one VF. It serves the kernel's ring (SDMAn_GFX_* registers)
// and up to two user queues (mapped with an SDMA MQD), in turns. step() does bounded work and may
// stop in the middle of any packet: State holds position, progress and waits, so that a queue can
// be parked, saved and continued bit for bit.
//
//   ring (bytes, 64-bit monotonic) --INDIRECT--> IB --INDIRECT--> IB      (two levels, not more)
//   head packet: done | in progress | waiting (POLL_REGMEM, SEM, ATOMIC loop) | starved (the rest
//   of the packet is not published yet) | halted (fault, bad packet)
//
// A packet that waits suspends only its queue. A fault or a bad packet halts a user queue until it
// is unmapped, and the kernel's ring until the driver disables and enables it. User queues use
// their own VMID for everything and reach no register.
//
// Called with the VF's lock held: by the workers of cp::Engine, by the command processor (map,
// unmap), by the poller, and by register or doorbell writes.
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

/// The user queue to map: the values of MAP_QUEUES, which the command processor fills in. The MQD
/// holds the rest.
struct MapRequest {
    GpuVa mqd{};  ///< in VMID 0
    DoorbellIndex doorbell{};
    GpuVa write_pointer{};  ///< wptr poll address in `vmid`; 0: use the MQD's wptr
    Vmid vmid{};
    std::uint16_t pasid = 0;
};

/// Sources (Linux 6.12): packets amdgpu/vega10_sdma_pkt_open.h, registers amdgpu/sdma_v4_0.c, MQD
/// include/v9_structs.h (v9_sdma_mqd).
class Engine final : public PacketSource {
public:
    static constexpr unsigned kQueues = 1 + SDMA_USER_QUEUES;  ///< 0 is the kernel's ring
    static constexpr unsigned kIbDepth = 2;
    static constexpr unsigned kMaxRingLog2 = 24;  ///< log2 of the dwords of the largest ring
    static constexpr unsigned kMaxPacketDwords = 16;

    /// Called with the VF's lock held.
    struct Hooks {
        std::function<void(const ih_iv_entry&)> raise;
        std::function<void(const mem::VmFault&)> fault;
        /// The port of a VMID on this engine's hub.
        std::function<mem::Port&(Vmid)> port;
    };

    /// The condition that the head packet of a queue waits for.
    enum class WaitKind : std::uint8_t {
        None,
        Memory,    ///< `width` bytes at `address` in `vmid`
        Register,  ///< register `address`
        Retry,     ///< no event; every step() tries the packet again and counts the try
        MoreData,  ///< a write pointer other than `address`
    };
    /// A wait. A wait for memory or a register is over when compare(function, value & mask,
    /// reference) is true.
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
        std::uint32_t vmid = 0;      ///< VMID of `address` and of all addresses in the packets
        std::uint32_t reserved = 0;
    };
    /// The kernel's ring, which follows its registers, or a user queue, which is all zero while it
    /// is not mapped. Trivially copyable (Saved, block.h).
    struct Queue {
        std::uint32_t is_mapped = 0;
        std::uint32_t is_halted = 0;
        std::uint64_t base = 0;
        std::uint64_t read_pointer = 0;    ///< bytes
        std::uint64_t write_pointer = 0;   ///< bytes
        std::uint64_t reported = 0;        ///< read pointer last written back
        std::uint64_t report_address = 0;  ///< 0: not written back
        std::uint64_t mqd = 0;
        std::uint32_t ring_log2 = 0;  ///< log2 of the dwords of the ring
        std::uint32_t doorbell = 0;
        std::uint32_t has_doorbell = 0;
        std::uint16_t pasid = 0;
        std::uint8_t vmid = 0;
        std::uint8_t ib_depth = 0;
        std::array<Ib, kIbDepth> ibs{};
        std::uint64_t progress = 0;  ///< units done of the head packet
        std::uint32_t skip = 0;      ///< dwords to pass over (NOP data, COND_EXE)
        std::uint32_t polls = 0;     ///< unsuccessful polls of the head packet
        Wait wait;
    };
    /// All state that outlives a step().
    struct State {
        std::array<Queue, kQueues> queues{};
        std::uint32_t next_queue = 0;
        std::uint32_t reserved = 0;
        std::uint64_t time_offset = 0;  ///< set by TIMESTAMP_SET; added to the GPU clock
        std::uint64_t packets = 0;
        std::uint64_t bytes = 0;
        std::uint64_t bad_packets = 0;
        std::uint64_t faults = 0;
    };

    /// Claims the SDMAn_GFX_* registers of engine 0 or 1. Both references outlive the engine.
    Engine(unsigned index, regs::RegisterFile& regs, const Clock& clock, Hooks hooks);

    /// Maps a user queue. True also if the queue of this MQD is mapped already. False if no slot is
    /// free, or if the VMID or the MQD is unusable.
    [[nodiscard]] bool map(const MapRequest& request);
    /// Unmaps the user queue with that doorbell; false if none. Saves the queue's position in its
    /// MQD, from which the next map() continues. If the MQD cannot be written, only State::faults
    /// records the failure.
    bool unmap(DoorbellIndex doorbell);

    /// Handles a doorbell; `value` is the new write pointer in bytes. False if the doorbell belongs
    /// to no queue of this engine.
    bool doorbell(DoorbellIndex index, std::uint64_t value);

    /// Tries the queues in turn until one makes progress; the next call starts after that queue.
    StepResult step(Budget budget);
    StepResult step() override { return step(Budget{}); }
    [[nodiscard]] bool has_work() override;
    [[nodiscard]] bool needs_polling() const override;

    [[nodiscard]] const State& state() const { return state_; }

    void reset();
    void drain() {}  ///< nothing is in flight between two calls of step()
    void save(Writer& out) const;
    /// EPROTO if the stream is truncated or a queue has a value that no queue can have; the engine
    /// is then reset.
    [[nodiscard]] Result<> load(Reader& in);

private:
    /// The outcome of the head packet; finish_packet() acts on it.
    enum class Outcome : std::uint8_t {
        Done,
        Partial,  ///< budget used up; `progress` holds how far
        Blocked,  ///< `wait` holds the condition
        Starved,  ///< the ring ends before the packet does
        Fault,
        Bad,
    };
    using Handler = Outcome (Engine::*)();
    struct Row;
    /// nullptr if there is no such packet, which halts the queue.
    [[nodiscard]] static const Row* find_row(std::uint32_t header);

    // Registers (engine.cpp). Parameters name the register of engine 0; reg() returns the index of
    // the same register of this engine.
    [[nodiscard]] RegisterIndex reg(std::uint32_t engine0_register) const;
    [[nodiscard]] std::uint32_t get(std::uint32_t engine0_register) const;
    [[nodiscard]] std::uint64_t get_pair(std::uint32_t low, std::uint32_t high) const;
    void claim_registers();
    void on_ring_control();
    void on_ring_pointers();
    void configure_kernel_ring();
    void show_read_pointer();
    [[nodiscard]] bool polls_write_pointer() const;
    void poll_write_pointer();

    // queues (engine.cpp)
    [[nodiscard]] bool is_halted() const;
    [[nodiscard]] bool is_active(const Queue& queue) const;
    [[nodiscard]] bool is_wait_over(const Queue& queue);
    [[nodiscard]] static std::uint64_t pending_dwords(const Queue& queue);
    /// Sets queue_ and executes packets while the budget lasts.
    bool run_queue(Queue& queue);
    [[nodiscard]] Outcome run_packet();
    [[nodiscard]] Outcome skip_dwords();
    void finish_packet(Outcome outcome);
    void report_read_pointer();
    void save_position(const Queue& queue);
    static void load_position(Queue& queue, std::span<const std::uint32_t> mqd);

    // the stream of the current queue: its ring or its innermost IB
    [[nodiscard]] std::uint64_t available() const;
    /// The outcome of a packet that ends outside its stream.
    [[nodiscard]] Outcome truncation_outcome() const;
    [[nodiscard]] bool fetch(std::uint64_t first, std::span<std::uint32_t> out);
    void advance(std::uint64_t dwords);
    [[nodiscard]] Vmid vmid() const;
    [[nodiscard]] mem::Port& port() { return hooks_.port(vmid()); }
    /// True for the kernel's own stream, which may touch registers and choose VMIDs.
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
    /// Copies up to a page border of either side; returns the bytes copied, 0 on a fault.
    [[nodiscard]] std::uint64_t copy_piece(std::uint64_t to, std::uint64_t from,
                                           std::uint64_t bytes);
    /// The number of units to do next: what is left of `total`, at most `limit` and at most what
    /// the budget allows.
    [[nodiscard]] std::uint64_t share(std::uint64_t total, std::uint64_t unit_bytes,
                                      std::uint64_t limit) const;
    /// Counts units that are done: in the packet's progress, in the statistics and in the budget.
    void account(std::uint64_t units, std::uint64_t unit_bytes);

    [[nodiscard]] std::uint64_t pair(unsigned dword) const;

    const unsigned index_;
    regs::RegisterFile& regs_;
    const Clock& clock_;
    Hooks hooks_;
    State state_;

    // during one step(); queue_ is the queue that run_queue() runs
    Queue* queue_ = nullptr;
    Budget budget_;
    std::array<std::uint32_t, kMaxPacketDwords> packet_{};
    std::uint64_t length_ = 0;  // dwords of the packet with its payload
    Ib call_;                   // the IB that the packet entered; 0 dwords if none
};

}  // namespace vgpu::softgpu::sdma
