// SPDX-License-Identifier: MIT
//
// GpuPf: the physical function with its blocks connected. It has the PCI function with the GPU-IOV
// capability, the register bank with the PF-only range, all VRAM behind BAR0 (trapped), the run log
// and the bulk operations. Part of the composition root (gpu.h).
//
// When the PF's client leaves, only its interrupts, WAKE, the run log and the mappings of its
// memory end. The active VF runs to the end of its quantum, and nobody switches to another VF. The
// next client finds the register banks unchanged.
#pragma once

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

class GpuPf final : public pci::FunctionOwner, public pci::DmaSink {
public:
    /// The same values as in Gpu::Spec; Gpu has checked them.
    using Spec = iov::PfRegisters::Spec;
    /// Requests of the PF's blocks to the device; called on the io thread.
    class Device {
    public:
        virtual ~Device() = default;
        /// The mask with iov::vf_bit() of every VF that has work, on the engine or off it.
        [[nodiscard]] virtual std::uint32_t busy_vfs() = 0;
        /// GPUIOV_RESET_DEVICE: queues a reset of every VF and returns; is_resetting() is true
        /// until the resets are done. The PF's own registers, VF page tables and VRAM stay.
        virtual void reset_device() = 0;
        /// True while any VF waits for a reset, also for an FLR of that VF alone.
        [[nodiscard]] virtual bool is_resetting() const = 0;
        /// `mask` holds vf_bit() of each VF whose work raises GFX_VM_BUSY while that VF is off the
        /// engine.
        virtual void set_wake_mask(std::uint32_t mask) = 0;
        virtual void set_switch_mode(iov::SwitchMode mode) = 0;
    };

    /// All references outlive the PF. The caller starts the op thread, which runs
    /// operations().run().
    GpuPf(const Spec& spec, mem::DeviceVram& vram, iov::WorldSwitch& world_switch,
          const iov::VfControls& vfs, iov::FaultPlan& faults, const Clock& clock, Device& device);

    [[nodiscard]] pci::Function& function() { return function_; }
    [[nodiscard]] iov::Vsec& vsec() { return vsec_; }
    [[nodiscard]] iov::RunLog& log() { return log_; }
    [[nodiscard]] iov::BulkOps& operations() { return operations_; }

private:
    /// BAR0 and BAR5. BAR2 has no handler, because the PF has no doorbells.
    void make_bars(mem::DeviceVram& vram);

    // pci::FunctionOwner, pci::DmaSink
    Result<> attached(std::shared_ptr<Peer> peer) override;
    void detached() override;
    void reset(pci::ResetKind kind) override;
    Result<> map(const vfio_user::DmaRange& range, int fd) override;
    void unmap(const vfio_user::DmaRange& range) override;
    void unmap_all() override;

    /// Raises an MSI-X vector of the PF. Any thread, with any lock held.
    void raise(gpuiov_vector vector);

    iov::FaultPlan& faults_;
    Device& device_;
    /// The PF client's memory, for the run log and bulk operations. VFs cannot reach it, so an
    /// unmap does not wait for the engine.
    mem::SystemMemory system_;
    regs::RegisterFile registers_{regs::Role::Pf};
    iov::RunLog log_;
    iov::BulkOps operations_;
    iov::PfRegisters pf_registers_;
    iov::Vsec vsec_;
    pci::Function function_;
};

}  // namespace vgpu::softgpu
