// SPDX-License-Identifier: MIT
//
// Queue: one hardware queue descriptor (HQD) and the state from which the command processor
// continues the queue. The state consists of the banked CP_HQD_* registers as the guest sees them,
// the ring pointers, the indirect buffers (IBs) being executed, and the wait of the head packet
// (the packet to execute next). The gfx ring is the last queue of a VF.
//
//            map                     stop                       nothing in flight
//   Idle ---------> Running -----------------> Stopping -----------------------------> Idle
//            |  ^                                  |  work in flight, area has room     ^
//            v  |                                  v                                    |
//         Restoring                              Saving --------------------------------+
//
// `area` is the queue's context save area (transition.cpp); a map goes through Restoring if the
// area holds a saved context. A Restoring queue may have to wait until other queues' groups end.
// The diagram leaves out some cases. StopMode::Preempt takes a Restoring queue to Idle at once.
// StopMode::Reset takes a Restoring or Saving queue to Stopping. A queue that exceeds the time
// limit of UNMAP_QUEUES returns to Running (unmap.cpp). A MAP_QUEUES outside a run list may replace
// a queue that is still mapped (map_compute() in scheduler.cpp).
//
// A halted queue fetches no packets. The halt ends when the queue is unmapped or mapped again, when
// the driver restarts the gfx ring, or when the guest's runtime (ROCr) has answered the queue's
// request about scratch (aql.h). QueueState is trivially copyable, because save() copies its bytes.
// A Queue is used only with the VF's lock held.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "pf-driver/hw/mqd.h"
#include "pf-driver/hw/pm4.h"
#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/base/ids.h"

namespace vgpu::softgpu::cp {

/// Index of a queue in its VF: the HQDs in order of ME, pipe and queue, then the gfx ring.
enum class QueueId : std::uint8_t {};
inline constexpr unsigned kQueues = CP_HQD_COUNT + 1;
inline constexpr QueueId kGfxQueue{CP_HQD_COUNT};
inline constexpr QueueId kNoQueue{0xff};
inline constexpr std::uint64_t kNoDeadline = ~0ull;

/// The maximum number of AQL packets of one queue in flight; each has a bit in QueueState::done.
/// Also the maximum number of kernels of a PM4 queue in flight.
inline constexpr std::uint32_t kAqlWindow = 32;

/// Phases of the diagram above.
enum class QueuePhase : std::uint8_t { Idle, Running, Stopping, Saving, Restoring };

/// The reason why a mapped queue fetches no packets.
enum class Halt : std::uint8_t {
    None,
    Fault,       ///< memory fault
    BadPacket,   ///< Core::refuse() halted the queue, for example for an invalid packet
    AqlError,    ///< an error that the queue's inactive signal reports
    AqlScratch,  ///< the queue waits for the runtime's answer to a request for scratch
    /// The queue waits for the runtime's answer to a request to take scratch back, or to a request
    /// from before the queue was last mapped.
    AqlReclaim,
};

/// Preempt keeps the work in flight (in the save area, or by running it to its end); Reset drops
/// it.
enum class StopMode : std::uint8_t { Preempt, Reset };

/// The condition that the head packet waits for.
enum class WaitKind : std::uint8_t {
    None,
    Memory,       ///< a 32-bit value in memory fulfils a comparison
    Register,     ///< a register fulfils a comparison
    Dispatches,   ///< all kernels of this queue are complete
    Window,       ///< there is room for another AQL packet in flight
    Signals,      ///< AQL barrier-AND or barrier-OR: the packet's condition is met
    SignalValue,  ///< AQL barrier-value: the signal's value fulfils the packet's condition
    Unmap,        ///< the queues that the packet stops are unmapped, or its time limit has passed
    Valid,        ///< the header of the AQL packet is no longer INVALID
    /// ATOMIC_MEM loop: the value in memory equals the compare value, or, if the operation has an
    /// effect in any case, none: each step executes the packet again.
    Atomic,
    MoreData,  ///< the write pointer changes: the ring holds only a part of the packet
};

/// A wait. The kinds Memory, Register, Atomic and MoreData have their operands in this structure;
/// for the others, is_wait_over() (wait.cpp) reads what it needs, such as the packet or the
/// dispatcher. Trivially copyable, because QueueState contains a Wait.
struct Wait {
    WaitKind kind = WaitKind::None;
    std::uint8_t function = 0;    ///< the `function` of sdma::compare()
    std::uint8_t vmid = 0;        ///< VMID of `address`
    std::uint8_t wide = 0;        ///< 1: the value has 64 bits; 0: 32 bits
    std::uint32_t index = 0;      ///< register, as a dword offset in BAR5
    std::uint64_t address = 0;    ///< address in memory
    std::uint64_t reference = 0;  ///< second operand; MoreData: write pointer when the wait began
    std::uint64_t mask = 0;       ///< bits of the value that are compared
};

/// An indirect buffer that is being executed. INDIRECT_BUFFER calls nest up to PM4_MAX_IB_NESTING.
struct IbFrame {
    std::uint64_t va = 0;
    std::uint32_t size = 0;  ///< dwords
    std::uint32_t next = 0;  ///< dword of the next packet
    /// The VMID of the IB's address and, unless a packet names another VMID, of the addresses in
    /// its packets.
    std::uint32_t vmid = 0;
    std::uint32_t reserved = 0;
};

/// All state of a queue except the stream that is being saved or restored.
struct QueueState {
    /// CP_MQD_BASE_ADDR to CP_HQD_PQ_WPTR_HI, in their order in register space and in the MQD
    /// (Linux 6.12, include/v9_structs.h).
    std::array<std::uint32_t, MQD_HQD_COUNT> hqd{};
    /// COMPUTE_* registers from COMPUTE_DISPATCH_INITIATOR on. Each queue has its own copy; the
    /// values in the register file are not used.
    std::array<std::uint32_t, MQD_SH_COUNT> sh{};
    std::uint32_t done = 0;  ///< AQL: bit i is set if packet rptr + i is complete
    /// Read pointer. PM4: dword in the ring; AQL: index of the oldest packet that has not retired.
    std::uint64_t rptr = 0;
    std::uint64_t next = 0;      ///< AQL: index of the next packet to execute
    std::uint64_t wptr = 0;      ///< write pointer; PM4: dwords; AQL: packets
    std::uint64_t reported = 0;  ///< `rptr` at the last report to memory, or when mapped
    /// PM4: how much of the head packet is done; 0: nothing yet. DMA_DATA counts bytes.
    std::uint64_t progress = 0;
    /// PM4: address of the packet to which `progress` and `is_unmapping` belong.
    std::uint64_t progress_at = 0;
    std::uint64_t indirect_base = 0;  ///< SET_BASE: base of DISPATCH_INDIRECT
    std::array<IbFrame, PM4_MAX_IB_NESTING> frames{};
    Wait wait;
    /// Scheduler queue (a queue with packets that map and unmap other queues, such as KIQ and HIQ):
    /// clock in ns at which the wait of its UNMAP_QUEUES ends, or kNoDeadline. Core::postpone()
    /// moves it.
    std::uint64_t stop_deadline = 0;
    /// AQL: completion signal of the vendor packet whose IB is being executed; 0: none.
    std::uint64_t aql_signal = 0;
    /// AQL: GPU clock (Core::ticks()) when the packet at `next` was first read; 0: not read yet.
    std::uint64_t packet_ticks = 0;
    std::uint16_t pasid = 0;
    std::uint8_t frame_count = 0;  ///< number of IBs being executed; the last is the innermost
    QueuePhase phase = QueuePhase::Idle;
    Halt halt = Halt::None;
    StopMode stop = StopMode::Preempt;  ///< phase Stopping: how the queue is stopped
    /// The scheduler queue that mapped this queue; kNoQueue: a register write did.
    QueueId mapped_by = kNoQueue;
    std::uint8_t queue_type = 0;    ///< QUEUE_TYPE of MAP_QUEUES
    std::uint8_t in_aql_ib = 0;     ///< 1: `frames` belong to the AQL packet at `next`
    std::uint8_t is_unmapping = 0;  ///< scheduler queue: 1 if its UNMAP_QUEUES has begun
    /// The scheduler queue whose packet waits until this queue is unmapped; kNoQueue: none.
    QueueId stopped_by = kNoQueue;
    std::uint8_t is_draining = 0;  ///< 1: Stopping without a save; kernels and IBs run to their end
    std::uint32_t reserved = 0;
};

/// The hardware's numbers for a queue; the gfx ring has 0, 0, 0.
struct QueuePlace {
    std::uint32_t me = 0;
    std::uint32_t pipe = 0;
    std::uint32_t queue = 0;
};

/// One queue of a VF. It never moves, because the dispatcher and packets refer to it.
struct Queue {
    QueueState state;
    /// Saving: the bytes for the save area. Restoring: the bytes read from the save area so far.
    std::vector<std::byte> stream;
    std::uint64_t stream_position = 0;  ///< Saving: number of bytes of `stream` written so far
    QueueId id{};

    [[nodiscard]] std::uint32_t reg(hw_reg which) const { return state.hqd[slot(which)]; }
    void set_reg(hw_reg which, std::uint32_t value) { state.hqd[slot(which)] = value; }
    [[nodiscard]] std::uint64_t reg_pair(hw_reg low) const {
        return join(state.hqd[slot(low)], state.hqd[slot(low) + 1]);
    }
    [[nodiscard]] std::uint32_t sh(hw_reg which) const { return state.sh[sh_slot(which)]; }

    [[nodiscard]] bool is_mapped() const { return state.phase != QueuePhase::Idle; }
    [[nodiscard]] bool is_gfx() const { return id == kGfxQueue; }
    /// CP_HQD_AQL_CONTROL.CONTROL0; false for the gfx ring.
    [[nodiscard]] bool is_aql() const;
    /// CP_HQD_PQ_CONTROL.PRIV_STATE, which only the kernel driver can set; true for the gfx ring.
    [[nodiscard]] bool is_privileged() const;
    [[nodiscard]] Vmid vmid() const;
    [[nodiscard]] GpuVa ring() const;
    /// Size of the ring in dwords: a power of two, 2 to 2^27.
    [[nodiscard]] std::uint64_t ring_dwords() const;
    /// The address to which the CP writes the read pointer; 0: none.
    [[nodiscard]] GpuVa report_address() const;
    /// Address of the MQD in VMID 0 (CP_MQD_BASE_ADDR); 0 if none.
    [[nodiscard]] GpuVa mqd() const;
    /// True if the queue is mapped, its doorbell is enabled, and `index` is this doorbell.
    [[nodiscard]] bool listens_to(DoorbellIndex index) const;
    [[nodiscard]] DoorbellIndex doorbell() const;
    [[nodiscard]] std::uint8_t ring_id() const;  ///< the queue's id in interrupt vectors
    [[nodiscard]] QueuePlace place() const;
    /// COMPUTE_STATIC_THREAD_MGMT_SE0..3: a bit per CU, by shader engine.
    [[nodiscard]] std::array<std::uint32_t, 4> cu_mask() const;

    /// Sets `rptr`, `next`, `wptr` and `reported` from the registers; for activate(), which maps
    /// the queue.
    void load_pointers();
    /// Copies `rptr` and `wptr` to the registers. Called before a register access, and when the
    /// queue is unmapped.
    void store_pointers();
    /// Resets `state`, except the registers (hqd and sh), and frees `stream`.
    void clear_progress();
    /// Empties `stream` and frees its memory.
    void free_stream();

    static std::size_t slot(hw_reg which) {
        return static_cast<std::size_t>(which) - REG_GC_CP_MQD_BASE_ADDR;
    }
    static std::size_t sh_slot(hw_reg which) {
        return static_cast<std::size_t>(which) - REG_GC_COMPUTE_DISPATCH_INITIATOR;
    }
};

}  // namespace vgpu::softgpu::cp
