// SPDX-License-Identifier: MIT
//
// The state of a ModelGpu that changes: its clock, registers, memory and VFs, and the faults that a
// test has planned. A test that explores possible continuations copies this state and restores it
// (ModelGpu::save() and restore()). Hooks and log lines are not part of the state.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
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

enum class FaultKind {
    Lost,     ///< the step does not end; the loaded VF stalls
    Aborted,  ///< the step ends with GPUIOV_STATUS_ABORTED; the loaded VF stalls
    Late,     ///< the step takes Fault::late_ns longer
};

/// A planned fault of the next `step` of a VF.
struct Fault {
    gpuiov_command step;
    std::uint32_t vf;
    FaultKind kind;
    std::uint64_t late_ns = 0;
};

/// A stream and the position up to which it is read. Copies share the bytes, but not the position.
class StreamInput {
public:
    void assign(std::vector<std::uint8_t> bytes) {
        bytes_ = std::make_shared<const std::vector<std::uint8_t>>(std::move(bytes));
        at_ = 0;
    }
    /// Number of bytes that are not read yet.
    [[nodiscard]] std::size_t size() const { return bytes_ ? bytes_->size() - at_ : 0; }
    [[nodiscard]] bool empty() const { return size() == 0; }
    /// Copies the next bytes, at most `max`, to `data`. Returns the number of copied bytes.
    std::size_t read(void* data, std::size_t max) {
        const std::size_t count = std::min(max, size());
        if (count != 0) std::memcpy(data, bytes_->data() + at_, count);
        at_ += count;
        return count;
    }

private:
    std::shared_ptr<const std::vector<std::uint8_t>> bytes_;
    std::size_t at_ = 0;
};

class ModelGpuState {
public:
    struct Vf {
        std::uint64_t work_ns = 0;  ///< engine time that the work still needs; kEndless: no end
        bool hangs = false;         ///< true if the VF stays in the engine until a reset
        bool is_attached = false;
        std::uint32_t generation = 0;  ///< number of FLRs done
        bool flr_never_ends = false;
        std::uint32_t tables = 0;  ///< number of VF page tables that the core has committed
        bool flr_pending = false;
        std::uint32_t to_pf[4] = {};
        std::uint32_t to_vf[4] = {};
        bool to_pf_valid = false;
        bool to_vf_valid = false;
        bool to_pf_acked = false;
        bool to_pf_lost = false;  ///< true if a device reset has dropped the message unread
        std::vector<std::uint32_t> received;  ///< events that the PF sent, in order
        /// FLR notifications that the PF sent while has_interrupts was false. The driver reads its
        /// mailbox only on an interrupt.
        std::vector<std::uint32_t> undelivered;
        /// True if the VF's interrupt ring is on. An FLR turns the ring off until the driver loads
        /// again.
        bool has_interrupts = false;
    };

    /// The values that decide how the device continues, for comparing states. Times are relative to
    /// now and rounded to powers of two. Counters that the device does not use are left out.
    [[nodiscard]] std::vector<std::uint64_t> digest() const;

    // --- records and faults
    std::map<std::uint64_t, std::pair<int, std::string>> done;
    std::uint64_t notifications = 0;
    std::deque<Fault> faults;
    bool overruns_hold = false;       ///< true if a run that overruns also delays the command IDLE
    std::uint64_t step_ns = 2 * kUs;  ///< duration of each IDLE, SAVE, LOAD and RUN
    std::uint64_t bulk_ns = 20 * kUs;
    std::uint32_t state_bytes = 4096;  ///< size of a VF's SAVE_STATE
    bool refuse_tables = false;
    bool lose_interrupts = false;
    bool verify_fails = false;
    bool is_gone = false;                     ///< true if every access fails with -ENODEV
    std::optional<std::uint64_t> fail_after;  ///< number of accesses before one fails with -EIO
    std::uint64_t accesses = 0;
    std::uint64_t accesses_failed = 0;     ///< number of accesses that failed by `fail_after`
    std::uint64_t vram_bytes_written = 0;  ///< by the PF core
    std::vector<std::uint8_t> stream_out;
    StreamInput stream_in;
    std::optional<std::size_t> stream_room;  ///< bytes that stream_out accepts before -EAGAIN
    std::uint32_t device_resets = 0;
    bool device_reset_keeps_vram = false;  ///< true as in softgpu; VF page tables are kept as well
    std::uint64_t device_reset_ns = 0;     ///< time until the reset is reported as over
    /// Number of calls from a service of the platform back into the core, which os.h forbids. The
    /// model notices such a call because every call of the core ends by arming the timer.
    std::uint32_t calls_back = 0;

protected:
    struct Event {
        std::function<void()> run;
    };
    /// By offset / kVramPage. Copies share pages until one of them writes.
    using Pages = std::map<std::uint64_t, std::shared_ptr<std::vector<std::uint8_t>>>;

    std::uint64_t now_ = 0;
    std::uint64_t timer_ = 0;
    bool is_in_service_ = false;  ///< true during events_notify and request_done
    std::multimap<std::uint64_t, Event> events_;
    bool irq_ = false;

    std::map<std::uint32_t, std::uint32_t> regs_;
    Pages vram_;
    std::uint64_t device_reset_ends_ = 0;
    std::uint32_t intr_status_ = 0, intr_enable_ = 0, mbox1_ = 0;
    std::uint32_t command_ = 0, status_ = 0;
    bool op_busy_ = false;
    bool op_refused_ = false;
    /// A copy shares the blocks, because the core knows their addresses.
    std::map<std::uint64_t, std::shared_ptr<std::vector<std::uint64_t>>> dma_;
    std::uint64_t dma_next_ = 0x100000000ull;
    std::uint64_t log_written_ = 0;

    std::vector<Vf> vfs_;
    std::uint32_t loaded_ = 0;
    bool is_running_ = false;
    std::uint64_t quantum_end_ = 0;
    std::uint64_t run_end_ = 0;    ///< latest end of the run, after an overrun
    std::uint64_t work_from_ = 0;  ///< time since which the running VF does its current work
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
