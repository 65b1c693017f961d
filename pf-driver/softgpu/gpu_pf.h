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
    struct Spec {
        std::uint32_t vfs = GPUIOV_MAX_VFS;
        Bytes vram;
        Bytes aperture;
        std::uint32_t compute_units = 8;
        iov::SwitchMode switch_mode = iov::SwitchMode::Pointer;
    };
    struct Device {
        std::function<void()> quiesce;
        std::function<std::uint32_t()> busy_vfs;
        std::function<void()> reset_device;
        std::function<bool()> is_resetting;
        std::function<void(std::uint32_t)> set_wake_mask;
        std::function<std::uint32_t(VfId, RegisterIndex)> mailbox_read;
        std::function<void(VfId, RegisterIndex, std::uint32_t)> mailbox_write;
    };

    GpuPf(const Spec& spec, mem::DeviceVram& vram, iov::WorldSwitch& scheduler, iov::VfPanel& vfs,
          iov::FaultPlan& faults, const Clock& clock, Device device);
    ~GpuPf() override;

    [[nodiscard]] pci::Function& function() { return function_; }
    [[nodiscard]] iov::Vsec& vsec() { return vsec_; }
    [[nodiscard]] iov::RunLog& log() { return log_; }
    [[nodiscard]] iov::BulkOps& operations() { return operations_; }
    [[nodiscard]] std::uint64_t bad_accesses() const {
        return bad_accesses_ + registers_.refused();
    }

private:
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

    void raise(gpuiov_vector vector);

    mem::DeviceVram& device_vram_;
    iov::FaultPlan& faults_;
    Device device_;
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
