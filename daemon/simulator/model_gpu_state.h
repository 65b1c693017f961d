// SPDX-License-Identifier: MIT
//
// ModelGpuState: the part of a ModelGpu that changes: clock, registers, memory, VFs, and the faults
// that a test has planned. A test that explores possible continuations copies this state and
// restores it (ModelGpu::save() and restore()). Hooks and log lines are not part of the state.
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

// Times are in ns.
inline constexpr std::uint64_t kUs = 1000;
inline constexpr std::uint64_t kMs = 1000 * kUs;
inline constexpr std::uint64_t kSecond = 1000 * kMs;
inline constexpr std::uint64_t kVramPage = 65536;  ///< bytes
/// As a time: never. As an amount of work: no end. As an address: none.
inline constexpr std::uint64_t kEndless = std::numeric_limits<std::uint64_t>::max();

enum class FaultKind {
    Lost,     ///< the step does not end; the loaded VF stalls
    Aborted,  ///< the step ends with GPUIOV_STATUS_ABORTED; the loaded VF stalls
    Late,     ///< the step takes Fault::late_ns longer
};

/// A planned fault of the next step `step` (IDLE, SAVE, LOAD or RUN) of a VF.
struct Fault {
    gpuiov_command step;
    std::uint32_t vf;
    FaultKind kind;
    std::uint64_t late_ns = 0;
};

/// A byte stream with a read position. Copies share the bytes, but not the position.
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
        std::uint64_t work_ns = 0;     ///< engine time that the work still needs; kEndless: no end
        bool hangs = false;            ///< true if the VF, once in RUN, stays there until a reset
        bool is_attached = false;      ///< true if a client has the VF open
        std::uint32_t generation = 0;  ///< number of FLRs done
        bool flr_never_ends = false;   ///< planned fault: an FLR by the core does not end
        std::uint32_t tables = 0;  ///< number of valid VF page tables that the core has written,
                                   ///< including those that the device refused
        /// Bit FLR_PENDING. Set when a guest resets the VF or a client leaves it; the core clears
        /// it.
        bool flr_pending = false;
        std::uint32_t to_pf[4] = {};  ///< last mailbox message to the PF
        std::uint32_t to_vf[4] = {};  ///< last mailbox message to the VF
        bool to_pf_valid = false;     ///< true if `to_pf` was sent since the last device reset
        bool to_vf_valid = false;     ///< true if the guest has not acknowledged `to_vf` yet
        bool to_pf_acked = false;     ///< true if the PF has acknowledged `to_pf`
        bool to_pf_lost = false;      ///< true if a device reset has dropped `to_pf` before the PF
                                      ///< acknowledged it
        /// Messages (numbers of hw/mailbox.def) that the PF sent, in order, without `undelivered`.
        std::vector<std::uint32_t> received;
        /// FLR notifications that the PF sent while has_interrupts was false. A real driver reads
        /// such a notification only on an interrupt.
        std::vector<std::uint32_t> undelivered;
        /// True if the VF's interrupt ring is on. An FLR and a device reset turn the ring off; the
        /// driver turns it on when it loads.
        bool has_interrupts = false;
    };

    /// Values that decide how the device continues, to compare states approximately. Times are
    /// relative to now, in microseconds, and rounded to powers of two. Leaves out most registers,
    /// memory, amounts of work, counters and the timer of the core, among others.
    [[nodiscard]] std::vector<std::uint64_t> digest() const;

    // --- records and faults
    /// The requests that the core has ended: error and message, by token. Not filled if
    /// ModelGpu::forward.request_done is set.
    std::map<std::uint64_t, std::pair<int, std::string>> done;
    std::uint64_t notifications = 0;  ///< number of calls of events_notify
    std::deque<Fault> faults;
    bool overruns_hold = false;        ///< true if an IDLE during an overrun ends after the overrun
    std::uint64_t step_ns = 2 * kUs;   ///< usual duration of each IDLE, SAVE, LOAD and RUN
    std::uint64_t bulk_ns = 20 * kUs;  ///< duration of each bulk operation
    std::uint32_t state_bytes = 4096;  ///< size of a VF's SAVE_STATE
    bool refuse_tables = false;        ///< true if the device refuses every VF page table
    bool lose_interrupts = false;      ///< true: ModelGpu::interrupt() only sets status bits
    std::uint32_t lose_log_entries = 0;  ///< number of next entries of the run log that are lost
    bool do_guests_acknowledge_at_once =
        false;                                ///< true: guests take each message of the PF at once
    bool verify_fails = false;                ///< true if every VERIFY_ZERO fails
    bool is_gone = false;                     ///< true if every access fails with -ENODEV
    std::optional<std::uint64_t> fail_after;  ///< number of accesses before one fails with -EIO;
                                              ///< none: no access fails with -EIO
    std::uint64_t accesses = 0;               ///< number of accesses of the core to configuration
                                              ///< space, registers and VRAM
    std::uint64_t accesses_failed = 0;        ///< number of accesses that failed by `fail_after`
    std::uint64_t vram_bytes_written = 0;     ///< by the PF core
    std::vector<std::uint8_t> stream_out;     ///< bytes of the core's stream_write
    StreamInput stream_in;                    ///< bytes for the core's stream_read
    std::optional<std::size_t> stream_room;   ///< bytes that stream_out accepts before -EAGAIN;
                                              ///< none: no limit
    std::uint32_t device_resets = 0;          ///< number of device resets that the core has ordered
    /// True: a device reset keeps VRAM and the VF page tables, as softgpu does.
    bool device_reset_keeps_vram = false;
    std::uint64_t device_reset_ns = 0;  ///< time until the core sees the end of a device reset
    /// Number of calls into the core that os.h forbids: from within events_notify and request_done.
    /// Counts only calls that change the core's timer.
    std::uint32_t calls_back = 0;

protected:
    struct Event {
        std::function<void()> run;
    };
    /// By offset / kVramPage. Copies share pages until one of them writes.
    using Pages = std::map<std::uint64_t, std::shared_ptr<std::vector<std::uint8_t>>>;

    std::uint64_t now_ = 0;
    std::uint64_t timer_ = 0;                     ///< deadline of the core's timer; 0: off
    bool is_in_service_ = false;                  ///< true during events_notify and request_done
    std::multimap<std::uint64_t, Event> events_;  ///< events of the device, by time
    bool irq_ = false;                            ///< true if the core must get an interrupt

    std::map<std::uint32_t, std::uint32_t> regs_;  ///< stored values, by register; 0 if absent
    Pages vram_;                                   ///< pages that are not in `vram_` are zero
    std::uint64_t device_reset_ends_ = 0;          ///< time; 0: no device reset
    std::uint32_t intr_status_ = 0, intr_enable_ = 0, mbox1_ = 0;
    std::uint32_t command_ = 0, status_ = 0;  ///< CMD_CONTROL and CMD_STATUS
    bool op_busy_ = false;
    bool op_refused_ = false;
    /// DMA memory of the core, by bus address. A copy of the state shares the blocks, because the
    /// core knows their addresses.
    std::map<std::uint64_t, std::shared_ptr<std::vector<std::uint64_t>>> dma_;
    std::uint64_t dma_next_ = 0x100000000ull;
    std::uint64_t log_written_ = 0;  ///< number of entries written to the run log, including those
                                     ///< that newer entries have replaced

    std::vector<Vf> vfs_;       ///< by VF number; 0 is the PF
    std::uint32_t loaded_ = 0;  ///< VF in the engine; 0: none
    bool is_running_ = false;   ///< true if the loaded VF is in RUN
    std::uint64_t quantum_end_ = 0;
    std::uint64_t run_end_ = 0;    ///< end of the run if no command ends it earlier: quantum and
                                   ///< overrun
    std::uint64_t work_from_ = 0;  ///< since when the running VF's work is not yet subtracted from
                                   ///< Vf::work_ns
    bool is_stalled_ = false;      ///< true if the loaded VF can leave the engine only by a reset
    std::uint64_t run_start_ = 0;
    std::optional<std::uint64_t> idle_since_;  ///< when the running VF ran out of work
    std::uint64_t idle_ns_ = 0;                ///< idle time within the run
    // A scheduled event of a run or command does nothing if its id has changed since.
    std::uint64_t run_id_ = 0;
    std::uint64_t command_id_ = 0;
    std::uint64_t switches_ = 0;  ///< number of LOADs
    /// The steps of the command, each with its VF.
    std::vector<std::pair<gpuiov_command, std::uint32_t>> steps_;
    std::size_t step_ = 0;  ///< index of the current step in `steps_`
};

}  // namespace vgpu::simulator
