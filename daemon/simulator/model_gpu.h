// SPDX-License-Identifier: MIT
//
// ModelGpu: the smallest device that a PF core can drive, with a virtual clock. A ModelGpu is both
// the platform of the core (the services of core/base/os.h) and the device: PF registers, GPU-IOV
// capability, VRAM, run log, mailbox, bulk operations. The work of a VF is only an amount of engine
// time. Time passes only in run_for() and run_until(), which call the core's timer, deliver
// interrupts and end runs, in the order of time. Tests can make a step of a world switch fail or
// take longer (`faults`), and can make an access of the core fail (`fail_after`).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "daemon/simulator/model_gpu_state.h"
#include "pf-driver/core/pf.h"
#include "pf-driver/hw/gpuiov.h"
#include "pf-driver/hw/mailbox.h"

namespace vgpu::simulator {

class ModelGpu : public ModelGpuState {
public:
    struct Options {
        std::uint32_t total_vfs = 4;
        std::uint32_t vram_mb = 512;      ///< MiB
        std::uint32_t aperture_mb = 256;  ///< MiB
        std::uint32_t cu_count = 8;
        std::uint64_t start_ns = kSecond;  ///< initial time of the device's clock
    };
    /// A copy of a ModelGpu's state and of the memory that core and device share. Only the same
    /// ModelGpu can restore the copy, because the core knows the memory's addresses.
    struct Snapshot {
        ModelGpuState state;
        std::map<std::uint64_t, std::vector<std::uint64_t>> dma;
    };
    ModelGpu() : ModelGpu(Options{}) {}
    explicit ModelGpu(Options options);
    ModelGpu(const ModelGpu&) = delete;
    ModelGpu& operator=(const ModelGpu&) = delete;

    // --- as a platform
    [[nodiscard]] vgpu_os* os() { return &handle_.os; }
    /// Sets the core that gets interrupts and timer calls; null: none.
    void bind(vgpu_pf* core) { core_ = core; }
    /// The device's clock in ns, which is also the platform's clock.
    [[nodiscard]] std::uint64_t now() const { return now_; }
    /// Lets time pass until the device's clock is `time`.
    void run_until(std::uint64_t time);
    void run_for(std::uint64_t ns) { run_until(now_ + ns); }
    /// Time of the device's next event or of the core's timer, whichever is earlier; kEndless if
    /// there is neither.
    [[nodiscard]] std::uint64_t next_event() const;
    [[nodiscard]] Snapshot save() const;
    void restore(const Snapshot& snapshot);
    /// True if the core has reported the end of the request with this token. Always false if
    /// forward.request_done is set.
    [[nodiscard]] bool is_done(std::uint64_t token) const { return done.contains(token); }

    // --- as a device
    [[nodiscard]] Vf& vf(std::uint32_t number) { return vfs_[number]; }
    /// Adds `ns` of engine time to the VF's work; kEndless: work without an end.
    void give_work(std::uint32_t number, std::uint64_t ns);
    /// Makes the VF hang: in RUN, the VF neither proceeds nor leaves the engine, until a reset.
    void hang(std::uint32_t number);
    /// The VF that is loaded in the engine; 0: none.
    [[nodiscard]] std::uint32_t loaded() const { return loaded_; }
    /// True if the loaded VF is in RUN and has not stalled.
    [[nodiscard]] bool is_running() const { return is_running_ && !is_stalled_; }
    [[nodiscard]] std::uint64_t total_switches() const { return switches_; }
    /// A register in the bank of `vf`. `reg`: number of the same register in bank 0.
    [[nodiscard]] std::uint32_t bank(std::uint32_t vf, std::uint32_t reg) const;
    void set_bank(std::uint32_t vf, std::uint32_t reg, std::uint32_t value);
    /// The value that the core or the model last stored in the register; 0 if none.
    [[nodiscard]] std::uint32_t register_value(std::uint32_t reg) const {
        const auto found = regs_.find(reg);
        return found == regs_.end() ? 0 : found->second;
    }
    [[nodiscard]] std::uint32_t enabled_interrupts() const { return intr_enable_; }
    /// poke() writes, and peek() reads, a byte of device VRAM.
    void poke(std::uint64_t offset, std::uint8_t value) { byte(offset) = value; }
    [[nodiscard]] std::uint8_t peek(std::uint64_t offset);
    /// Sets bits of INTR_STATUS (enum gpuiov_intr). If a bit is enabled and lose_interrupts is
    /// false, the core gets an interrupt at the next deliver().
    void interrupt(std::uint32_t bits);
    /// Loses registers, VRAM, work, pending events and messages to the PF. Clients stay attached.
    void power_cycle();

    // --- as a guest, or as a client of a VF such as QEMU
    /// Sends a mailbox message to the PF. `event`: the message's number in hw/mailbox.def.
    void guest_sends(std::uint32_t number, std::uint32_t event, std::uint32_t dw1 = 0,
                     std::uint32_t dw2 = 0, std::uint32_t dw3 = 0);
    /// Acknowledges the mailbox message of the PF.
    void guest_acknowledges(std::uint32_t number);
    /// Resets the VF (FLR) as its guest does.
    void guest_resets_function(std::uint32_t number);
    /// A client opens the VF (`is_attached`), or leaves it. Leaving resets the VF.
    void attach_client(std::uint32_t number, bool is_attached);

    // --- hooks and the log
    std::vector<std::string> log_lines;
    /// Returns the time in ns for which a run of the VF exceeds its quantum, unless a command ends
    /// the run earlier. If empty, no run exceeds its quantum.
    std::function<std::uint64_t(std::uint32_t vf)> overrun;
    std::function<void(std::uint32_t vf)> on_start;            ///< called when a run begins
    std::function<void(const vgpu_hw_run_log_entry&)> on_run;  ///< called when a run is over
    std::function<void(std::uint32_t vf)> on_reset;            ///< called after an FLR, but not
                                                               ///< after a device reset
    /// Callbacks for services of this platform; each may be empty. `request_done` replaces `done`,
    /// `stream_write` replaces `stream_out` and `stream_room`, and `stream_read` replaces
    /// `stream_in`. `events` is called for each events_notify; `notifications` counts these calls
    /// even if `events` is empty.
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
    static ModelGpu& self(vgpu_os* os);
    static const vgpu_os_ops kOps;

    /// Counts an access of the core. Returns 0, or the negative errno with which the access fails.
    int access();
    std::uint8_t& byte(std::uint64_t offset);
    void read_vram(std::uint64_t offset, std::span<std::uint8_t> out) const;
    void write_vram(std::uint64_t offset, std::span<const std::uint8_t> data);
    /// Schedules `run` for a time. A time in the past counts as now.
    void at(std::uint64_t time, std::function<void()> run);
    /// Calls the core's interrupt handler while an interrupt is pending and a core is bound.
    void deliver();

    std::uint32_t read_config(std::uint32_t dword);
    void write_config(std::uint32_t offset, std::uint32_t value);
    std::uint32_t read_register(std::uint32_t reg);
    [[nodiscard]] std::uint32_t read_bank(std::uint32_t reg);
    [[nodiscard]] std::uint32_t mailbox_control(std::uint32_t vf) const;
    void write_register(std::uint32_t reg, std::uint32_t value);
    void write_bank(std::uint32_t vf, std::uint32_t reg, std::uint32_t value);
    void acknowledge(std::uint32_t number);
    void commit_table(std::uint32_t vf);
    void start_bulk(std::uint32_t command);
    bool do_bulk(std::uint32_t opcode, std::uint32_t vf);
    void scrub_vram(std::uint32_t vf, std::uint64_t offset, std::uint64_t bytes);
    [[nodiscard]] bool is_zero(std::uint32_t vf, std::uint64_t offset, std::uint64_t bytes);
    bool save_state(std::uint32_t vf, std::uint8_t* out, std::uint64_t bytes);
    void copy_out(std::uint32_t vf, std::uint64_t offset, std::span<std::uint8_t> out);
    void copy_in(std::uint32_t vf, std::uint64_t offset, std::span<const std::uint8_t> in);
    /// The memory at bus address `bus`; null if the range is not in one DMA block of the core.
    [[nodiscard]] std::uint8_t* dma_memory(std::uint64_t bus, std::uint64_t bytes);
    /// Device address of `offset` in a VF; VF 0 is the PF.
    [[nodiscard]] std::uint64_t in_device(std::uint32_t vf, std::uint64_t offset) {
        return vf == 0 ? offset : vf_to_device(vf, offset);
    }
    /// Walks the VF page table; kEndless if it does not map `offset` to an address in VRAM.
    std::uint64_t vf_to_device(std::uint32_t vf, std::uint64_t offset);
    /// The 64-bit value of a LO register and the HI register after it.
    std::uint64_t pair(std::uint32_t reg_lo) const;

    void start_command(std::uint32_t dword);
    void next_step();
    void end_command(gpuiov_status status);
    bool apply_step(gpuiov_command step, std::uint32_t vf);
    void start_run(std::uint32_t vf);
    void watch_work();
    void end_idle();
    void park(vgpu_hw_run_end reason, std::uint64_t at_time);
    void reset_vf(std::uint32_t vf);
    void unload_active();
    std::uint32_t busy_mask() const;
    void append_log(const vgpu_hw_run_log_entry& entry);

    void device_reset();

    Options options_;
    Handle handle_;
    vgpu_pf* core_ = nullptr;
};

}  // namespace vgpu::simulator
