// SPDX-License-Identifier: MIT
//
// GpuPf: the physical function, its blocks wired together: PCI function with the GPU-IOV
// capability, register bank with the PF-only range, all VRAM behind BAR0 (trapped), run log, bulk
// operations. Part of the composition root (gpu.h).
//
// A PF client that goes away takes its interrupts and its memory with it and nothing else: VFs keep
// running, and the next client finds the banks as they are.
#pragma once

#include <functional>
#include <memory>

#include "pf-driver/softgpu/iov/bulk_ops.h"
#include "pf-driver/softgpu/iov/fault_plan.h"
#include "pf-driver/softgpu/iov/pf_registers.h"
#include "pf-driver/softgpu/iov/run_log.h"
#include "pf-driver/softgpu/iov/vsec.h"
#include "pf-driver/softgpu/mem/system_memory.h"
#include "pf-driver/softgpu/mem/vram.h"
#include "pf-driver/softgpu/pci/function.h"
#include "pf-driver/softgpu/regs/register_file.h"

namespace vgpu::softgpu {

class GpuPf final : public pci::FunctionOwner, public pci::DmaSink, public pci::ConfigHandler {
public:
    /// The same values as Gpu::Spec; checked there.
    struct Spec {
        std::uint32_t vfs = GPUIOV_MAX_VFS;
        Bytes vram;
        Bytes aperture;
        std::uint32_t compute_units = 8;
        iov::SwitchMode switch_mode = iov::SwitchMode::Pointer;
    };
    /// What the PF's blocks ask of the device; called on the io thread.
    struct Device {
        /// iov::vf_bit() of VFs that have work.
        std::function<std::uint32_t()> busy_vfs;
        /// GPUIOV_RESET_WHOLE; returns before the reset is done.
        std::function<void()> reset_device;
        std::function<bool()> is_resetting;
        std::function<void(std::uint32_t)> set_wake_mask;
        std::function<std::uint32_t(VfId, RegisterIndex)> mailbox_read;
        std::function<void(VfId, RegisterIndex, std::uint32_t)> mailbox_write;
    };

    /// All references outlive the PF. The caller starts the op thread, which runs
    /// operations().run().
    GpuPf(const Spec& spec, mem::DeviceVram& vram, iov::WorldSwitch& scheduler, iov::VfPanel& vfs,
          iov::FaultPlan& faults, const Clock& clock, Device device);
    ~GpuPf() override;

    [[nodiscard]] pci::Function& function() { return function_; }
    [[nodiscard]] iov::Vsec& vsec() { return vsec_; }
    [[nodiscard]] iov::RunLog& log() { return log_; }
    [[nodiscard]] iov::BulkOps& operations() { return operations_; }
    /// Accesses outside VRAM and refused registers, since the device started.
    [[nodiscard]] std::uint64_t bad_accesses() const {
        return bad_accesses_ + registers_.refused();
    }

private:
    /// Handlers of BAR0 and BAR5; see gpu_pf.cpp. BAR2 has none: the PF has no doorbells.
    class Vram;
    class Registers;

    // pci::FunctionOwner, pci::DmaSink, pci::ConfigHandler
    Result<> attached(std::shared_ptr<vfio_user::Peer> peer) override;
    void detached() override;
    void reset(pci::ResetKind kind) override;
    Result<> map(const vfio_user::DmaRange& range, int fd) override;
    void unmap(const vfio_user::DmaRange& range) override;
    void unmap_all() override;
    void config_read(std::uint32_t offset, std::span<std::byte> out) override;
    void config_write(std::uint32_t offset, std::span<const std::byte> data) override;

    /// MSI-X towards the PF's client; any thread, any lock held.
    void raise(gpuiov_vector vector);

    mem::DeviceVram& device_vram_;
    iov::FaultPlan& faults_;
    Device device_;
    /// The PF client's memory: where run log and bulk operations go. VFs cannot reach it, so
    /// unmapping waits for no engine.
    mem::SystemMemory system_;
    regs::RegisterFile registers_{regs::Role::Pf};
    iov::RunLog log_;
    iov::BulkOps operations_;
    iov::PfRegisters pf_registers_;
    iov::Vsec vsec_;
    std::unique_ptr<Vram> vram_bar_;
    std::unique_ptr<Registers> register_bar_;
    pci::Function function_;
    std::uint64_t bad_accesses_ = 0;
};

}  // namespace vgpu::softgpu
