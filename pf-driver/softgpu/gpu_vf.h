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
#include "pf-driver/softgpu/iov/vf_panel.h"
#include "pf-driver/softgpu/iov/vsec.h"
#include "pf-driver/softgpu/iov/world_switch.h"
#include "pf-driver/softgpu/mem/system_memory.h"
#include "pf-driver/softgpu/mem/vf_vram.h"
#include "pf-driver/softgpu/pci/function.h"

namespace vgpu::softgpu {

class GpuVf final : public iov::VfPanel,
                    public pci::FunctionOwner,
                    public pci::DmaSink,
                    public iov::DoorbellListener,
                    private mem::OwnBar,
                    private cp::Services {
public:
    /// Constant after build.
    struct Spec {
        VfId vf{1};
        Bytes aperture;
        std::uint32_t compute_units = 8;
        /// Worker indices the engine will use; each has ports and decoded code of its own in the
        /// CP.
        std::uint32_t workers = 1;
        iov::DoorbellMode doorbell_mode = iov::DoorbellMode::Trap;
    };
    /// What a VF tells the device and wants of it.
    class Device {
    public:
        virtual ~Device() = default;
        /// Where mailbox bits and interrupts of the PF are raised: any thread, any lock.
        [[nodiscard]] virtual iov::Vsec& vsec() = 0;
        /// Kicks the engine if the VF is on it, else may raise WAKE; must not come back into the
        /// VF, whose lock may be held, so it takes no lock of another VF and none above it.
        virtual void work_arrived(VfId vf) = 0;
        /// Returns when every worker that is inside the VF has passed a stop point.
        virtual void quiesce(VfId vf) = 0;
        /// The VF, which is off the engine, is another than it was, by a reset or a LOAD_STATE:
        /// what is known of its work is found anew. With the action lock held.
        virtual void look_for_work(VfId vf) = 0;
        /// The device thread is to call flr().
        virtual void queue_flr(VfId vf) = 0;
        /// The poller sleeps while nobody is attached.
        virtual void wake_poller() = 0;
        /// Whoever has the function open loses it. io thread.
        virtual void hang_up(pci::Function& function) = 0;
    };
    /// What is shared by all VFs of a device, and outlives them.
    struct Shared {
        mem::DeviceVram& vram;
        iov::WorldSwitch& world_switch;
        iov::FaultPlan& faults;
        const Clock& clock;
        Device& device;
    };
    [[nodiscard]] static Result<std::unique_ptr<GpuVf>> create(const Spec& spec,
                                                               const Shared& shared);
    /// The engine must not run the VF any more and its client must be gone.
    ~GpuVf() override;

    [[nodiscard]] VfId vf() const { return spec_.vf; }
    [[nodiscard]] pci::Function& function() { return function_; }
    /// What the engine runs; valid as long as the VF.
    [[nodiscard]] cp::Context& context() { return context_; }
    /// A client of the VF's socket or the host view has the function. Any thread.
    [[nodiscard]] bool is_attached() const { return is_attached_; }

    /// The VF lock, with the VF's state in place.
    [[nodiscard]] std::unique_lock<PiMutex> enter();

    // --- iov::VfPanel: documented there (gpu_vf_panel.cpp) --------------------------------------
    /// The size the guest reads (RCC_CONFIG_MEMSIZE, MC_VM_FB_LOCATION_TOP) follows, also after an
    /// error. Without the VF lock: waits for all engines to pass a stop point.
    [[nodiscard]] Result<> commit_vram(DeviceOffset root, Bytes size) override;
    void release_vram() override;
    void set_doorbell_pages(std::uint32_t first, std::uint32_t count) override;
    /// Groups that run stay where they are; the guest's driver reads the new count at its next
    /// probe only.
    void set_cu_mask(std::uint64_t mask) override;
    void set_quantum(std::uint32_t quantum_us) override { quantum_us_ = quantum_us; }
    /// A mapping of BAR0 that a client has already is not taken back by FB_EN (vfio-user has no
    /// message for that); trapped accesses and new mappings are.
    void set_gates(std::uint32_t gates) override;
    [[nodiscard]] std::uint32_t gates() const override { return gates_; }
    void request_flr() override;
    void acknowledge_flr() override { is_reset_pending_ = false; }
    [[nodiscard]] std::uint32_t reset_flags() const override;
    [[nodiscard]] std::uint32_t status() override;
    /// In true-copy mode of a VF that is off the engine: as they were when it was saved. Nothing is
    /// brought back for it, so the PF may read it as often as it likes.
    [[nodiscard]] iov::VfStatistics statistics() override;
    [[nodiscard]] std::uint32_t mailbox_read(RegisterIndex index) override;
    void mailbox_write(RegisterIndex index, std::uint32_t value) override;
    [[nodiscard]] bool read_vram(VfOffset offset, std::span<std::byte> out) override;
    [[nodiscard]] bool write_vram(VfOffset offset, std::span<const std::byte> data) override;
    Result<> scrub_state() override;
    /// Blocks, then mailbox and latched doorbells: all of the VF but VRAM, gates and what the PF
    /// programmed. load_state() takes it on a VF of any device of the same version.
    [[nodiscard]] Result<std::vector<std::byte>> save_state() override;
    [[nodiscard]] Result<> load_state(std::span<const std::byte> stream) override;

    // --- resets --------------------------------------------------------------------------------
    /// FLR shows in VGPU_RESET from here to the end of flr().
    void announce_flr() { is_resetting_ = true; }
    /// Device thread.
    void flr();
    [[nodiscard]] bool is_resetting() const { return is_resetting_; }
    /// Counters survive: they are of the VF since the device started (iov::VfStatistics). With the
    /// action lock of the world switch held.
    void reset_blocks(ResetScope scope);

    [[nodiscard]] Bytes vram_size() const { return vram_.size(); }

    // --- world switch; the VF is not on the engine ---------------------------------------------
    /// Each takes the VF lock itself; none may be called with it held.
    /// How long a stay lasts that begins now.
    [[nodiscard]] std::optional<Nanoseconds> quantum() const;
    void activate();    ///< latched doorbells ring; before Engine::run
    void deactivate();  ///< after Engine::park
    /// True copy: the blocks become a stream and the live state garbage, so that whatever uses
    /// state it should not have fails loudly. Mailbox, doorbells, gates and VRAM are not part of a
    /// world switch.
    void save_and_poison();
    /// Counts the switch; in true-copy mode enter() has brought the state back by then.
    void load();
    /// One stay on the engine is over.
    void account(const vgpu_hw_run_log_entry& entry);
    /// Could the VF make progress on the engine now? Looks at the memory that waits depend on.
    [[nodiscard]] bool has_work();
    /// Work that can only be found by polling memory, or rings in mapped doorbell pages.
    [[nodiscard]] bool needs_polling();
    /// Looks at what an inactive VF waits for; if it can go on, work_arrived() is told.
    void poll_waits();
    [[nodiscard]] bool is_stuck() const { return is_sdma_stuck_; }
    /// Poll mode: takes the rings the client left in its pages.
    void scan_doorbells(iov::Doorbells::Scan how);
    /// True copy: the VF is a stream now and its blocks are poison.
    [[nodiscard]] bool is_saved() const;
    [[nodiscard]] iov::DoorbellMode doorbell_mode() const { return doorbells_.mode(); }

    // --- counters for the control socket --------------------------------------------------------
    /// Numbers for people, not for the PF; since the device started where a block does not forget
    /// them at a reset.
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
    /// Brings a saved VF back (true copy) to look at its blocks.
    [[nodiscard]] Details details();

private:
    class VramBar;
    class DoorbellBar;
    class RegisterBar;
    class SdmaSource;
    /// Message DMA through the client that is attached.
    class Messages;

    GpuVf(const Spec& spec, const Shared& shared);
    /// What needs all members to exist: hooks between blocks, BAR handlers, revocation.
    void wire();
    void make_bars();

    // pci::FunctionOwner, pci::DmaSink
    Result<> attached(std::shared_ptr<vfio_user::Peer> peer) override;
    void detached() override;
    void reset(pci::ResetKind kind) override;
    void bars_moved() override;
    Result<> map(const vfio_user::DmaRange& range, int fd) override;
    void unmap(const vfio_user::DmaRange& range) override;
    void unmap_all() override;

    // iov::DoorbellListener: with the VF lock held.
    bool ring_interrupts(const iov::Ring& ring) override;
    void ring(const iov::Ring& ring) override;
    void latched_work() override;
    void posted_work() override;  // any thread

    // mem::OwnBar: the doorbell BAR. Any thread.
    void engine_read(std::uint64_t offset, std::span<std::byte> out) override;
    void engine_write(std::uint64_t offset, std::span<const std::byte> data) override;

    // cp::Services: with the VF lock held; documented there.
    std::unique_ptr<mem::Port> make_port(Vmid vmid) override;
    void set_process(Vmid vmid, std::uint64_t root, std::uint16_t pasid) override;
    std::uint16_t pasid_of(Vmid vmid) const override;
    void invalidate_pasid(std::uint16_t pasid) override;
    void report_fault(Vmid vmid, const mem::Fault& fault) override;
    void raise(const ih_iv_entry& entry) override;
    bool map_sdma(const cp::SdmaQueue& queue) override;
    void unmap_sdma(cp::SdmaEngine engine, DoorbellIndex doorbell) override;
    void work_arrived() override;

    /// Of full access: who may write registers marked FA in hw/regs.def, use RLCG, PSP and MMSCH.
    [[nodiscard]] regs::Gate register_gate() const;
    /// A client's way to registers and doorbells: closed from its reset until the PF has looked at
    /// the VF.
    static constexpr std::uint32_t kClientGates =
        HW_FIELD_MASK(VGPU_GATES, DOORBELL_EN) | HW_FIELD_MASK(VGPU_GATES, REGWR_EN);
    /// A client reset or left the function.
    void client_reset();
    void write_gates(std::uint32_t gates);
    void vram_replaced();
    /// What a client has mapped of the doorbell BAR is the VF's no longer: for a new owner. A reset
    /// does not do this, as a client keeps its mapping across its own. Any thread.
    void renew_doorbells();
    void raise_msi();
    void interrupt_mailbox(ih_source source);
    /// After the register bank or the VRAM changed.
    void finish_bank_reset();
    [[nodiscard]] iov::VfStatistics statistics_locked() const;
    [[nodiscard]] bool has_work_locked();
    void save_and_poison_locked();
    void reset_locked(ResetScope scope);
    [[nodiscard]] std::vector<std::byte> save_stream();
    [[nodiscard]] Result<> load_stream(std::span<const std::byte> stream);
    /// VF lock held. Does nothing unless the VF's state is a stream.
    void bring_back();

    const Spec spec_;
    iov::WorldSwitch& world_switch_;
    iov::FaultPlan& faults_;
    Device& device_;
    /// The VF lock. Priority inheriting: a worker in real time may wait for the io thread.
    mutable PiMutex lock_;

    /// Members are built in this order. Blocks keep references, so it is part of the design.
    mem::SystemMemory system_;
    mem::VfVram vram_;
    VfBlocks blocks_;
    iov::Mailbox mailbox_;
    iov::Doorbells doorbells_{*this};
    std::vector<std::unique_ptr<SdmaSource>> sdma_sources_;
    std::vector<std::unique_ptr<pci::BarHandler>> bars_;
    pci::Function function_;
    cp::Context context_;

    /// Written with the VF lock held, read without it by BAR0 accesses.
    std::atomic<std::uint32_t> gates_{0};
    std::atomic<bool> is_attached_{false};
    /// 0: no end. Written on the io thread, read when the next stay begins.
    std::atomic<std::uint32_t> quantum_us_{0};
    /// What the PF sees in VGPU_RESET: hints for the PF core, which polls or is interrupted, read
    /// without a lock. The second: a client reset the function or left it. The blocks are reset
    /// already; the gates stay shut until the PF has looked at the VF and writes the bit back.
    std::atomic<bool> is_resetting_{false};
    std::atomic<bool> is_reset_pending_{false};
    /// Planned fault of point Sdma: stays until the VF is reset.
    std::atomic<bool> is_sdma_stuck_{false};
    bool is_saved_ = false;         // VF lock; true copy: the live state is poison
    std::vector<std::byte> saved_;  // VF lock; the state then; kept, since fresh pages cost more
    bool saved_has_work_ = false;   // VF lock; as it was when it was saved
    iov::VfStatistics saved_statistics_;  // likewise
    iov::VfStatistics past_;  // VF lock; of blocks that were reset since, and of finished runs
    std::atomic<std::uint64_t> bad_accesses_{0};
    std::uint64_t mmio_reads_ = 0;   // VF lock
    std::uint64_t mmio_writes_ = 0;  // VF lock
};

}  // namespace vgpu::softgpu
