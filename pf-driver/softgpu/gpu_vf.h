// SPDX-License-Identifier: MIT
//
// GpuVf: one VF with its blocks connected. It has a PCI function, register bank, VRAM slice, GPUVM,
// interrupt rings, PSP, copy engines, video blocks, command processor, mailbox and doorbells. Part
// of the composition root (gpu.h).
//
// Each VF has one lock, the "VF lock". Every thread holds it for a register, doorbell, packet or
// mailbox action of the VF. Locks are taken in this order: world switch (action), VF, then leaves
// (engine, interrupts, VSEC). In true-copy mode SAVE turns the blocks of the VF into a stream and
// poisons them; enter() loads the stream before a caller can see poison.
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
    /// Constant after create().
    struct Spec {
        VfId vf{1};
        Bytes aperture;
        std::uint32_t compute_units = 8;
        /// Number of worker indices that the engine uses. The CP has separate ports and decoded
        /// code for each.
        std::uint32_t workers = 1;
        iov::DoorbellMode doorbell_mode = iov::DoorbellMode::Trap;
    };
    /// Reports and requests of a VF to the device.
    class Device {
    public:
        virtual ~Device() = default;
        /// The capability that raises mailbox bits and interrupts at the PF. Any thread, with any
        /// lock held.
        [[nodiscard]] virtual iov::Vsec& vsec() = 0;
        /// Kicks the engine if the VF is on it, else may raise WAKE. The caller may hold the VF
        /// lock, so this must not call back into the VF and takes only leaf locks.
        virtual void work_arrived(VfId vf) = 0;
        /// Returns when every worker that serves the VF has passed a stop point
        /// (cp::Engine::quiesce).
        virtual void quiesce(VfId vf) = 0;
        /// A reset or a LOAD_STATE has replaced the state of a VF that is off the engine. Finds out
        /// again whether the VF has work. Call with the action lock held.
        virtual void find_work(VfId vf) = 0;
        /// Makes the device thread call flr().
        virtual void queue_flr(VfId vf) = 0;
        /// Wakes the poller, which sleeps while no VF needs it.
        virtual void wake_poller() = 0;
        /// Disconnects the client of the function. io thread.
        virtual void hang_up(pci::Function& function) = 0;
    };
    /// Parts of the device that all VFs share, and that outlive them.
    struct Shared {
        mem::DeviceVram& vram;
        iov::WorldSwitch& world_switch;
        iov::FaultPlan& faults;
        const Clock& clock;
        Device& device;
        isa::CodeMemory* code;  ///< for translated code; nullptr: waves are interpreted
    };
    [[nodiscard]] static Result<std::unique_ptr<GpuVf>> create(const Spec& spec,
                                                               const Shared& shared);
    /// The engine must no longer run the VF, and its client must be gone.
    ~GpuVf() override;

    [[nodiscard]] VfId vf() const { return spec_.vf; }
    [[nodiscard]] pci::Function& function() { return function_; }
    /// The VF as the engine sees it; valid as long as the VF.
    [[nodiscard]] cp::Context& context() { return context_; }
    /// True if a client of the VF's socket, or the host view, has the function. Any thread.
    [[nodiscard]] bool is_attached() const { return is_attached_; }

    /// Takes the VF lock and, if the VF is saved (true copy), loads its state.
    [[nodiscard]] std::unique_lock<PiMutex> enter();

    // --- iov::VfControl, which documents these functions (gpu_vf_control.cpp) --------------------
    /// Also updates the size that the guest reads (RCC_CONFIG_MEMSIZE, MC_VM_FB_LOCATION_TOP), even
    /// after an error. Call without the VF lock: waits until all workers have passed a stop point.
    [[nodiscard]] Result<> commit_vram(DeviceOffset root, Bytes size) override;
    void release_vram() override;
    void set_doorbell_pages(std::uint32_t first, std::uint32_t count) override;
    /// Running work-groups stay where they are. The guest's driver reads the new count only at its
    /// next probe.
    void set_cu_mask(std::uint64_t mask) override;
    void set_quantum(std::uint32_t quantum_us) override { quantum_us_ = quantum_us; }
    /// FB_EN applies to trapped accesses of BAR0 and to new mappings. A client's existing mapping
    /// stays, because vfio-user has no message to revoke it.
    void set_gates(std::uint32_t gates) override;
    [[nodiscard]] std::uint32_t gates() const override { return gates_; }
    void request_flr() override;
    void acknowledge_flr() override { is_reset_pending_ = false; }
    [[nodiscard]] std::uint32_t reset_flags() const override;
    [[nodiscard]] std::uint32_t status() override;
    /// The values of the last save while the VF is saved (is_saved()). Does not load the saved
    /// state, so the PF may read the values often.
    [[nodiscard]] iov::VfStatistics statistics() override;
    [[nodiscard]] std::uint32_t mailbox_read(RegisterIndex index) override;
    void mailbox_write(RegisterIndex index, std::uint32_t value) override;
    [[nodiscard]] bool read_vram(VfOffset offset, std::span<std::byte> out) override;
    [[nodiscard]] bool write_vram(VfOffset offset, std::span<const std::byte> data) override;
    Result<> scrub_state() override;
    /// Saves the blocks, then mailbox and latched doorbells: all of the VF except VRAM, gates and
    /// the values that the PF programmed. load_state() of a VF of any device of the same version
    /// accepts the stream.
    [[nodiscard]] Result<std::vector<std::byte>> save_state() override;
    [[nodiscard]] Result<> load_state(std::span<const std::byte> stream) override;

    // --- resets --------------------------------------------------------------------------------
    /// VGPU_RESET shows FLR from this call to the end of flr().
    void announce_flr() { is_resetting_ = true; }
    /// Executes a requested FLR. Device thread.
    void flr();
    [[nodiscard]] bool is_resetting() const { return is_resetting_; }
    /// Resets the blocks but keeps the counters, which count since the device started
    /// (iov::VfStatistics). Call with the action lock of the world switch held.
    void reset_blocks(ResetScope scope);

    [[nodiscard]] Bytes vram_size() const { return vram_.size(); }

    // --- world switch and poller ---------------------------------------------------------------
    // All except quantum(), is_stuck() and doorbell_mode() take the VF lock; the caller must not
    // hold it.

    /// The length of a time slice that begins now; nullopt if the time slice has no limit.
    [[nodiscard]] std::optional<Nanoseconds> quantum() const;
    void activate();    ///< replays latched doorbells; before Engine::run
    void deactivate();  ///< after Engine::park
    /// True copy: turns the blocks into a stream and poisons the live state, so that code that
    /// still uses the live state fails visibly. Mailbox, doorbells, gates and VRAM are not part of
    /// a world switch.
    void save_and_poison();
    /// Counts the switch. In true-copy mode it also loads the saved state, by enter().
    void load();
    /// Adds one time slice on the engine to the statistics.
    void account(const vgpu_hw_run_log_entry& entry);
    /// True if the VF could make progress on the engine now. Reads the memory that waits depend on.
    /// For a saved VF it reads no memory: it returns the answer from the time of the save, or true
    /// if a doorbell has rung since.
    [[nodiscard]] bool has_work();
    /// True if only polling can find the VF's work: in memory, in mapped doorbell pages, or in a
    /// saved state.
    [[nodiscard]] bool needs_polling();
    /// Checks the waits of an inactive VF; calls work_arrived() if the VF can make progress.
    void poll_waits();
    [[nodiscard]] bool is_stuck() const { return is_sdma_stuck_; }
    /// Poll mode: takes the doorbell writes that the client stored in its doorbell pages. Does
    /// nothing for a saved VF, whose doorbell writes poll_waits() finds.
    void scan_doorbells(iov::Doorbells::Scan how);
    /// True copy: true while the VF is a stream and its blocks are poisoned.
    [[nodiscard]] bool is_saved() const;
    [[nodiscard]] iov::DoorbellMode doorbell_mode() const { return doorbells_.mode(); }

    /// For the control socket.
    [[nodiscard]] iov::Doorbells::Counters doorbell_counters() const;

private:
    class SdmaSource;

    GpuVf(const Spec& spec, const Shared& shared);
    /// Connects the members once all exist: hooks between blocks, BAR handlers, revocation.
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

    // The functions of cp::Services, which documents them; called with the VF lock held.
    std::unique_ptr<mem::Port> make_port(Vmid vmid) override;
    void set_process(Vmid vmid, std::uint64_t root, std::uint16_t pasid) override;
    std::uint16_t pasid_of(Vmid vmid) const override;
    void invalidate_pasid(std::uint16_t pasid) override;
    void report_fault(Vmid vmid, const mem::Fault& fault) override;
    void raise(const ih_iv_entry& entry) override;
    bool map_sdma(cp::SdmaEngine engine, const sdma::MapRequest& queue) override;
    void unmap_sdma(cp::SdmaEngine engine, DoorbellIndex doorbell) override;
    // Also implements iov::DoorbellListener; any thread.
    void work_arrived() override;

    /// The gate of full access: while it is shut, the guest may not write registers marked FA in
    /// hw/regs.def, nor use RLCG, PSP and the video scheduler (MMSCH).
    [[nodiscard]] regs::Gate register_gate() const;
    /// The gates of a client's registers and doorbells. They are shut from the client's reset until
    /// the PF has seen the reset.
    static constexpr std::uint32_t kClientGates =
        HW_FIELD_MASK(VGPU_GATES, DOORBELL_EN) | HW_FIELD_MASK(VGPU_GATES, REGWR_EN);
    /// Handles a client that resets or leaves the function.
    void client_reset();
    void write_gates(std::uint32_t gates);
    /// Calls update_vram_registers() with the VF lock held.
    void update_for_new_vram();
    /// Detaches the client's mapping of the doorbell BAR from the VF, for a new owner. A reset does
    /// not do this, because a client keeps its mapping across its own reset. Any thread.
    void renew_doorbells();
    void raise_msi();
    void interrupt_mailbox(ih_source source);
    /// Sets the registers that describe the VRAM, after the register bank or the VRAM changed.
    void update_vram_registers();
    [[nodiscard]] iov::VfStatistics statistics_locked() const;
    [[nodiscard]] bool has_work_locked();
    void save_and_poison_locked();
    void reset_locked(ResetScope scope);
    [[nodiscard]] std::vector<std::byte> save_stream();
    [[nodiscard]] Result<> load_stream(std::span<const std::byte> stream);
    /// Call with the VF lock held. Does nothing unless the VF's state is a stream.
    void load_if_saved();

    const Spec spec_;
    iov::WorldSwitch& world_switch_;
    iov::FaultPlan& faults_;
    Device& device_;
    /// The VF lock. Priority inheriting, because a worker at real-time priority may wait for the io
    /// thread.
    mutable PiMutex lock_;

    /// Members are built in this order, which matters: blocks keep references to members before
    /// them.
    mem::SystemMemory system_;
    mem::VfVram vram_;
    VfBlocks blocks_;
    iov::Mailbox mailbox_;
    iov::Doorbells doorbells_{*this};
    std::vector<std::unique_ptr<SdmaSource>> sdma_sources_;
    pci::Function function_;
    cp::Context context_;

    /// Written with the VF lock held, read without it by BAR0 accesses.
    std::atomic<std::uint32_t> gates_{0};
    std::atomic<bool> is_attached_{false};
    /// Length of a time slice; 0: no limit. Written on the io thread, read when the next time slice
    /// begins.
    std::atomic<std::uint32_t> quantum_us_{0};
    /// Bit FLR of VGPU_RESET: an FLR is requested or in progress. The PF core polls the bit, which
    /// is read without a lock.
    std::atomic<bool> is_resetting_{false};
    /// Bit FLR_PENDING of VGPU_RESET: a client has reset the function or left it, and an interrupt
    /// has told the PF core. The blocks are already reset; the gates stay shut until the PF
    /// acknowledges the reset by a write of the bit. Read without a lock.
    std::atomic<bool> is_reset_pending_{false};
    /// True if a planned fault of point Sdma has stopped the SDMA engines, until the VF is reset.
    std::atomic<bool> is_sdma_stuck_{false};
    // The VF lock guards these members.
    bool is_saved_ = false;               // true copy: true if the live state is poison
    std::vector<std::byte> saved_;        // the saved state; the memory is reused
    bool saved_has_work_ = false;         // has_work() at the save
    iov::VfStatistics saved_statistics_;  // statistics() at the save
    iov::VfStatistics past_;              // counts before resets, and finished time slices

    std::atomic<std::uint64_t> bad_accesses_{0};  ///< accesses of BAR0 that failed
};

}  // namespace vgpu::softgpu
