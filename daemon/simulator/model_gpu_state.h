// SPDX-License-Identifier: MIT
//
// The state of a ModelGpu that changes: its clock, registers, memory and VFs, and the faults that a
// test has planned. A test that explores possible continuations copies this state and restores it
// (ModelGpu::save() and restore()). Hooks and log lines are not part of it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pf-driver/hw/gpuiov.h"

namespace vgpu::simulator {

inline constexpr std::uint64_t kUs = 1000;
inline constexpr std::uint64_t kMs = 1000 * kUs;
inline constexpr std::uint64_t kSecond = 1000 * kMs;
inline constexpr std::uint64_t kVramPage = 65536;  ///< bytes
inline constexpr std::uint64_t kEndless = std::numeric_limits<std::uint64_t>::max();

/// Lost: the step never ends. Aborted: it ends with GPUIOV_STATUS_ABORTED. Both stall the VF that
/// is loaded. Late: it takes Fault::late_ns longer.
enum class FaultKind { Lost, Aborted, Late };

struct Fault {
    gpuiov_command step;
    std::uint32_t vf;
    FaultKind kind;
    std::uint64_t late_ns = 0;
};

class ModelGpuState {
public:
    struct Vf {
        std::uint64_t work_ns = 0;  ///< kEndless: never done
        bool hangs = false;         ///< true if it stays in the engine until a reset
        bool is_attached = false;
        std::uint32_t generation = 0;  ///< number of FLRs done
        bool flr_never_ends = false;
        std::uint32_t tables = 0;  ///< VF page tables committed
        bool flr_pending = false;
        std::uint32_t to_pf[4] = {};
        std::uint32_t to_vf[4] = {};
        bool to_pf_valid = false;
        bool to_vf_valid = false;
        bool to_pf_acked = false;
        bool to_pf_lost = false;  ///< true if a reset of the device has dropped it unread
        std::vector<std::uint32_t> received;  ///< events the PF sent, in order
        /// FLR notifications sent while the interrupt ring was off. The driver reads its mailbox
        /// only on an interrupt, and an FLR turns the ring off until the driver loads again.
        std::vector<std::uint32_t> undelivered;
        bool has_interrupts = false;
    };

    /// The values that decide how the device continues. Times are relative to now and rounded to
    /// powers of two. Counters that the device does not use are left out.
    [[nodiscard]] std::vector<std::uint64_t> digest() const;

    // --- records and faults
    std::map<std::uint64_t, std::pair<int, std::string>> done;
    std::uint64_t notifications = 0;
    std::deque<Fault> faults;
    bool overruns_hold = false;       ///< true if runs that overrun delay the command IDLE, too
    std::uint64_t step_ns = 2 * kUs;  ///< duration of each IDLE, SAVE, LOAD and RUN
    std::uint64_t bulk_ns = 20 * kUs;
    std::uint32_t state_bytes = 4096;  ///< size of a VF's SAVE_STATE
    bool refuse_tables = false;
    bool lose_interrupts = false;
    bool verify_fails = false;
    bool is_gone = false;                     ///< true if every access fails with -ENODEV
    std::optional<std::uint64_t> fail_after;  ///< accesses until one fails with -EIO
    std::uint64_t accesses = 0;
    std::uint64_t accesses_failed = 0;     ///< by `fail_after`
    std::uint64_t vram_bytes_written = 0;  ///< by the PF core
    std::vector<std::uint8_t> stream_out;
    std::deque<std::uint8_t> stream_in;
    std::optional<std::size_t> stream_room;  ///< bytes until -EAGAIN
    std::uint32_t device_resets = 0;
    bool device_reset_keeps_vram = false;  ///< true as in softgpu; VF page tables are kept as well
    std::uint64_t device_reset_ns = 0;     ///< time until the reset is reported as over
    /// Number of calls from a service of the platform back into the core, which os.h forbids. They
    /// are noticed because every call of the core ends by arming the timer.
    std::uint32_t calls_back = 0;

protected:
    struct Event {
        std::function<void()> run;
    };
    /// By offset / kVramPage. Copies share pages until one of them writes.
    using Pages = std::map<std::uint64_t, std::shared_ptr<std::vector<std::uint8_t>>>;

    std::uint64_t now_ = 0;
    std::uint64_t timer_ = 0;
    bool is_in_service_ = false;
    std::multimap<std::uint64_t, Event> events_;
    bool irq_ = false;

    std::map<std::uint32_t, std::uint32_t> regs_;
    Pages vram_;
    std::uint64_t device_reset_ends_ = 0;
    std::uint32_t intr_status_ = 0, intr_enable_ = 0, mbox1_ = 0;
    std::uint32_t command_ = 0, status_ = 0;
    bool op_busy_ = false;
    bool op_refused_ = false;
    /// A copy shares the blocks: the core knows their addresses.
    std::map<std::uint64_t, std::shared_ptr<std::vector<std::uint64_t>>> dma_;
    std::uint64_t dma_next_ = 0x100000000ull;
    std::uint64_t log_written_ = 0;

    std::vector<Vf> vfs_;
    std::uint32_t loaded_ = 0;
    bool is_running_ = false;
    std::uint64_t quantum_end_ = 0;
    std::uint64_t run_end_ = 0;    ///< latest end of the run
    std::uint64_t work_from_ = 0;  ///< begin of the VF's current work
    bool is_stalled_ = false;
    std::uint64_t run_start_ = 0;
    std::optional<std::uint64_t> idle_since_;
    std::uint64_t idle_ns_ = 0;  ///< idle time within the run
    std::uint64_t run_id_ = 0;
    std::uint64_t command_id_ = 0;
    std::uint64_t switches_ = 0;
    std::vector<std::pair<gpuiov_command, std::uint32_t>> steps_;
    std::size_t step_ = 0;
};

}  // namespace vgpu::simulator
