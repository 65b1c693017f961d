// SPDX-License-Identifier: MIT
//
// ModelGpu: the smallest device that a PF core can drive, with a virtual clock. It is both the
// platform of the core (the services of core/base/os.h) and the device: PF registers, GPU-IOV
// capability, VRAM, run log, mailbox, bulk operations. The work of a VF is only an amount of engine
// time. Time passes only in run_for() and run_until(), which call the core's timer, deliver
// interrupts and end runs, in the order of time. `faults` defines how the next IDLE, SAVE, LOAD or
// RUN of a VF fails or is delayed. `fail_after` makes one access of the core fail.
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
        std::uint32_t vram_mb = 512;
        std::uint32_t aperture_mb = 256;
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
    void bind(vgpu_pf* core) { core_ = core; }
    [[nodiscard]] std::uint64_t now() const { return now_; }
    void run_until(std::uint64_t time);
    void run_for(std::uint64_t ns) { run_until(now_ + ns); }
    /// Time of the device's next event or of the core's timer; kEndless if there is none.
    [[nodiscard]] std::uint64_t next_event() const;
    [[nodiscard]] Snapshot save() const;
    void restore(const Snapshot& snapshot);
    [[nodiscard]] bool is_done(std::uint64_t token) const { return done.contains(token); }

    // --- as a device
    [[nodiscard]] Vf& vf(std::uint32_t number) { return vfs_[number]; }
    void give_work(std::uint32_t number, std::uint64_t ns);
    /// From now on, if the VF runs, or from its next run on, the VF neither proceeds nor leaves the
    /// engine.
    void hang(std::uint32_t number);
    [[nodiscard]] std::uint32_t loaded() const { return loaded_; }
    [[nodiscard]] bool is_running() const { return is_running_ && !is_stalled_; }
    [[nodiscard]] std::uint64_t total_switches() const { return switches_; }
    /// A register in the bank of `vf`; `reg` is its offset in bank 0.
    [[nodiscard]] std::uint32_t bank(std::uint32_t vf, std::uint32_t reg) const;
    void set_bank(std::uint32_t vf, std::uint32_t reg, std::uint32_t value);
    /// The value that was last written to the register; 0 if nothing was written.
    [[nodiscard]] std::uint32_t register_value(std::uint32_t reg) const {
        const auto found = regs_.find(reg);
        return found == regs_.end() ? 0 : found->second;
    }
    [[nodiscard]] std::uint32_t enabled_interrupts() const { return intr_enable_; }
    void poke(std::uint64_t offset, std::uint8_t value) { byte(offset) = value; }
    [[nodiscard]] std::uint8_t peek(std::uint64_t offset);
    void interrupt(std::uint32_t bits);
    /// Loses registers, VRAM, work and pending events. Clients stay attached.
    void power_cycle();

    // --- as a guest
    void guest_sends(std::uint32_t number, std::uint32_t event, std::uint32_t dw1 = 0,
                     std::uint32_t dw2 = 0, std::uint32_t dw3 = 0);
    void guest_acknowledges(std::uint32_t number);
    void guest_resets_function(std::uint32_t number);
    void attach_client(std::uint32_t number, bool is_attached);

    // --- hooks and the log
    std::vector<std::string> log_lines;
    /// Returns the time in ns for which a run of the VF exceeds its quantum.
    std::function<std::uint64_t(std::uint32_t vf)> overrun;
    std::function<void(std::uint32_t vf)> on_start;
    std::function<void(const vgpu_hw_run_log_entry&)> on_run;  ///< called when a run is over
    std::function<void(std::uint32_t vf)> on_reset;            ///< a VF was reset, and its work is
                                                               ///< gone
    /// Callbacks for the core's calls; each may be empty. `request_done` replaces `done`,
    /// `stream_write` replaces `stream_out` and `stream_room`, and `stream_read` replaces
    /// `stream_in`. `notifications` counts the calls of `events` also without a callback.
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
    /// The memory at bus address `bus`; null if it is not DMA memory of the PF driver.
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
