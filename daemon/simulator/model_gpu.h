// SPDX-License-Identifier: MIT
//
// ModelGpu: the smallest device that a PF core can drive, with a virtual clock. It is both the
// platform (services of core/base/os.h) and the device: PF registers, GPU-IOV capability, VRAM, run
// log, mailbox, bulk operations. VFs are amounts of work. Time passes only in run_for() and
// run_until(), which order timer, interrupts and ends of quanta. Faults: `faults` defines how the
// next IDLE, SAVE, LOAD or RUN of a VF fails; `fail_after` makes the n-th access fail.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pf-driver/core/pf.h"
#include "pf-driver/hw/gpuiov.h"
#include "pf-driver/hw/mailbox.h"

namespace vgpu::simulator {

inline constexpr std::uint64_t kUs = 1000;
inline constexpr std::uint64_t kMs = 1000 * kUs;
inline constexpr std::uint64_t kSecond = 1000 * kMs;
inline constexpr std::uint64_t kVramPage = 65536;  ///< bytes
inline constexpr std::uint64_t kEndless = std::numeric_limits<std::uint64_t>::max();

enum class FaultKind { Lost, Aborted, Late };

struct Fault {
    gpuiov_command step;
    std::uint32_t vf;
    FaultKind kind;
    std::uint64_t late_ns = 0;
};

class ModelGpu {
public:
    struct Options {
        std::uint32_t total_vfs = 4;
        std::uint32_t vram_mb = 512;
        std::uint32_t aperture_mb = 256;
        std::uint32_t cu_count = 8;
        std::uint64_t start_ns = kSecond;  ///< initial time of the device's clock
    };
    struct Vf {
        std::uint64_t work_ns = 0;  ///< kEndless: never done
        bool hangs = false;         ///< stays in the engine until reset
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
        std::vector<std::uint32_t> received;  ///< events the PF sent, in order
        /// FLR notifications sent while the interrupt ring was off. The driver reads its mailbox
        /// only on an interrupt, and an FLR turns the ring off until the driver loads again.
        std::vector<std::uint32_t> unheard;
        bool has_interrupts = false;
    };

    ModelGpu() : ModelGpu(Options{}) {}
    explicit ModelGpu(Options options);
    ModelGpu(const ModelGpu&) = delete;
    ModelGpu& operator=(const ModelGpu&) = delete;

    // --- as a platform
    [[nodiscard]] vgpu_os* os() { return &handle_.os; }
    void bind(vgpu_pf* core) { core_ = core; }
    [[nodiscard]] std::uint64_t now() const { return now_; }
    void run_until(std::uint64_t time);
    void run_for(std::uint64_t ns) { run_until(now_ + ns); }
    /// kEndless if there is none.
    [[nodiscard]] std::uint64_t next_event() const;
    [[nodiscard]] bool is_done(std::uint64_t token) const { return done.contains(token); }

    // --- as a device
    [[nodiscard]] Vf& vf(std::uint32_t number) { return vfs_[number]; }
    void give_work(std::uint32_t number, std::uint64_t ns);
    /// From now on, or from its next run on, the VF neither proceeds nor leaves the engine.
    void hang(std::uint32_t number);
    [[nodiscard]] std::uint32_t loaded() const { return loaded_; }
    [[nodiscard]] bool is_running() const { return is_running_ && !is_stalled_; }
    [[nodiscard]] std::uint64_t total_switches() const { return switches_; }
    [[nodiscard]] std::uint32_t bank(std::uint32_t vf, std::uint32_t reg) const;
    void set_bank(std::uint32_t vf, std::uint32_t reg, std::uint32_t value);
    /// The value last written; 0 if none.
    [[nodiscard]] std::uint32_t register_value(std::uint32_t reg) const {
        const auto found = regs_.find(reg);
        return found == regs_.end() ? 0 : found->second;
    }
    [[nodiscard]] std::uint32_t enabled_interrupts() const { return intr_enable_; }
    void poke(std::uint64_t offset, std::uint8_t value) { byte(offset) = value; }
    [[nodiscard]] std::uint8_t peek(std::uint64_t offset);
    void interrupt(std::uint32_t bits);
    /// Loses all state.
    void power_cycle();

    // --- as a guest
    void guest_sends(std::uint32_t number, std::uint32_t event, std::uint32_t dw1 = 0,
                     std::uint32_t dw2 = 0, std::uint32_t dw3 = 0);
    void guest_acknowledges(std::uint32_t number);
    void guest_resets_function(std::uint32_t number);
    void attach_client(std::uint32_t number, bool is_attached);

    // --- records and faults
    std::map<std::uint64_t, std::pair<int, std::string>> done;
    std::vector<std::string> log_lines;
    std::uint64_t notifications = 0;
    std::deque<Fault> faults;
    std::function<std::uint64_t(std::uint32_t vf)> overrun;  ///< ns beyond the quantum
    bool overruns_hold = false;                              ///< runs that overrun ignore commands
                                                             ///< as well
    std::function<void(std::uint32_t vf)> on_start;
    std::function<void(const vgpu_hw_run_log_entry&)> on_run;  ///< a run is over
    std::function<void(std::uint32_t vf)> on_reset;            ///< a VF was reset, and its work is
                                                               ///< gone
    std::uint64_t step_ns = 2 * kUs;                           ///< each of IDLE SAVE LOAD RUN
    std::uint64_t bulk_ns = 20 * kUs;
    std::uint32_t state_bytes = 4096;  ///< size of a VF's SAVE_STATE
    bool refuse_tables = false;
    bool lose_interrupts = false;
    bool verify_fails = false;
    bool is_gone = false;                     ///< every access fails with -ENODEV
    std::optional<std::uint64_t> fail_after;  ///< accesses until one fails with -EIO
    std::uint64_t accesses = 0;
    std::uint64_t vram_bytes_written = 0;  ///< by the PF core
    std::vector<std::uint8_t> stream_out;
    std::deque<std::uint8_t> stream_in;
    std::optional<std::size_t> stream_room;  ///< bytes until -EAGAIN
    std::uint32_t device_resets = 0;
    bool device_reset_keeps_vram = false;  ///< as in softgpu, VF tables are kept as well
    std::uint64_t device_reset_ns = 0;     ///< time until the reset is reported as over
    /// Number of calls from a service back into the core, which os.h forbids. They are found
    /// because every call of the core ends by arming the timer.
    std::uint32_t calls_back = 0;
    /// If set, replaces `done`, `notifications` and the stream members.
    struct Forward {
        std::function<void(std::uint64_t, int, const char*)> request_done;
        std::function<void()> events;
        std::function<std::int64_t(const void*, std::uint32_t)> stream_write;
        std::function<std::int64_t(void*, std::uint32_t)> stream_read;
    } forward;

private:
    struct Handle {
        vgpu_os os;
        ModelGpu* self;
    };
    struct Event {
        std::function<void()> run;
    };
    using Pages = std::map<std::uint64_t, std::vector<std::uint8_t>>;  ///< by offset / kVramPage

    static ModelGpu& self(vgpu_os* os);
    static const vgpu_os_ops kOps;

    int access();
    std::uint8_t& byte(std::uint64_t offset);
    void read_vram(std::uint64_t offset, std::span<std::uint8_t> out) const;
    void write_vram(std::uint64_t offset, std::span<const std::uint8_t> data);
    void at(std::uint64_t time, std::function<void()> run);
    void deliver();

    std::uint32_t read_config(std::uint32_t dword);
    void write_config(std::uint32_t offset, std::uint32_t value);
    std::uint32_t read_register(std::uint32_t reg);
    [[nodiscard]] std::uint32_t read_bank(std::uint32_t reg);
    [[nodiscard]] std::uint32_t mailbox_control(std::uint32_t vf) const;
    void write_register(std::uint32_t reg, std::uint32_t value);
    void write_bank(std::uint32_t vf, std::uint32_t reg, std::uint32_t value);
    void commit_table(std::uint32_t vf);
    void start_bulk(std::uint32_t command);
    bool do_bulk(std::uint32_t opcode, std::uint32_t vf);
    void scrub_vram(std::uint32_t vf, std::uint64_t offset, std::uint64_t bytes);
    [[nodiscard]] bool is_zero(std::uint32_t vf, std::uint64_t offset, std::uint64_t bytes);
    bool save_state(std::uint32_t vf, std::uint8_t* out, std::uint64_t bytes);
    void copy_out(std::uint32_t vf, std::uint64_t offset, std::span<std::uint8_t> out);
    void copy_in(std::uint32_t vf, std::uint64_t offset, std::span<const std::uint8_t> in);
    /// Null outside the PF driver's DMA memory.
    [[nodiscard]] std::uint8_t* dma_memory(std::uint64_t bus, std::uint64_t bytes);
    /// Device address of `offset` in a VF; VF 0 is the PF.
    [[nodiscard]] std::uint64_t in_device(std::uint32_t vf, std::uint64_t offset) {
        return vf == 0 ? offset : vf_to_device(vf, offset);
    }
    std::uint64_t vf_to_device(std::uint32_t vf, std::uint64_t offset);
    std::uint64_t pair(std::uint32_t reg_lo) const;

    void start_command(std::uint32_t dword);
    void next_step();
    void end_command(gpuiov_status status);
    bool apply_step(gpuiov_command step, std::uint32_t vf);
    void start_run(std::uint32_t vf);
    void watch_work();
    void end_rest();
    void park(vgpu_hw_run_end reason, std::uint64_t at_time);
    void reset_vf(std::uint32_t vf);
    void throw_out();
    std::uint32_t busy_mask() const;
    void append_log(const vgpu_hw_run_log_entry& entry);

    Options options_;
    Handle handle_;
    vgpu_pf* core_ = nullptr;
    std::uint64_t now_;
    std::uint64_t timer_ = 0;
    bool is_in_service_ = false;
    std::multimap<std::uint64_t, Event> events_;
    bool irq_ = false;

    std::map<std::uint32_t, std::uint32_t> regs_;
    Pages vram_;
    void device_reset();
    std::uint64_t device_reset_ends_ = 0;
    std::uint32_t intr_status_ = 0, intr_enable_ = 0, mbox1_ = 0;
    std::uint32_t command_ = 0, status_ = 0;
    bool op_busy_ = false;
    bool op_refused_ = false;
    std::map<std::uint64_t, std::unique_ptr<std::vector<std::uint64_t>>> dma_;
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
    std::optional<std::uint64_t> rests_from_;
    std::uint64_t rest_ns_ = 0;  ///< rest time within the run
    std::uint64_t run_id_ = 0;
    std::uint64_t command_id_ = 0;
    std::uint64_t switches_ = 0;
    std::vector<std::pair<gpuiov_command, std::uint32_t>> steps_;
    std::size_t step_ = 0;
};

}  // namespace vgpu::simulator
