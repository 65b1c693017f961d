// SPDX-License-Identifier: MIT
//
// GpuVf: builds one VF and connects its blocks: PCI function, register bank, VRAM slice, GPUVM,
// interrupt rings, PSP, copy engines, video blocks, command processor, mailbox and doorbells. Part
// of the composition root (gpu.h).
//
// Each VF has one lock, the "VF lock". Every thread holds this lock during an action on registers,
// doorbells, packets or the mailbox of the VF, except during Doorbells::post(). Lock order: action
// lock of the world switch, VF lock, leaf locks (such as those of engine and interrupts). In
// true-copy mode (iov::SwitchMode), SAVE writes the state of the VF's blocks to a stream and
// poisons the blocks (VfBlocks::poison()); enter() loads the stream before a caller can see poison.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/gpuiov.h"
#include "pf-driver/softgpu/base/clock.h"
#include "pf-driver/softgpu/base/pi_mutex.h"
#include "pf-driver/softgpu/base/units.h"
#include "pf-driver/softgpu/cp/engine.h"
#include "pf-driver/softgpu/cp/services.h"
#include "pf-driver/softgpu/gpu_vf_blocks.h"
#include "pf-driver/softgpu/iov/doorbells.h"
#include "pf-driver/softgpu/iov/fault_plan.h"
#include "pf-driver/softgpu/iov/mailbox.h"
#include "pf-driver/softgpu/iov/vf_control.h"
#include "pf-driver/softgpu/iov/vsec.h"
#include "pf-driver/softgpu/iov/world_switch.h"
#include "pf-driver/softgpu/mem/system_memory.h"
#include "pf-driver/softgpu/mem/vf_vram.h"
#include "pf-driver/softgpu/pci/function.h"

namespace vgpu::softgpu {

class GpuVf final : public iov::VfControl,
                    public pci::FunctionOwner,
                    public pci::DmaSink,
                    public iov::DoorbellListener,
                    private cp::Services {
public:
    /// Values from Gpu::Spec, constant after create(). `aperture` is the size of BAR0;
    /// `compute_units` is the number of CUs of the device.
    struct Spec {
        VfId vf{1};
        Bytes aperture;
        std::uint32_t compute_units = 8;
        /// Number of engine workers. The CP has separate memory ports (mem::Port) and decoded code
        /// for each worker.
        std::uint32_t workers = 1;
        iov::DoorbellMode doorbell_mode = iov::DoorbellMode::Trap;
    };
    /// The functions of the device that a VF calls.
    class Device {
    public:
        virtual ~Device() = default;
        /// The PF's GPU-IOV capability, through which the VF sets mailbox bits and raises
        /// interrupts at the PF. Any thread, with any lock held.
        [[nodiscard]] virtual iov::Vsec& vsec() = 0;
        /// Kicks the engine if the VF is on it; otherwise marks the VF busy, which may raise WAKE.
        /// The caller may hold the VF lock, so this function must not call the VF and takes only
        /// leaf locks.
        virtual void work_arrived(VfId vf) = 0;
        /// Returns when no wave of the VF uses a pointer that a mem::Port returned before the call
        /// (cp::Engine::quiesce()).
        virtual void quiesce(VfId vf) = 0;
        /// Checks again whether the VF has work, after a reset or a LOAD_STATE has replaced its
        /// state. Call with the VF off the engine and the action lock held.
        virtual void find_work(VfId vf) = 0;
        /// Sets the VF's bit FLR and makes the device thread call flr().
        virtual void queue_flr(VfId vf) = 0;
        /// Wakes the poller, which sleeps while no VF needs it.
        virtual void wake_poller() = 0;
        /// Makes the server disconnect the client of the function's own socket, if any. io thread.
        virtual void hang_up(pci::Function& function) = 0;
    };
    /// Parts of the device that all VFs share; they must outlive the VFs.
    struct Shared {
        mem::DeviceVram& vram;
        iov::WorldSwitch& world_switch;
        iov::FaultPlan& faults;
        const Clock& clock;
        Device& device;
        isa::CodeMemory* code;  ///< for translated code; nullptr: waves are interpreted
    };
    /// Fails like Doorbells::make_mappable().
    [[nodiscard]] static Result<std::unique_ptr<GpuVf>> create(const Spec& spec,
                                                               const Shared& shared);
    /// Call after the engine has left the VF and the VF's client is gone.
    ~GpuVf() override;

    [[nodiscard]] VfId vf() const { return spec_.vf; }
    [[nodiscard]] pci::Function& function() { return function_; }
    /// The VF as the engine sees it; valid as long as the VF exists.
    [[nodiscard]] cp::Context& context() { return context_; }
    /// True while the function is attached, to a client of its socket or to the host view. Any
    /// thread.
    [[nodiscard]] bool is_attached() const { return is_attached_; }

    /// Takes the VF lock and, if the VF is saved (true copy), loads its state. Returns the lock.
    [[nodiscard]] std::unique_lock<PiMutex> enter();

    // --- iov::VfControl documents these functions; gpu_vf_control.cpp implements them ------------
    /// Also updates the size that the guest reads (RCC_CONFIG_MEMSIZE, MC_VM_FB_LOCATION_TOP), even
    /// after an error. Call without the VF lock, because the function waits for workers.
    [[nodiscard]] Result<> commit_vram(DeviceOffset root, Bytes size) override;
    void release_vram() override;
    void set_doorbell_pages(std::uint32_t first, std::uint32_t count) override;
    /// Running work-groups stay on their CUs. The guest's driver reads the number of CUs only at
    /// its next probe.
    void set_cu_mask(std::uint64_t mask) override;
    void set_quantum(std::uint32_t quantum_us) override { quantum_us_ = quantum_us; }
    /// FB_EN applies to trapped accesses of BAR0 and to new mappings. A client's existing mapping
    /// of BAR0 stays, because vfio-user has no message to revoke a mapping.
    void set_gates(std::uint32_t gates) override;
    [[nodiscard]] std::uint32_t gates() const override { return gates_; }
    void request_flr() override;
    void acknowledge_flr() override { is_reset_unacknowledged_ = false; }
    [[nodiscard]] std::uint32_t reset_flags() const override;
    [[nodiscard]] std::uint32_t status() override;
    /// While the VF is saved (is_saved()), the values at the save. Never loads the saved state, so
    /// the PF may read the values often.
    [[nodiscard]] iov::VfStatistics statistics() override;
    [[nodiscard]] std::uint32_t mailbox_read(RegisterIndex index) override;
    void mailbox_write(RegisterIndex index, std::uint32_t value) override;
    [[nodiscard]] bool read_vram(VfOffset offset, std::span<std::byte> out) override;
    [[nodiscard]] bool write_vram(VfOffset offset, std::span<const std::byte> data) override;
    Result<> scrub_state() override;
    /// Saves the blocks, then mailbox and latched doorbells. The stream does not contain VRAM,
    /// configuration space, gates or other values that the PF programmed. A VF of any device can
    /// load the stream if the softgpu programs have the same kStateVersion (gpu_vf_control.cpp) and
    /// the device has every CU on which a work-group in the stream is resident.
    [[nodiscard]] Result<std::vector<std::byte>> save_state() override;
    [[nodiscard]] Result<> load_state(std::span<const std::byte> stream) override;

    // --- resets --------------------------------------------------------------------------------
    /// Sets or clears the bit FLR of VGPU_RESET.
    void set_flr_bit(bool is_set) { is_resetting_ = is_set; }
    /// Executes a requested FLR; the caller clears the bit FLR afterwards. Device thread.
    void flr();
    [[nodiscard]] bool is_resetting() const { return is_resetting_; }
    /// Resets the blocks, the doorbells and, for NewOwner, the mailbox. Keeps the counters, which
    /// count since the device started (iov::VfStatistics). Call with the action lock of the world
    /// switch held.
    void reset_blocks(ResetScope scope);

    [[nodiscard]] Bytes vram_size() const { return vram_.size(); }

    // --- world switch and poller ---------------------------------------------------------------
    // All functions of this section except quantum(), is_stuck() and doorbell_mode() take the VF
    // lock; the caller must not hold this lock.

    /// The length of a time slice that begins now; nullopt if the time slice has no limit.
    [[nodiscard]] std::optional<Nanoseconds> quantum() const;
    /// Replays the latched doorbells. Call before Engine::run().
    void activate();
    /// Doorbells are latched from now on. Call after Engine::park().
    void deactivate();
    /// True copy: writes the state of the blocks to a stream and poisons the blocks, so that code
    /// that still uses them fails visibly. Mailbox, doorbells, gates and VRAM are not part of a
    /// world switch.
    void save_and_poison();
    /// Counts the switch. In true-copy mode, also loads the saved state.
    void load();
    /// Adds one time slice on the engine to the statistics.
    void account(const vgpu_hw_run_log_entry& entry);
    /// True if the VF could make progress on the engine now. Reads the memory that waits depend on.
    /// For a saved VF, reads no memory: returns the answer from the time of the save, or true if a
    /// doorbell has rung since.
    [[nodiscard]] bool has_work();
    /// True if only polling can find new work of the VF: the end of a wait for memory, a doorbell
    /// in a mapped page, or any work of a saved VF.
    [[nodiscard]] bool needs_polling();
    /// Checks the waits of an inactive VF; calls work_arrived() if the VF can make progress.
    void poll_waits();
    /// True if a planned fault has stopped the SDMA engines, which then cannot idle.
    [[nodiscard]] bool is_stuck() const { return is_sdma_stuck_; }
    /// Poll mode: takes the doorbell writes that the client stored in its doorbell pages. Does
    /// nothing for a saved VF, whose doorbell writes poll_waits() finds.
    void scan_doorbells(iov::Doorbells::Scan how);
    /// True copy: true while the state of the VF's blocks is in a stream and the blocks are
    /// poisoned.
    [[nodiscard]] bool is_saved() const;
    [[nodiscard]] iov::DoorbellMode doorbell_mode() const { return doorbells_.mode(); }

    /// For the control socket.
    [[nodiscard]] iov::Doorbells::Counters doorbell_counters() const;

private:
    class SdmaSource;

    GpuVf(const Spec& spec, const Shared& shared);
    /// Connects the members when all exist: hooks between blocks, BAR handlers, and the functions
    /// that end translations before memory is taken away (set_revocation()).
    void wire();
    [[nodiscard]] pci::BarHandler vram_bar();
    [[nodiscard]] pci::BarHandler doorbell_bar();
    [[nodiscard]] pci::BarHandler register_bar();

    // pci::FunctionOwner, pci::DmaSink
    Result<> attached(std::shared_ptr<Peer> peer) override;
    void detached() override;
    void reset(pci::ResetKind kind) override;
    void bars_moved() override;
    Result<> map(const vfio_user::DmaRange& range, int fd) override;
    void unmap(const vfio_user::DmaRange& range) override;
    void unmap_all() override;

    // iov::DoorbellListener: called with the VF lock held.
    bool deliver_to_ih(const iov::DoorbellRing& ring) override;
    void deliver(const iov::DoorbellRing& ring) override;

    // cp::Services documents these functions; called with the VF lock held.
    std::unique_ptr<mem::Port> make_port(Vmid vmid) override;
    void set_process(Vmid vmid, std::uint64_t root, std::uint16_t pasid) override;
    std::uint16_t pasid_of(Vmid vmid) const override;
    void invalidate_pasid(std::uint16_t pasid) override;
    void report_fault(Vmid vmid, const mem::Fault& fault) override;
    void raise(const ih_iv_entry& entry) override;
    bool map_sdma(cp::SdmaEngine engine, const sdma::MapRequest& queue) override;
    void unmap_sdma(cp::SdmaEngine engine, DoorbellIndex doorbell) override;
    // work_arrived() also implements iov::DoorbellListener; any thread.
    void work_arrived() override;

    /// The register write gate, open during full access. While the gate is shut, the guest cannot
    /// write registers marked FA in hw/regs.def by MMIO, or use RLCG, PSP or the video scheduler
    /// (MMSCH).
    [[nodiscard]] regs::Gate register_gate() const;
    /// The gates that a client's reset shuts. The PF can open them after it has acknowledged the
    /// reset.
    static constexpr std::uint32_t kClientGates =
        HW_FIELD_MASK(VGPU_GATES, DOORBELL_EN) | HW_FIELD_MASK(VGPU_GATES, REGWR_EN);
    /// Resets the VF because a client has reset the function or left it.
    void client_reset();
    void write_gates(std::uint32_t gates);
    /// Takes the VF lock and calls update_vram_registers().
    void update_for_new_vram();
    /// Detaches the client's mapping of the doorbell BAR from the VF, for a new owner. A reset does
    /// not do this, because a client keeps its mapping across its own reset. Any thread.
    void renew_doorbells();
    void raise_msi();
    void interrupt_mailbox(ih_source source);
    /// Sets the registers that describe the VRAM, after the register bank or the VRAM changed.
    void update_vram_registers();
    [[nodiscard]] iov::VfStatistics statistics_locked() const;
    /// Off the engine, a VF that has work begins to wait (CommandProcessor::begin_wait()).
    [[nodiscard]] bool has_work_locked();
    void save_and_poison_locked();
    void reset_locked(ResetScope scope);
    [[nodiscard]] std::vector<std::byte> save_stream();
    [[nodiscard]] Result<> load_stream(std::span<const std::byte> stream);
    /// Loads the saved state if the VF is saved. Call with the VF lock held.
    void load_if_saved();

    const Spec spec_;
    iov::WorldSwitch& world_switch_;
    iov::FaultPlan& faults_;
    Device& device_;
    /// The VF lock. Priority inheriting, because the io thread or a worker may wait for the lock at
    /// real-time priority.
    mutable PiMutex lock_;
    const Clock& clock_;

    /// The order matters: these members keep references to members that are built before them.
    mem::SystemMemory system_;
    mem::VfVram vram_;
    VfBlocks blocks_;
    iov::Mailbox mailbox_;
    iov::Doorbells doorbells_{*this};
    std::vector<std::unique_ptr<SdmaSource>> sdma_sources_;
    pci::Function function_;
    cp::Context context_;

    /// Written with the VF lock held. BAR0 accesses, for example, read the gates without the lock.
    std::atomic<std::uint32_t> gates_{0};
    std::atomic<bool> is_attached_{false};
    /// Length of a time slice; 0: no limit. Written on the io thread, read when the next time slice
    /// begins.
    std::atomic<std::uint32_t> quantum_us_{0};
    /// Bit FLR of VGPU_RESET: the PF has requested an FLR or a device reset, which has not ended
    /// for this VF. The PF core polls the bit; reset_flags() reads it without a lock.
    std::atomic<bool> is_resetting_{false};
    /// Bit FLR_PENDING of VGPU_RESET: a client has reset the function or left it, and an interrupt
    /// notifies the PF core. The blocks are already reset. Until the PF acknowledges the reset by a
    /// write of the bit, set_gates() keeps kClientGates shut. Read without a lock.
    std::atomic<bool> is_reset_unacknowledged_{false};
    /// Set when a planned fault of point Sdma stops the SDMA engines; cleared by a reset of the VF.
    std::atomic<bool> is_sdma_stuck_{false};
    // The VF lock guards the members from here to past_.
    bool is_saved_ = false;               // true copy: true while the live state is poison
    std::vector<std::byte> saved_;        // the saved state; the memory is reused
    bool saved_has_work_ = false;         // has_work() at the save
    iov::VfStatistics saved_statistics_;  // statistics() at the save
    bool is_on_engine_ = false;           // true between activate() and deactivate()
    iov::VfStatistics past_;              // counters before resets, and ended time slices

    std::atomic<std::uint64_t> bad_accesses_{0};  ///< accesses of BAR0 that failed
};

}  // namespace vgpu::softgpu
