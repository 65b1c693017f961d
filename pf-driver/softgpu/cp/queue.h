// SPDX-License-Identifier: MIT
//
// Queue: one hardware queue descriptor (HQD) and the state with which the packet processor
// continues the queue. The state is the banked CP_HQD_* registers as the guest sees them, ring
// pointers, the indirect buffers (IBs) being executed and the wait of the head packet. The gfx ring
// is the last queue of a VF.
//
//            map                     stop                       nothing in flight
//   Idle ---------> Running -----------------> Stopping -----------------------------> Idle
//            |  ^                                  |  waves in flight, save area given  ^
//            v  |                                  v                                    |
//         Restoring                              Saving --------------------------------+
//
// A halted queue fetches nothing. The halt ends when the queue is unmapped, when the driver
// restarts the gfx ring, or when the runtime has answered the queue's request. State is trivially
// copyable. Used only with the VF's lock held.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "pf-driver/hw/mqd.h"
#include "pf-driver/hw/pm4.h"
#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/base/ids.h"

namespace vgpu::softgpu::cp {

/// Index of a queue in its VF: the HQDs by me, pipe and queue, then the gfx ring.
enum class QueueId : std::uint8_t {};
inline constexpr unsigned kQueues = CP_HQD_COUNT + 1;
inline constexpr QueueId kGfxQueue{CP_HQD_COUNT};
inline constexpr QueueId kNoQueue{0xff};

/// The maximum number of AQL packets of one queue in flight; each has a bit in QueueState::done.
inline constexpr std::uint32_t kAqlWindow = 32;

/// Phases of the diagram above.
enum class QueuePhase : std::uint8_t { Idle, Running, Stopping, Saving, Restoring };

/// The reason why a mapped queue fetches nothing.
enum class Halt : std::uint8_t {
    None,
    Fault,       ///< memory fault
    BadPacket,   ///< the stream is invalid
    AqlError,    ///< reported through queue_inactive_signal
    AqlScratch,  ///< the queue asked the runtime for scratch; it continues after the answer
    /// The queue asked the runtime to take scratch back, or was mapped while the runtime still owed
    /// an answer; it continues after the answer.
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
    Signals,      ///< AQL barrier: the signals that the packet names are met
    SignalValue,  ///< AQL barrier-value: the signal's value fulfils the packet's condition
    Unmap,        ///< the queues that UNMAP_QUEUES named are off the hardware
    Valid,        ///< the AQL header is not INVALID any more
    Atomic,       ///< ATOMIC_MEM loop: the value in memory equals the compare value
    MoreData,     ///< the write pointer moves, so the ring holds more of the packet
};

/// A wait. The kinds Memory, Register, Atomic and MoreData have their operands in this structure;
/// for all other kinds is_wait_over() reads the queue, the packet or the dispatcher. Trivially
/// copyable, so that state streams carry it.
struct Wait {
    WaitKind kind = WaitKind::None;
    std::uint8_t function = 0;  ///< number for sdma::compare()
    std::uint8_t vmid = 0;
    std::uint8_t wide = 0;    ///< 1: the value has 64 bits
    std::uint32_t index = 0;  ///< register
    std::uint64_t address = 0;
    std::uint64_t reference = 0;
    std::uint64_t mask = 0;
};

/// An indirect buffer that is being executed. INDIRECT_BUFFER calls nest up to PM4_MAX_IB_NESTING.
struct IbFrame {
    std::uint64_t va = 0;
    std::uint32_t size = 0;  ///< dwords
    std::uint32_t next = 0;  ///< dword of the next packet
    /// The VMID of the IB's address and of all addresses in its packets.
    std::uint32_t vmid = 0;
    std::uint32_t reserved = 0;
};

/// All state of a queue except the stream that is being saved or restored.
struct QueueState {
    /// CP_MQD_BASE_ADDR to CP_HQD_PQ_WPTR_HI, in their order in register space and in the MQD
    /// (Linux 6.12, include/v9_structs.h).
    std::array<std::uint32_t, MQD_HQD_COUNT> hqd{};
    /// COMPUTE_* registers from COMPUTE_DISPATCH_INITIATOR on. Each queue has its own copy; the
    /// values of the register bank are not used.
    std::array<std::uint32_t, MQD_SH_COUNT> sh{};
    std::uint32_t done = 0;  ///< AQL: bit i is set if packet rptr + i is complete
    std::uint64_t rptr = 0;  ///< PM4: dword in the ring; AQL: index of the oldest unfinished packet
    std::uint64_t next = 0;  ///< AQL: index of the next packet to execute
    std::uint64_t wptr = 0;  ///< write pointer; PM4: dwords; AQL: packets
    std::uint64_t reported = 0;  ///< read pointer last written to memory
    /// PM4: how much of the head packet is done. A copy counts bytes; 0: nothing yet.
    std::uint64_t progress = 0;
    std::uint64_t indirect_base = 0;  ///< SET_BASE: base of DISPATCH_INDIRECT
    std::array<IbFrame, PM4_MAX_IB_NESTING> frames{};
    Wait wait;
    std::uint64_t stop_deadline = 0;  ///< scheduler queue: end of UNMAP_QUEUES' wait, ns
    std::uint64_t aql_signal = 0;     ///< completion signal of the PM4-IB packet being executed
    /// AQL: time when the packet at `next` was first read; 0 before.
    std::uint64_t packet_ticks = 0;
    std::uint16_t pasid = 0;
    std::uint8_t frame_count = 0;
    QueuePhase phase = QueuePhase::Idle;
    Halt halt = Halt::None;
    StopMode stop = StopMode::Preempt;
    QueueId mapped_by = kNoQueue;   ///< the scheduler queue that mapped this queue
    std::uint8_t queue_type = 0;    ///< from MAP_QUEUES
    std::uint8_t in_aql_ib = 0;     ///< 1: `frames` belong to the AQL packet at `next`
    std::uint8_t is_unmapping = 0;  ///< scheduler queue: 1 if its UNMAP_QUEUES has begun
    QueueId stopped_by = kNoQueue;  ///< scheduler queue whose packet waits until this queue is off
    std::uint8_t is_draining = 0;   ///< 1: Stopping without saving, kernels run to their end
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
    /// Saving: the bytes for the save area. Restoring: the bytes read from the save area.
    std::vector<std::byte> stream;
    std::uint64_t stream_position = 0;  ///< number of bytes of `stream` written or read so far
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
    /// PRIV_STATE of the MQD, which the driver writes and user space cannot; true for the gfx ring.
    [[nodiscard]] bool is_privileged() const;
    [[nodiscard]] Vmid vmid() const;
    [[nodiscard]] GpuVa ring() const;
    /// A power of two, 2 to 2^27.
    [[nodiscard]] std::uint64_t ring_dwords() const;
    /// The address at which read pointers are reported; 0: none.
    [[nodiscard]] GpuVa report_address() const;
    /// Address of the MQD in VMID 0 (CP_MQD_BASE_ADDR); 0 if none.
    [[nodiscard]] GpuVa mqd() const;
    /// True if the queue is mapped and has that doorbell enabled.
    [[nodiscard]] bool listens_to(DoorbellIndex index) const;
    [[nodiscard]] DoorbellIndex doorbell() const;
    [[nodiscard]] std::uint8_t ring_id() const;  ///< for interrupt vectors
    [[nodiscard]] QueuePlace place() const;
    /// COMPUTE_STATIC_THREAD_MGMT_SE0..3: a bit per CU, by shader engine.
    [[nodiscard]] std::array<std::uint32_t, 4> cu_mask() const;

    /// Copies registers to pointers (activation).
    void load_pointers();
    /// Copies pointers to registers (unmapping, reads).
    void store_pointers();
    /// Resets the queue's state, except the registers (hqd and sh).
    void clear_progress();

    static std::size_t slot(hw_reg which) {
        return static_cast<std::size_t>(which) - REG_GC_CP_MQD_BASE_ADDR;
    }
    static std::size_t sh_slot(hw_reg which) {
        return static_cast<std::size_t>(which) - REG_GC_COMPUTE_DISPATCH_INITIATOR;
    }
};

}  // namespace vgpu::softgpu::cp
