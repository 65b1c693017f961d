// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/gpu_vf.h"

#include <algorithm>

#include "pf-driver/softgpu/base/log.h"
#include "pf-driver/softgpu/base/packet_source.h"
#include "pf-driver/softgpu/regs/gpu_clock.h"

namespace vgpu::softgpu {

// --- adapters ------------------------------------------------------------------------------------

/// An SDMA engine that a planned fault can stop.
class GpuVf::SdmaSource final : public PacketSource {
public:
    SdmaSource(GpuVf& vf, sdma::Engine& engine) : vf_(vf), engine_(engine) {}

    StepResult step() override { return take_fault() ? StepResult::Blocked : engine_.step(); }
    bool has_work() override { return !vf_.is_sdma_stuck_ && engine_.has_work(); }
    bool needs_polling() const override { return engine_.needs_polling(); }

private:
    /// If the engine has work, takes a planned Sdma fault, if any. Such a fault stops all SDMA
    /// engines of the VF. True if they are stopped.
    bool take_fault() {
        if (!vf_.is_sdma_stuck_ && engine_.has_work() &&
            vf_.faults_.take(vf_.vf(), iov::FaultPoint::Sdma))
            vf_.is_sdma_stuck_ = true;
        return vf_.is_sdma_stuck_;
    }

    GpuVf& vf_;
    sdma::Engine& engine_;
};

// --- build ---------------------------------------------------------------------------------------

Result<std::unique_ptr<GpuVf>> GpuVf::create(const Spec& spec, const Shared& shared) {
    std::unique_ptr<GpuVf> vf(new GpuVf(spec, shared));
    if (spec.doorbell_mode == iov::DoorbellMode::Poll) TRY_VOID(vf->doorbells_.make_mappable());
    return vf;
}

GpuVf::GpuVf(const Spec& spec, const Shared& shared)
    : spec_(spec),
      world_switch_(shared.world_switch),
      faults_(shared.faults),
      device_(shared.device),
      clock_(shared.clock),
      vram_(shared.vram, spec.vf),
      blocks_({.vf = spec.vf,
               .compute_units = spec.compute_units,
               .workers = spec.workers,
               .code = shared.code},
              vram_, system_, shared.clock, *this,
              {[this] { return register_gate(); }, [this] { raise_msi(); }}),
      mailbox_(blocks_.registers, {[this] { device_.vsec().set_mailbox_valid(vf()); },
                                   [this] { device_.vsec().clear_mailbox_valid(vf()); },
                                   [this] { device_.vsec().set_mailbox_ack(vf()); },
                                   [this](ih_source source) { interrupt_mailbox(source); }}),
      function_(pci::vf_function(spec.vf, spec.aperture), *this, *this),
      context_{spec.vf, lock_, blocks_.cp, {}} {
    regs::claim_gpu_clock(blocks_.registers, shared.clock);
    wire();
    blocks_.registers.set_lock(lock_);
}

GpuVf::~GpuVf() = default;

void GpuVf::wire() {
    for (sdma::Engine& engine : blocks_.sdma) {
        sdma_sources_.push_back(std::make_unique<SdmaSource>(*this, engine));
        context_.sources.push_back(sdma_sources_.back().get());
    }
    context_.sources.push_back(&blocks_.video);
    // Must be the last source: Engine::step_packets() steps sources in this order, so it handles a
    // doorbell in the same round as the packet that rang the doorbell.
    context_.sources.push_back(&doorbells_);
    system_.set_own_bar([this](std::uint64_t offset,
                               std::span<const std::byte> data) { doorbells_.post(offset, data); },
                        {DOORBELL_BAR_BYTES});
    blocks_.gpuvm.set_invalidation_hook(
        [this](std::uint16_t vmids) { blocks_.cp.invalidate_code(vmids); });
    const auto revoke = [this] {
        blocks_.gpuvm.invalidate_all();
        blocks_.gpuvm.await_holds();
        device_.quiesce(vf());
    };
    system_.set_revocation(revoke);
    vram_.set_revocation(revoke);

    function_.set_bar(VGPU_BAR_VRAM, vram_bar());
    function_.set_bar(VGPU_BAR_DOORBELL, doorbell_bar());
    function_.set_bar(VGPU_BAR_REGISTERS, register_bar());
    update_vram_registers();
    bars_moved();
}

std::unique_lock<PiMutex> GpuVf::enter() {
    std::unique_lock lock(lock_);
    load_if_saved();
    return lock;
}

// --- world switch --------------------------------------------------------------------------------

std::optional<Nanoseconds> GpuVf::quantum() const {
    const std::chrono::microseconds us{quantum_us_.load()};
    return us.count() == 0 ? std::nullopt : std::optional<Nanoseconds>(us);
}

/// The scan is thorough: while the VF was off the engine, its client may have stored a doorbell
/// write in a page that hot scans skip.
void GpuVf::activate() {
    const auto lock = enter();
    is_on_engine_ = true;
    blocks_.cp.end_wait();
    doorbells_.scan(iov::Doorbells::Scan::Thorough);
    doorbells_.activate();
}

void GpuVf::deactivate() {
    const std::scoped_lock lock(lock_);
    is_on_engine_ = false;
    doorbells_.deactivate();
}

void GpuVf::account(const vgpu_hw_run_log_entry& entry) {
    const std::scoped_lock lock(lock_);
    past_.run_ns += entry.run_end_ns - entry.run_start_ns;
}

void GpuVf::load() {
    const auto lock = enter();
    ++past_.switches;
}

void GpuVf::save_and_poison() {
    const auto lock = enter();
    save_and_poison_locked();
}

void GpuVf::save_and_poison_locked() {
    saved_has_work_ = has_work_locked();
    saved_statistics_ = statistics_locked();
    blocks_.drain();
    saved_.clear();
    Writer out(saved_);
    blocks_.save(out);
    is_saved_ = true;
    blocks_.poison();
}

/// True copy: loads the saved stream into the live state.
void GpuVf::load_if_saved() {
    if (!is_saved_) return;
    is_saved_ = false;
    Reader in(saved_);
    const Result<> loaded = blocks_.load(in);
    if (!loaded) {
        log::error("VF{}: its saved state cannot be loaded: {}; the VF is reset", raw(vf()),
                   loaded.error().message);
        reset_locked(ResetScope::NewOwner);
    }
}

void GpuVf::reset_blocks(ResetScope scope) {
    {
        const auto lock = enter();
        reset_locked(scope);
    }
    device_.find_work(vf());
}

void GpuVf::flr() {
    world_switch_.reset(vf(), [this] { reset_blocks(ResetScope::FunctionLevel); });
}

/// Adds the blocks' counters to past_ before the blocks clear them.
void GpuVf::reset_locked(ResetScope scope) {
    blocks_.add_to(past_);
    blocks_.reset(scope);
    doorbells_.reset();
    is_sdma_stuck_ = false;
    if (scope == ResetScope::NewOwner) mailbox_.reset();
    update_vram_registers();
}

bool GpuVf::has_work() {
    const std::scoped_lock lock(lock_);
    if (is_saved_) return saved_has_work_ || doorbells_.has_latched() || doorbells_.has_work();
    return has_work_locked();
}

bool GpuVf::has_work_locked() {
    const bool is_ready = doorbells_.has_latched() || blocks_.cp.has_work() ||
                          std::ranges::any_of(context_.sources, [](PacketSource* source) {
                              return source->has_work();
                          });
    if (is_ready && !is_on_engine_) blocks_.cp.begin_wait();
    return is_ready;
}

bool GpuVf::needs_polling() {
    const std::scoped_lock lock(lock_);
    if (is_saved_ || doorbells_.mode() == iov::DoorbellMode::Poll) return true;
    return blocks_.cp.needs_polling() ||
           std::ranges::any_of(context_.sources,
                               [](const PacketSource* source) { return source->needs_polling(); });
}

/// True copy: loads a saved VF to check its waits, and saves the VF again unless the VF can make
/// progress. Releases the lock before it calls the device.
void GpuVf::poll_waits() {
    std::unique_lock lock(lock_);
    const bool was_saved = is_saved_;
    load_if_saved();
    doorbells_.scan(iov::Doorbells::Scan::Hot);
    const bool can_continue = has_work_locked();
    if (was_saved && !can_continue) save_and_poison_locked();
    lock.unlock();
    if (can_continue) device_.work_arrived(vf());
}

void GpuVf::scan_doorbells(iov::Doorbells::Scan how) {
    if (doorbells_.mode() == iov::DoorbellMode::Trap) return;
    const std::scoped_lock lock(lock_);
    if (!is_saved_) doorbells_.scan(how);
}

bool GpuVf::is_saved() const {
    const std::scoped_lock lock(lock_);
    return is_saved_;
}

iov::Doorbells::Counters GpuVf::doorbell_counters() const {
    const std::scoped_lock lock(lock_);
    return doorbells_.counters();
}

// --- client --------------------------------------------------------------------------------------

/// Sets the peer first, because the PF may run the VF as soon as the PF sees the attachment.
Result<> GpuVf::attached(std::shared_ptr<Peer> peer) {
    system_.set_peer(std::move(peer));
    is_attached_ = true;
    device_.vsec().interrupt(GPUIOV_INTR_VF_FLR);
    device_.wake_poller();
    return {};
}

/// The caller has already removed the DMA maps (pci::FunctionOwner). Resets the VF, so that the
/// next client finds no state of the client that leaves.
void GpuVf::detached() {
    is_attached_ = false;
    system_.set_peer(nullptr);
    client_reset();
    renew_doorbells();
}

void GpuVf::reset(pci::ResetKind) {
    client_reset();
}

/// Shuts DOORBELL_EN and REGWR_EN first: after the reset, no client may ring doorbells or write FA
/// registers before the PF has seen the reset (VF0_GATES, VF0_RESET in hw/regs.def). FB_EN stays as
/// it is: the VF owns its VRAM until the PF releases the VRAM, and the next client asks for the
/// mapping of BAR0 when it attaches, before the PF acts. The reset is complete on return, because
/// the guest waits for the reset and the PF may be slow or gone.
void GpuVf::client_reset() {
    write_gates(gates_ & ~kClientGates);
    world_switch_.reset(vf(), [this] { reset_blocks(ResetScope::NewOwner); });
    is_reset_unacknowledged_ = true;
    device_.vsec().interrupt(GPUIOV_INTR_VF_FLR);
}

/// Ends all translations, because cached ones may be wrong now: those of pages that were, or now
/// are, in the doorbell BAR, and those of the client's memory if bus mastering is off.
void GpuVf::bars_moved() {
    system_.set_bus_master(function_.is_bus_master());
    system_.place_own_bar(function_.bar_address(VGPU_BAR_DOORBELL));
    blocks_.gpuvm.invalidate_all();
}

Result<> GpuVf::map(const vfio_user::DmaRange& range, int fd) {
    using mem::Access;
    std::uint8_t access = 0;
    if (range.is_readable) access |= static_cast<std::uint8_t>(Access::Read);
    if (range.is_writeable) access |= static_cast<std::uint8_t>(Access::Write);
    return system_.map({range.address, {range.size}, fd, range.fd_offset, access});
}

void GpuVf::unmap(const vfio_user::DmaRange& range) {
    const Result<> unmapped = system_.unmap(range.address, {range.size});
    if (!unmapped) log::warn("VF{}: DMA unmap: {}", raw(vf()), unmapped.error().message);
}

void GpuVf::unmap_all() {
    system_.unmap_all();
}

// --- doorbells -----------------------------------------------------------------------------------

bool GpuVf::deliver_to_ih(const iov::DoorbellRing& ring) {
    return blocks_.interrupts.doorbell(ring.index, low32(ring.value));
}

/// Each SDMA engine and the video blocks accept only their own doorbells; the CP gets the rest.
void GpuVf::deliver(const iov::DoorbellRing& ring) {
    for (sdma::Engine& engine : blocks_.sdma) {
        if (!engine.doorbell(ring.index, ring.value)) continue;
        work_arrived();
        return;
    }
    if (blocks_.video.doorbell(ring.index, ring.value)) {
        work_arrived();
        return;
    }
    const bool is_wide = ring.width == iov::DoorbellRing::Width::Qword;
    blocks_.cp.doorbell(ring.index, ring.value,
                        is_wide ? cp::DoorbellWidth::Qword : cp::DoorbellWidth::Dword);
}

// --- cp::Services --------------------------------------------------------------------------------

std::unique_ptr<mem::Port> GpuVf::make_port(Vmid vmid) {
    return blocks_.gpuvm.make_port(vmid, mem::Hub::Gfx);
}

void GpuVf::set_process(Vmid vmid, std::uint64_t root, std::uint16_t pasid) {
    blocks_.gpuvm.set_root(vmid, root);
    blocks_.gpuvm.set_pasid(vmid, pasid);
}

std::uint16_t GpuVf::pasid_of(Vmid vmid) const {
    return blocks_.gpuvm.pasid_of(vmid);
}

void GpuVf::invalidate_pasid(std::uint16_t pasid) {
    blocks_.gpuvm.invalidate_pasid(pasid);
}

void GpuVf::report_fault(Vmid vmid, const mem::Fault& fault) {
    blocks_.report_fault({mem::Hub::Gfx, vmid, blocks_.gpuvm.pasid_of(vmid), fault});
}

void GpuVf::raise(const ih_iv_entry& entry) {
    blocks_.interrupts.raise(entry);
}

bool GpuVf::map_sdma(cp::SdmaEngine engine, const sdma::MapRequest& queue) {
    return blocks_.sdma[static_cast<std::size_t>(engine)].map(queue);
}

void GpuVf::unmap_sdma(cp::SdmaEngine engine, DoorbellIndex doorbell) {
    blocks_.sdma[static_cast<std::size_t>(engine)].unmap(doorbell);
}

void GpuVf::work_arrived() {
    device_.work_arrived(vf());
}

// --- interrupts ----------------------------------------------------------------------------------

/// The VF has one MSI vector for all interrupt rings; the guest looks for new entries in each ring.
void GpuVf::raise_msi() {
    if (faults_.take(vf(), iov::FaultPoint::Interrupt)) return;
    function_.raise(0);
}

void GpuVf::interrupt_mailbox(ih_source source) {
    ih_iv_entry entry{};
    entry.client_id = IH_CLIENT_BIF;
    entry.source_id = static_cast<std::uint8_t>(source);
    blocks_.interrupts.raise(entry);
}

}  // namespace vgpu::softgpu
