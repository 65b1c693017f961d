// SPDX-License-Identifier: MIT
//
// Gpu: the composition root of the software GPU. It builds the PF and the VFs, connects their
// blocks, runs the threads and serves the sockets. The blocks in the subfolders know only the
// blocks that they use. gpu_vf and gpu_pf are parts of the composition root, too.
//
//   io thread (run())   all sockets: configuration space, BARs, DMA maps, interrupt set-up; resets
//                       of VFs by their clients; world switch commands that can be executed at once
//   engine workers      packets and waves of the VF on the engine (cp::Engine)
//   quantum timer       parks the VF when its quantum is over (cp::Engine)
//   device thread       all other world switch commands, FLRs that the PF orders
//   op thread           bulk operations of the PF (VGPU_OP_* in hw/gpuiov.h)
//   poller              waits of VFs that are off the engine (WAKE), mapped doorbells
//
// Lock order: action lock of the world switch -> VF lock -> leaf locks (such as those of the
// engine, the interrupts and the run log).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "pf-driver/softgpu/base/busy_since.h"
#include "pf-driver/softgpu/base/pi_mutex.h"
#include "pf-driver/softgpu/gpu_pf.h"
#include "pf-driver/softgpu/gpu_vf.h"
#include "pf-driver/softgpu/host_view/host_view.h"
#include "pf-driver/softgpu/isa/translate/code_memory.h"
#include "pf-driver/softgpu/vfio_user/server.h"

namespace vgpu::softgpu {

/// How softgpu executes machine code. Both tiers give the same results (docs/isa.md, "Two tiers").
enum class IsaTier : std::uint8_t {
    Interpreter,
    Translator,  ///< translates hot code to host code, interprets the rest
};

/// The device. Its parts call Gpu only through interfaces, so that no part depends on Gpu:
/// GpuVf::Device and GpuPf::Device (requests of VFs and PF), SwitchPort (the device as the world
/// switch drives it) and Listener (reports of the engine).
class Gpu final : private GpuVf::Device,
                  private GpuPf::Device,
                  private iov::SwitchPort,
                  private cp::Engine::Listener {
public:
    /// The options of the command line (softgpu --help); constant after create().
    struct Spec {
        /// Appears only in log lines and in answers of the control socket.
        std::string name = "gpu0";
        /// 1 to 16; TotalVFs of the SR-IOV capability (PCIe 6.0, 9.3.3.6). All VFs exist as long as
        /// the device; NumVFs only sets how many of them the host view shows on its bus.
        std::uint32_t vfs = GPUIOV_MAX_VFS;
        /// A multiple of 16 MiB (VGPU_VRAM_UNIT_BYTES), at least 32 MiB: one unit for the PF and
        /// one for a VF.
        Bytes vram = 2048_MiB;
        /// Size of each VF's BAR0, a power of two of at least 1 MiB; also the maximum VRAM of a VF.
        Bytes aperture = 256_MiB;
        /// Number of CUs of the device, 1 to 64. Each VF sees the CUs of its CU mask; masks of VFs
        /// may overlap.
        std::uint32_t compute_units = 8;
        /// Worker threads of the engine, 1 to 64. Their number decides how fast waves run;
        /// `compute_units` only limits how many waves are resident.
        std::uint32_t threads = 2;
        /// Time from when a VF that has worked runs out of work until the device raises GFX_VM_IDLE
        /// (cp::Engine::Spec); at most 1 s.
        std::chrono::microseconds idle_grace{100};
        /// An existing directory whose lock the caller holds (main.cpp), so stale sockets in it may
        /// be replaced.
        std::string socket_dir;
        /// The mode at power-on; the PF may change it with VGPU_SWITCH_MODE.
        iov::SwitchMode switch_mode = iov::SwitchMode::Pointer;
        iov::DoorbellMode doorbell_mode = iov::DoorbellMode::Trap;
        /// Translator falls back to Interpreter, with a warning, if the processor lacks AVX-512 or
        /// the host refuses executable memory.
        IsaTier isa_tier = IsaTier::Interpreter;
        /// If set, the device also serves the whole card to a VM, at host.sock.
        std::optional<host_view::EndpointKind> host_view;
    };

    /// EINVAL if an option is out of range; the message names the option. Other errors: the errno
    /// of a failed system call. `clock` must outlive the GPU.
    [[nodiscard]] static Result<std::unique_ptr<Gpu>> create(const Spec& spec, const Clock& clock);
    ~Gpu() override;
    Gpu(const Gpu&) = delete;
    Gpu& operator=(const Gpu&) = delete;

    /// Binds pf.sock, vf1.sock ... and, if spec().host_view is set, host.sock in the socket
    /// directory.
    [[nodiscard]] Result<> listen();
    /// Starts the engine and all threads. Call it once, before run(); only run() serves clients.
    void start();
    /// Serves until stop(). The calling thread is the io thread. On return all sockets are still
    /// open; the destructor closes them.
    void run();
    void stop();  ///< makes run() return; any thread

    [[nodiscard]] const Spec& spec() const { return spec_; }
    [[nodiscard]] vfio_user::Server& server() { return *server_; }
    /// Any thread.
    [[nodiscard]] iov::FaultPlan& faults() { return faults_; }
    /// Plans a fault; FaultPoint::Device takes the PF's link down at once. Fails like
    /// FaultPlan::add() (iov/fault_plan.h). io thread.
    [[nodiscard]] Result<> inject(const iov::PlannedFault& fault);
    /// `vf` is 1 to spec().vfs, not the PF. The reference is valid as long as the device exists.
    [[nodiscard]] GpuVf& vf(VfId vf) { return *vfs_[raw(vf) - 1u]; }
    [[nodiscard]] const iov::WorldSwitch& world_switch() const { return world_switch_; }
    /// RunLog::lost() of the PF. Any thread.
    [[nodiscard]] std::uint64_t lost_log_entries() { return pf_->log().lost(); }

private:
    /// The constructor cannot fail; build() creates the parts whose creation can fail. Neither
    /// starts a thread, so a half-built device can be destroyed.
    Gpu(const Spec& spec, const Clock& clock);
    [[nodiscard]] Result<> build();
    void make_code_memory();
    void build_host_view();

    // GpuVf::Device and GpuPf::Device document these functions.
    iov::Vsec& vsec() override { return pf_->vsec(); }
    void work_arrived(VfId vf) override;
    void quiesce(VfId vf) override { engine_->quiesce(vf); }
    void find_work(VfId vf) override;
    void queue_flr(VfId vf) override;
    void wake_poller() override;
    void hang_up(pci::Function& function) override { server_->hang_up(function); }
    std::uint32_t busy_vfs() override;
    void reset_device() override;
    bool is_resetting() const override;
    void set_wake_mask(std::uint32_t mask) override;
    void set_switch_mode(iov::SwitchMode mode) override { switch_mode_ = mode; }

    // iov::SwitchPort documents these functions. The world switch calls them with its action lock
    // held.
    std::optional<cp::RunReport> park() override;
    std::uint64_t run(VfId vf) override;
    void save(VfId vf) override;
    void load(VfId id) override { vf(id).load(); }
    void clear(VfId id) override { vf(id).reset_blocks(ResetScope::FunctionLevel); }
    bool has_work(VfId id) override { return vf(id).has_work(); }
    bool is_stuck(VfId id) override { return vf(id).is_stuck(); }
    bool is_switch_short() const override { return switch_mode_ == iov::SwitchMode::Pointer; }
    void interrupt(std::uint32_t bits) override { vsec().interrupt(bits); }
    void record(const vgpu_hw_run_log_entry& entry) override;

    // cp::Engine::Listener: called on the engine's quantum timer and worker threads, without any
    // lock.
    void quantum_expired(const cp::RunReport& report) override;
    void out_of_work(VfId vf) override;

    /// Records that the VF has left the engine. May be called several times per time slice; only
    /// the first call has an effect.
    void mark_parked(VfId vf);
    /// Sets the busy bit of a VF that is off the engine. Raises WAKE if the bit was clear and the
    /// PF has enabled WAKE for the VF. So further doorbells raise no WAKE while the bit is set.
    void mark_busy(VfId vf);

    // threads
    void device_loop();
    void poll_loop();
    bool poll_once();
    void wake_device();
    /// Clears the VF's bit FLR after flr(). Device thread.
    void end_flr(VfId vf);

    const Spec spec_;
    const Clock& clock_;
    const std::shared_ptr<BusySince> park_ = std::make_shared<BusySince>();  ///< of the engine
    /// The destructor destroys the server before the VFs, because the server's sessions call VFs.
    std::unique_ptr<vfio_user::Server> server_;
    iov::FaultPlan faults_;
    std::unique_ptr<mem::DeviceVram> vram_;
    std::unique_ptr<isa::CodeMemory> code_;  ///< nullptr: waves are interpreted
    iov::WorldSwitch world_switch_;
    std::unique_ptr<GpuPf> pf_;
    std::vector<std::unique_ptr<GpuVf>> vfs_;
    std::unique_ptr<host_view::HostView> host_view_;
    std::unique_ptr<cp::Engine> engine_;

    std::atomic<iov::SwitchMode> switch_mode_;
    std::atomic<VfId> active_{kPf};  // the VF on the engine, kPf: none
    PiMutex idle_mutex_;  // leaf lock; a report of an idle VF and its park exclude each other
    std::atomic<std::uint32_t> busy_{0};       // vf_bit() of VFs off the engine that have work
    std::atomic<std::uint32_t> wake_mask_{0};  // vf_bit() of VFs whose work raises WAKE

    /// Guards the requests to the device thread: the members from has_device_work_ to
    /// is_device_reset_. Priority inheriting, because that thread has real-time priority.
    PiMutex device_mutex_;  // leaf lock
    PiCondition device_wake_;
    bool has_device_work_ = false;
    /// VFs that wait for a reset; each VF at most once, even if several resets were requested.
    std::vector<VfId> flrs_;
    bool is_device_reset_ = false;  // true if a device reset has filled flrs_

    /// Guards must_poll_. Priority inheriting, because real-time threads wake the poller, which is
    /// a normal thread.
    PiMutex poll_mutex_;  // leaf lock
    PiCondition poll_wake_;
    bool must_poll_ = false;

    std::atomic<bool> is_stopping_{false};
    std::thread device_thread_;
    std::thread op_thread_;
    std::thread poll_thread_;
};

}  // namespace vgpu::softgpu
