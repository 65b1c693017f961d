// SPDX-License-Identifier: MIT
//
// GpuVf: one VF, its blocks wired together: PCI function, register bank, VRAM slice, GPUVM,
// interrupt rings, PSP, copy engines, video blocks, command processor, mailbox, doorbells. Part of
// the composition root (gpu.h): it decides nothing, it connects.
//
// One lock per VF ("VF lock") is held for every register, doorbell, packet and mailbox action, by
// the io thread and the engine's workers alike. Locks come in this order: world switch (action),
// VF, then leaves (engine, interrupts, VSEC). In true-copy mode a VF that is off the engine exists
// only as a saved stream; enter() brings it back before anybody can see poison.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "pf-driver/hw/gpuiov.h"
#include "pf-driver/softgpu/base/clock.h"
#include "pf-driver/softgpu/base/pi_mutex.h"
#include "pf-driver/softgpu/base/units.h"
#include "pf-driver/softgpu/cp/command_processor.h"
#include "pf-driver/softgpu/cp/engine.h"
#include "pf-driver/softgpu/cp/services.h"
#include "pf-driver/softgpu/ih/interrupt_handler.h"
#include "pf-driver/softgpu/iov/doorbells.h"
#include "pf-driver/softgpu/iov/fault_plan.h"
#include "pf-driver/softgpu/iov/mailbox.h"
#include "pf-driver/softgpu/iov/vf_panel.h"
#include "pf-driver/softgpu/mem/gpuvm.h"
#include "pf-driver/softgpu/mem/system_memory.h"
#include "pf-driver/softgpu/mem/vf_vram.h"
#include "pf-driver/softgpu/pci/function.h"
#include "pf-driver/softgpu/psp/psp.h"
#include "pf-driver/softgpu/regs/bus_registers.h"
#include "pf-driver/softgpu/regs/register_file.h"
#include "pf-driver/softgpu/regs/rlcg.h"
#include "pf-driver/softgpu/regs/shader_arrays.h"
#include "pf-driver/softgpu/sdma/engine.h"
#include "pf-driver/softgpu/video/engine.h"

namespace vgpu::softgpu {

class GpuVf final : public pci::FunctionOwner,
                    public pci::DmaSink,
                    public iov::DoorbellListener,
                    private cp::Services {
public:
    struct Spec {
        VfId vf{1};
        Bytes aperture;
        std::uint32_t compute_units = 8;
        std::uint32_t workers = 1;
        iov::DoorbellMode doorbell_mode = iov::DoorbellMode::Trap;
    };
    /// What a VF tells the device. mailbox_*, work_arrived, kick: with the VF's lock held.
    struct Device {
        std::function<void(VfId)> mailbox_valid;
        std::function<void(VfId)> mailbox_withdrawn;
        std::function<void(VfId)> mailbox_acknowledged;
        std::function<void(VfId)> work_arrived;
        std::function<void()> quiesce;                 ///< every worker has passed a stop point
        std::function<void(VfId)> attachment_changed;  ///< io thread, no lock held
        std::function<void(VfId)> client_reset;        ///< io thread, no lock held
    };
    /// What a reset leaves alone besides VRAM.
    enum class ResetScope : std::uint8_t {
        FunctionLevel,  ///< the mailbox lives on: PF and driver talk across it
        NewOwner,       ///< nothing of the last owner stays
    };

    /// `vram`, `clock`, `faults` outlive the VF.
    [[nodiscard]] static Result<std::unique_ptr<GpuVf>> create(const Spec& spec,
                                                               mem::DeviceVram& vram,
                                                               const Clock& clock,
                                                               iov::FaultPlan& faults,
                                                               Device device);
    ~GpuVf() override;

    [[nodiscard]] VfId vf() const { return spec_.vf; }
    [[nodiscard]] pci::Function& function() { return function_; }
    [[nodiscard]] cp::Context& context() { return context_; }
    [[nodiscard]] bool is_attached() const { return is_attached_; }

    /// The VF lock, with the VF's state in place.
    [[nodiscard]] std::unique_lock<PiMutex> enter();

    // --- the PF's hand; io thread -------------------------------------------------------------
    [[nodiscard]] Result<> commit_vram(DeviceOffset root, Bytes size);
    void release_vram();
    void set_doorbell_pages(std::uint32_t first, std::uint32_t count);
    void set_cu_mask(std::uint64_t mask);
    void set_gates(std::uint32_t gates);
    [[nodiscard]] std::uint32_t gates() const { return gates_; }
    [[nodiscard]] std::uint32_t mailbox_read(RegisterIndex index);
    void mailbox_write(RegisterIndex index, std::uint32_t value);
    [[nodiscard]] iov::VfStatistics statistics();
    /// One stay on the engine is over.
    void account(const vgpu_hw_run_log_entry& entry);
    /// A client reset or left the function: its way to registers and doorbells closes until the PF
    /// has looked at it.
    void shut_gates_after_client();
    [[nodiscard]] mem::VfVram& vram() { return vram_; }

    // --- world switch; the VF is not on the engine ---------------------------------------------
    void activate();    ///< latched doorbells ring; before Engine::run
    void deactivate();  ///< after Engine::park
    void save_and_poison();
    void load();
    void reset_blocks(ResetScope scope);
    [[nodiscard]] std::vector<std::byte> save_stream();
    [[nodiscard]] Result<> load_stream(std::span<const std::byte> stream);
    [[nodiscard]] bool has_work();
    /// Work that can only be found by polling memory, or rings in mapped doorbell pages.
    [[nodiscard]] bool needs_polling();
    /// Looks at what an inactive VF waits for; if it can go on, work_arrived() is told.
    void poll_waits();
    [[nodiscard]] bool is_stuck() const { return is_sdma_stuck_; }
    /// Poll mode: takes the rings the client left in its pages.
    void scan_doorbells(iov::Doorbells::Scan how);
    [[nodiscard]] iov::DoorbellMode doorbell_mode() const { return doorbells_.mode(); }

    // --- counters for the control socket --------------------------------------------------------
    struct Details {
        iov::Doorbells::Counters doorbells;
        ih::InterruptHandler::State interrupts;
        std::uint64_t msi_delivered = 0;
        std::uint64_t msi_lost = 0;
        std::uint64_t mmio_reads = 0;
        std::uint64_t mmio_writes = 0;
        std::uint64_t invalidations = 0;
        std::uint64_t packets = 0;
        std::uint64_t dispatches = 0;
        std::uint64_t sdma_bytes = 0;
        std::uint64_t dma_mappings = 0;
    };
    [[nodiscard]] Details details();

private:
    /// A BAR as a pair of member functions.
    class Bar;
    class SdmaSource;
    class VideoSource;
    class Messages;

    GpuVf(const Spec& spec, mem::DeviceVram& vram, const Clock& clock, iov::FaultPlan& faults,
          Device device);
    void wire();

    // pci::FunctionOwner, pci::DmaSink
    Result<> attached(std::shared_ptr<vfio_user::Peer> peer) override;
    void detached() override;
    void reset(pci::ResetKind kind) override;
    Result<> map(const vfio_user::DmaRange& range, int fd) override;
    void unmap(const vfio_user::DmaRange& range) override;
    void unmap_all() override;

    // iov::DoorbellListener
    bool ring_interrupts(const iov::Ring& ring) override;
    void ring(const iov::Ring& ring) override;
    void latched_work() override;

    // cp::Services
    std::unique_ptr<mem::Port> make_port(Vmid vmid) override;
    void set_process(Vmid vmid, std::uint64_t root, std::uint16_t pasid) override;
    std::uint16_t pasid_of(Vmid vmid) const override;
    void invalidate_pasid(std::uint16_t pasid) override;
    void report_fault(Vmid vmid, const mem::Fault& fault) override;
    void raise(const ih_iv_entry& entry) override;
    bool map_sdma(const cp::SdmaQueue& queue) override;
    void unmap_sdma(cp::SdmaEngine engine, DoorbellIndex doorbell) override;
    void work_arrived() override;

    // BARs
    void vram_read(std::uint64_t offset, std::span<std::byte> out);
    void vram_write(std::uint64_t offset, std::span<const std::byte> data);
    [[nodiscard]] std::optional<pci::MappableMemory> vram_memory() const;
    void doorbell_read(std::uint64_t offset, std::span<std::byte> out);
    void doorbell_write(std::uint64_t offset, std::span<const std::byte> data);
    [[nodiscard]] std::optional<pci::MappableMemory> doorbell_memory() const;
    void register_read(std::uint64_t offset, std::span<std::byte> out);
    void register_write(std::uint64_t offset, std::span<const std::byte> data);

    [[nodiscard]] regs::Gate register_gate() const;
    void vram_replaced();
    void raise_msi();
    void interrupt_mailbox(ih_source source);
    void on_sdma_fault(const mem::VmFault& fault);
    void on_video_fault(mem::VmFault fault);
    void finish_bank_reset();
    void keep_counters();
    [[nodiscard]] iov::VfStatistics statistics_locked() const;
    [[nodiscard]] bool has_work_locked();
    void save_and_poison_locked();
    void poison_locked();
    void reset_locked(ResetScope scope);
    void save_engine(Writer& out) const;
    [[nodiscard]] Result<> load_engine(Reader& in);
    void bring_back();

    const Spec spec_;
    const Clock& clock_;
    iov::FaultPlan& faults_;
    const Device device_;
    mutable PiMutex lock_;

    regs::RegisterFile registers_{regs::Role::Vf};
    mem::SystemMemory system_;
    mem::VfVram vram_;
    mem::GpuVm gpuvm_;
    std::unique_ptr<mem::Port> kernel_gfx_;
    std::unique_ptr<mem::Port> kernel_mm_;
    mem::PortSet mm_ports_;
    regs::BusRegisters bus_{registers_};
    regs::Rlcg rlcg_;
    regs::ShaderArrays shader_arrays_{registers_};
    ih::InterruptHandler interrupts_;
    psp::Psp psp_;
    std::array<std::unique_ptr<sdma::Engine>, SDMA_ENGINES> sdma_;
    video::Engine video_;
    cp::CommandProcessor cp_;
    iov::Mailbox mailbox_;
    iov::Doorbells doorbells_{*this};
    std::vector<std::unique_ptr<cp::PacketSource>> sources_;
    std::vector<std::unique_ptr<Bar>> bars_;
    pci::Function function_;
    cp::Context context_;

    std::atomic<std::uint32_t> gates_{0};
    std::atomic<bool> is_attached_{false};
    std::atomic<bool> is_sdma_stuck_{false};
    std::vector<std::byte> saved_;  // VF lock; true copy: the state while the live one is poison
    bool saved_has_work_ = false;   // VF lock; as it was when it was saved
    iov::VfStatistics saved_statistics_;  // likewise
    iov::VfStatistics past_;  // VF lock; of blocks that were reset since, and of finished runs
    std::atomic<std::uint64_t> bad_accesses_{0};
    std::uint64_t mmio_reads_ = 0;   // VF lock
    std::uint64_t mmio_writes_ = 0;  // VF lock
};

}  // namespace vgpu::softgpu
