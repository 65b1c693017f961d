// SPDX-License-Identifier: MIT
//
// GpuPf: builds the physical function and connects its blocks: the PCI function with the GPU-IOV
// capability, the register bank with the PF-only range, all VRAM behind BAR0 (every access is
// trapped), the run log and the bulk operations. Part of the composition root (gpu.h).
//
// When the PF's client leaves, interrupts, WAKE, the run log and the mappings of the client's
// memory end. The active VF runs until its quantum ends; without a quantum, it runs on. No other VF
// runs, because no driver switches worlds. The registers of BAR5 keep their values, except that
// LOG_WPTR is 0. The next client must enable interrupts, and write WAKE_ENABLE and LOG_SIZE again,
// although these two registers read as before.
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
    /// Requests of the PF's blocks to the device; called on the io thread (gpu.h).
    class Device {
    public:
        virtual ~Device() = default;
        /// iov::vf_bit() of every VF that has work, on or off the engine.
        [[nodiscard]] virtual std::uint32_t busy_vfs() = 0;
        /// Handles GPUIOV_RESET_DEVICE: queues a reset of every VF and returns. is_resetting() is
        /// true until the resets are done. PF registers, VF page tables and VRAM keep their
        /// content.
        virtual void reset_device() = 0;
        /// True while a reset that the PF ordered is queued or in progress, including an FLR of a
        /// single VF.
        [[nodiscard]] virtual bool is_resetting() const = 0;
        /// `mask`: vf_bit() of each VF for which new work raises GFX_VM_BUSY while the VF is off
        /// the engine.
        virtual void set_wake_mask(std::uint32_t mask) = 0;
        virtual void set_switch_mode(iov::SwitchMode mode) = 0;
    };

    /// All references must outlive the GpuPf. The caller runs operations().run() on the op thread.
    GpuPf(const Spec& spec, mem::DeviceVram& vram, iov::WorldSwitch& world_switch,
          const iov::VfControls& vfs, iov::FaultPlan& faults, const Clock& clock, Device& device);

    [[nodiscard]] pci::Function& function() { return function_; }
    [[nodiscard]] iov::Vsec& vsec() { return vsec_; }
    [[nodiscard]] iov::RunLog& log() { return log_; }
    [[nodiscard]] iov::BulkOps& operations() { return operations_; }

private:
    /// Sets the handlers of BAR0 and BAR5. BAR2 has none, because the PF has no doorbells.
    void make_bars(mem::DeviceVram& vram);

    // pci::FunctionOwner, pci::DmaSink
    Result<> attached(std::shared_ptr<Peer> peer) override;
    void detached() override;
    void reset(pci::ResetKind kind) override;
    void bars_moved() override { system_.set_bus_master(function_.is_bus_master()); }
    Result<> map(const vfio_user::DmaRange& range, int fd) override;
    void unmap(const vfio_user::DmaRange& range) override;
    void unmap_all() override;

    /// Raises an MSI-X vector of the PF. Any thread, with any lock held.
    void raise(gpuiov_vector vector);

    iov::FaultPlan& faults_;
    Device& device_;
    /// The PF client's memory, for the run log and bulk operations. VFs cannot reach this memory,
    /// so an unmap does not wait for the engine.
    mem::SystemMemory system_;
    regs::RegisterFile registers_{regs::Role::Pf};
    iov::RunLog log_;
    iov::BulkOps operations_;
    iov::PfRegisters pf_registers_;
    iov::Vsec vsec_;
    pci::Function function_;
};

}  // namespace vgpu::softgpu
