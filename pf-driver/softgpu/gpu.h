// SPDX-License-Identifier: MIT
//
// Gpu: the composition root of the software GPU. It builds the PF and the VFs, connects their
// blocks, runs the threads and serves the sockets; no other file of softgpu knows more than its
// neighbours (gpu_vf and gpu_pf are parts of this one).
//
//   io thread (run())   all sockets: configuration space, BARs, DMA maps, interrupts assignment
//   engine workers      packets and waves of the VF on the engine (cp::Engine)
//   device thread       world switch commands, FLRs
//   op thread           bulk operations of the PF
//   poller              memory waits and mapped doorbells of VFs that are off the engine (WAKE)
//
// Locks: world switch action -> VF -> leaves (engine, interrupts, VSEC, run log).
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "pf-driver/softgpu/base/pi_mutex.h"
#include "pf-driver/softgpu/gpu_pf.h"
#include "pf-driver/softgpu/gpu_vf.h"
#include "pf-driver/softgpu/host_view/host_view.h"
#include "pf-driver/softgpu/vfio_user/server.h"

namespace vgpu::softgpu {

class Gpu final : private iov::VfPanel, private iov::SwitchPort, private cp::Engine::Listener {
public:
    struct Spec {
        std::string name = "gpu0";
        std::uint32_t vfs = GPUIOV_MAX_VFS;
        Bytes vram = 2048_MiB;
        Bytes aperture = 256_MiB;
        std::uint32_t compute_units = 8;
        std::uint32_t threads = 2;
        std::string socket_dir;
        iov::SwitchMode switch_mode = iov::SwitchMode::Pointer;
        iov::DoorbellMode doorbell_mode = iov::DoorbellMode::Trap;
        /// Serve the whole card to a VM as well, at host.sock.
        std::optional<host_view::EndpointKind> host_view;
    };

    /// EINVAL names the option that is wrong. `clock` outlives the GPU.
    [[nodiscard]] static Result<std::unique_ptr<Gpu>> create(const Spec& spec, const Clock& clock);
    ~Gpu() override;
    Gpu(const Gpu&) = delete;
    Gpu& operator=(const Gpu&) = delete;

    /// Binds pf.sock, vf1.sock ... and, if asked for, host.sock in the socket directory.
    [[nodiscard]] Result<> listen();
    /// Serves until stop(). The calling thread is the io thread.
    void run();
    void stop();  ///< any thread

    [[nodiscard]] const Spec& spec() const { return spec_; }
    [[nodiscard]] vfio_user::Server& server() { return *server_; }
    [[nodiscard]] iov::FaultPlan& faults() { return faults_; }
    /// Plans a fault; a loss of the device begins at once. io thread.
    [[nodiscard]] Result<> inject(const iov::PlannedFault& fault);
    [[nodiscard]] GpuVf& vf(VfId vf) { return *vfs_[raw(vf) - 1u]; }
    [[nodiscard]] const iov::WorldSwitch& world_switch() const { return world_switch_; }
    [[nodiscard]] std::uint64_t lost_log_entries() { return pf_->log().lost(); }

private:
    /// What the PF sees in VGPU_RESET.
    struct ResetFlags {
        std::atomic<bool> is_running{false};
        std::atomic<bool> is_pending{false};
    };

    Gpu(const Spec& spec, const Clock& clock);
    [[nodiscard]] Result<> build();
    void build_host_view();
    [[nodiscard]] GpuVf::Device device_of_vf();
    [[nodiscard]] GpuPf::Device device_of_pf();

    // iov::VfPanel
    Result<> commit_vram(VfId vf, DeviceOffset root, Bytes size) override;
    void release_vram(VfId vf) override;
    void set_doorbell_pages(VfId vf, std::uint32_t first, std::uint32_t count) override;
    void set_cu_mask(VfId vf, std::uint64_t mask) override;
    void set_quantum(VfId vf, std::uint32_t quantum_us) override;
    void set_gates(VfId vf, std::uint32_t gates) override;
    std::uint32_t gates(VfId vf) const override;
    void request_flr(VfId vf) override;
    void acknowledge_flr(VfId vf) override;
    std::uint32_t reset_flags(VfId vf) const override;
    std::uint32_t status(VfId vf) const override;
    iov::VfStatistics statistics(VfId vf) const override;
    void set_switch_mode(iov::SwitchMode mode) override;
    bool read_vram(VfId vf, VfOffset offset, std::span<std::byte> out) override;
    bool write_vram(VfId vf, VfOffset offset, std::span<const std::byte> data) override;
    Result<> scrub_state(VfId vf) override;
    Result<std::vector<std::byte>> save_state(VfId vf) override;
    Result<> load_state(VfId vf, std::span<const std::byte> stream) override;

    // iov::SwitchPort
    std::optional<iov::RunSummary> park() override;
    std::uint64_t run(VfId vf) override;
    void save(VfId vf) override;
    void load(VfId vf) override;
    void clear(VfId vf) override;
    bool has_work(VfId vf) override;
    bool is_stuck(VfId vf) override;
    void interrupt(std::uint32_t bits) override;
    void record(const vgpu_hw_run_log_entry& entry) override;

    // cp::Engine::Listener
    void quantum_expired(const cp::RunReport& report) override;
    void out_of_work(VfId vf) override;

    // events of VFs
    void work_arrived(VfId vf);
    void client_reset(VfId vf);
    void set_wake_mask(std::uint32_t mask);
    void reset_device();
    [[nodiscard]] bool is_resetting() const;
    [[nodiscard]] std::uint32_t busy_vfs();

    void left_engine(VfId vf);
    void mark_busy(VfId vf);
    [[nodiscard]] iov::RunSummary summary_of(const cp::RunReport& report);
    [[nodiscard]] ResetFlags& flags(VfId vf) { return reset_flags_[raw(vf)]; }

    // threads
    void device_loop();
    void poll_loop();
    bool poll_once();
    void wake_device();
    void wake_poller();

    const Spec spec_;
    const Clock& clock_;
    std::unique_ptr<vfio_user::Server> server_;
    iov::FaultPlan faults_;
    std::unique_ptr<mem::DeviceVram> vram_;
    iov::WorldSwitch world_switch_;
    std::unique_ptr<GpuPf> pf_;
    std::vector<std::unique_ptr<GpuVf>> vfs_;
    std::unique_ptr<host_view::HostView> host_view_;
    std::unique_ptr<cp::Engine> engine_;

    std::atomic<iov::SwitchMode> switch_mode_;
    std::array<std::atomic<std::uint32_t>, GPUIOV_MAX_VFS + 1> quantum_us_{};
    std::array<ResetFlags, GPUIOV_MAX_VFS + 1> reset_flags_;
    std::atomic<VfId> active_{kPf};       // on the engine, kPf: none
    std::atomic<std::uint32_t> busy_{0};  // vf_bit() of VFs off the engine that have work
    std::atomic<std::uint32_t> wake_mask_{0};

    PiMutex run_mutex_;  // leaf
    std::uint64_t run_id_ = 0;
    Nanoseconds run_began_{};

    PiMutex device_mutex_;  // leaf
    PiCondition device_wake_;
    bool has_device_work_ = false;
    std::vector<VfId> flrs_;
    bool is_whole_reset_ = false;  // flrs_ are parts of one

    std::mutex poll_mutex_;  // leaf
    std::condition_variable poll_wake_;
    bool must_poll_ = false;

    std::atomic<bool> is_stopping_{false};
    std::thread device_thread_;
    std::thread op_thread_;
    std::thread poll_thread_;
};

}  // namespace vgpu::softgpu
