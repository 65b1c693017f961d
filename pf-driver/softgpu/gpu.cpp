// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>

#include "pf-driver/hw/vf_page_table.h"
#include "pf-driver/softgpu/base/log.h"
#include "pf-driver/softgpu/base/priority.h"

namespace vgpu::softgpu {

namespace {

/// First and longest pause of the poller between two calls of poll_once() (poll_loop()).
constexpr std::chrono::microseconds kPollFirst{250};
constexpr std::chrono::microseconds kPollLast{4000};

/// Each CU has one bit in VGPU_VF0_CU_MASK_LO/HI.
constexpr std::uint32_t kMaxComputeUnits = 64;
constexpr std::uint32_t kMaxThreads = 64;
constexpr std::chrono::microseconds kMaxIdleGrace = std::chrono::seconds(1);

struct Requirement {
    bool is_met;
    const char* text;
};

/// EINVAL for the first requirement that is not met; the message names the command line option.
Result<> check(const Gpu::Spec& spec) {
    const Requirement requirements[] = {
        {spec.vfs >= 1 && spec.vfs <= GPUIOV_MAX_VFS, "--vfs must be 1 to 16"},
        {spec.vram.count % VGPU_VRAM_UNIT_BYTES == 0 && spec.vram >= 32_MiB,
         "--vram-mb must be a multiple of 16, at least 32"},
        {std::has_single_bit(spec.aperture.count) && spec.aperture >= 1_MiB,
         "--aperture-mb must be a power of two"},
        {spec.compute_units >= 1 && spec.compute_units <= kMaxComputeUnits,
         "--cus must be 1 to 64"},
        {spec.threads >= 1 && spec.threads <= kMaxThreads, "--threads must be 1 to 64"},
        {spec.idle_grace <= kMaxIdleGrace, "--idle-grace-us must be 0 to 1000000"},
    };
    for (const Requirement& requirement : requirements)
        if (!requirement.is_met) return fail(EINVAL, requirement.text);
    return {};
}

}  // namespace

// --- build ---------------------------------------------------------------------------------------

Result<std::unique_ptr<Gpu>> Gpu::create(const Spec& spec, const Clock& clock) {
    TRY_VOID(check(spec));
    std::unique_ptr<Gpu> gpu(new Gpu(spec, clock));
    TRY_VOID(gpu->build());
    return gpu;
}

Gpu::Gpu(const Spec& spec, const Clock& clock)
    : spec_(spec),
      clock_(clock),
      world_switch_(spec.vfs, *this, faults_, clock, [this] { wake_device(); }),
      switch_mode_(spec.switch_mode) {}

/// Called while the GPU is built, because the confined process can no longer map executable memory.
void Gpu::make_code_memory() {
    if (spec_.isa_tier != IsaTier::Translator) return;
    auto made = isa::CodeMemory::create(spec_.vfs * isa::CodeShare::kVfChunks);
    if (made)
        code_ = std::move(*made);
    else
        log::warn("{}: waves are interpreted, not translated: {}", spec_.name,
                  made.error().message);
}

Result<> Gpu::build() {
    TRY(server_, vfio_user::Server::create({}, park_));
    TRY(vram_, mem::DeviceVram::create(spec_.vram));
    make_code_memory();
    iov::VfControls controls;
    for (std::uint32_t number = 1; number <= spec_.vfs; ++number) {
        const GpuVf::Spec vf{VfId{static_cast<std::uint8_t>(number)}, spec_.aperture,
                             spec_.compute_units, spec_.threads, spec_.doorbell_mode};
        TRY(auto built,
            GpuVf::create(vf, {*vram_, world_switch_, faults_, clock_, *this, code_.get()}));
        vfs_.push_back(std::move(built));
        controls.all.push_back(vfs_.back().get());
    }
    const GpuPf::Spec pf{spec_.vram, spec_.aperture, spec_.compute_units, spec_.switch_mode};
    pf_ = std::make_unique<GpuPf>(pf, *vram_, world_switch_, controls, faults_, clock_,
                                  static_cast<GpuPf::Device&>(*this));
    build_host_view();
    return {};
}

void Gpu::start() {
    const cp::Engine::Spec engine{
        .threads = spec_.threads, .idle_grace = spec_.idle_grace, .park = park_};
    engine_ =
        std::make_unique<cp::Engine>(engine, clock_, static_cast<cp::Engine::Listener&>(*this));
    device_thread_ = std::thread([this] { device_loop(); });
    op_thread_ = std::thread([this] { pf_->operations().run(); });
    poll_thread_ = std::thread([this] { poll_loop(); });
}

void Gpu::build_host_view() {
    if (!spec_.host_view) return;
    std::vector<pci::Function*> functions;
    for (const auto& each : vfs_) functions.push_back(&each->function());
    host_view_ =
        std::make_unique<host_view::HostView>(*spec_.host_view, pf_->function(), functions);
}

/// Ends the threads first, because they call into every block; then the server, whose sessions call
/// VFs and engine when they detach; then the engine, whose destructor parks the VF. The default
/// order (the reverse of the declarations) would destroy the server after the VFs.
Gpu::~Gpu() {
    is_stopping_ = true;
    wake_device();
    wake_poller();
    if (pf_) pf_->operations().stop();
    for (std::thread* thread : {&device_thread_, &op_thread_, &poll_thread_})
        if (thread->joinable()) thread->join();
    server_.reset();  // detaches all clients
    engine_.reset();
}

Result<> Gpu::listen() {
    TRY_VOID(server_->listen(spec_.socket_dir + "/pf.sock", pf_->function()));
    for (const auto& each : vfs_)
        TRY_VOID(server_->listen(fmt::format("{}/vf{}.sock", spec_.socket_dir, raw(each->vf())),
                                 each->function()));
    if (host_view_) TRY_VOID(server_->listen(spec_.socket_dir + "/host.sock", *host_view_));
    return {};
}

void Gpu::run() {
    server_->run();
}

void Gpu::stop() {
    server_->stop();
}

// --- world switch --------------------------------------------------------------------------------

/// The PF may idle a VF because the VF has no work. If work arrives during the park, WAKE must
/// report this work. So park() compares has_work() before the park with the busy bit, which
/// mark_parked() updates after the park.
std::optional<cp::RunReport> Gpu::park() {
    const VfId id = active_;
    const bool was_busy = id != kPf && vf(id).has_work();
    const std::optional<cp::RunReport> report = engine_->park();
    if (id != kPf) mark_parked(id);
    if (id != kPf && !was_busy && (busy_ & wake_mask_ & iov::vf_bit(id)) != 0)
        interrupt(GPUIOV_INTR_GFX_VM_BUSY);
    return report;
}

/// The VF is parked: from now on its doorbells are latched, and the poller checks its waits. A late
/// call by quantum_expired() cannot hit the VF's next time slice: that time slice begins only after
/// park(), and park() returns only after quantum_expired() has returned.
void Gpu::mark_parked(VfId id) {
    {
        const std::lock_guard lock(idle_mutex_);
        VfId expected = id;
        if (!active_.compare_exchange_strong(expected, kPf)) return;
        vsec().withdraw(GPUIOV_INTR_GFX_VM_IDLE);
    }
    vf(id).deactivate();
    // Clear the bit before has_work(): has_work() then sees a doorbell that was latched before the
    // clear, and a later doorbell sets the bit again. The other order could clear the bit of a new
    // doorbell, and the VF's work would go unnoticed.
    busy_ &= ~iov::vf_bit(id);
    if (vf(id).has_work()) busy_ |= iov::vf_bit(id);
    wake_poller();
}

/// Sets active_ before activate() replays the latched doorbells, so that work_arrived() kicks the
/// engine and does not mark the VF busy. Clears the busy bit after it has set active_: in the other
/// order, a doorbell between the two steps would leave the bit set for the whole time slice.
std::uint64_t Gpu::run(VfId id) {
    active_ = id;
    busy_ &= ~iov::vf_bit(id);  // the bit is only for VFs off the engine
    vf(id).activate();
    const Result<std::uint64_t> time_slice = engine_->run(vf(id).context(), vf(id).quantum());
    if (!time_slice) log::error("VF{}: {}", raw(id), time_slice.error().message);
    wake_poller();
    return time_slice.value_or(0);
}

/// Pointer mode saves nothing, because each VF has its own blocks, which stay as they are.
void Gpu::save(VfId id) {
    if (switch_mode_ == iov::SwitchMode::TrueCopy) vf(id).save_and_poison();
}

void Gpu::record(const vgpu_hw_run_log_entry& entry) {
    vf(VfId{static_cast<std::uint8_t>(entry.vf)}).account(entry);
    pf_->log().append(entry);
}

// --- engine --------------------------------------------------------------------------------------

/// Calls mark_parked() at once, so that the VF's doorbells are latched from now on. The world
/// switch may be busy and handle the end of the quantum later, on the device thread.
void Gpu::quantum_expired(const cp::RunReport& report) {
    mark_parked(report.vf);
    world_switch_.quantum_expired(report);
}

/// Ignores the report if the VF has left the engine since.
void Gpu::out_of_work(VfId id) {
    const std::lock_guard lock(idle_mutex_);
    if (active_ == id) interrupt(GPUIOV_INTR_GFX_VM_IDLE);
}

// --- events of VFs -------------------------------------------------------------------------------

void Gpu::work_arrived(VfId id) {
    if (active_ == id)
        engine_->kick();
    else
        mark_busy(id);
}

void Gpu::mark_busy(VfId id) {
    const std::uint32_t bit = iov::vf_bit(id);
    const bool is_new = (busy_.fetch_or(bit) & bit) == 0;
    if (is_new && (wake_mask_ & bit) != 0) interrupt(GPUIOV_INTR_GFX_VM_BUSY);
}

/// The caller holds the action lock, so the VF stays off the engine. Clears the busy bit before
/// has_work(), for the same reason as mark_parked().
void Gpu::find_work(VfId id) {
    assert(active_ != id);
    busy_ &= ~iov::vf_bit(id);
    if (vf(id).has_work()) mark_busy(id);
    wake_poller();
}

/// If a VF already has work when the PF enables its WAKE, raises WAKE at once.
void Gpu::set_wake_mask(std::uint32_t mask) {
    const std::uint32_t before = wake_mask_.exchange(mask);
    if ((busy_ & mask & ~before) != 0) interrupt(GPUIOV_INTR_GFX_VM_BUSY);
    wake_poller();
}

std::uint32_t Gpu::busy_vfs() {
    std::uint32_t busy = busy_;
    const VfId active = active_;
    if (active != kPf && vf(active).has_work()) busy |= iov::vf_bit(active);
    return busy;
}

Result<> Gpu::inject(const iov::PlannedFault& fault) {
    TRY_VOID(faults_.add(fault));
    // A link that goes down resets the function behind it.
    if (fault.point == iov::FaultPoint::Device) pf_->function().reset();
    return {};
}

/// Sets the bit FLR with the lock that end_flr() takes, so the PF never reads "done" before the
/// FLR.
void Gpu::queue_flr(VfId id) {
    {
        const std::scoped_lock lock(device_mutex_);
        vf(id).set_flr_bit(true);
        if (std::ranges::find(flrs_, id) == flrs_.end()) flrs_.push_back(id);
    }
    wake_device();
}

void Gpu::reset_device() {
    log::warn("PF: device reset");
    {
        const std::scoped_lock lock(device_mutex_);
        flrs_.clear();
        for (const auto& each : vfs_) {
            each->set_flr_bit(true);
            flrs_.push_back(each->vf());
        }
        is_device_reset_ = true;
    }
    wake_device();
}

/// Leaves the bit FLR set if another reset of the VF was requested meanwhile.
void Gpu::end_flr(VfId id) {
    const std::scoped_lock lock(device_mutex_);
    if (std::ranges::find(flrs_, id) == flrs_.end()) vf(id).set_flr_bit(false);
}

/// Also true until the end of an FLR of a single VF that the PF has ordered.
bool Gpu::is_resetting() const {
    return std::ranges::any_of(vfs_, [](const auto& vf) { return vf->is_resetting(); });
}

// --- threads -------------------------------------------------------------------------------------

void Gpu::wake_device() {
    {
        const std::scoped_lock lock(device_mutex_);
        has_device_work_ = true;
    }
    device_wake_.notify_all();
}

/// Runs at real-time priority if the host allows it, because no VF computes while a switch lasts.
void Gpu::device_loop() {
    (void)make_real_time(pthread_self(), kRealTimeWatch);
    while (!is_stopping_) {
        std::vector<VfId> resets;
        bool is_device_reset = false;
        {
            std::unique_lock lock(device_mutex_);
            const auto is_due = [this] { return has_device_work_; };
            if (const auto due = world_switch_.next_due())
                device_wake_.wait_for(lock, *due - clock_.now(), is_due);
            else
                device_wake_.wait(lock, is_due);
            has_device_work_ = false;
            resets.swap(flrs_);
            is_device_reset = std::exchange(is_device_reset_, false);
        }
        for (const VfId id : resets) {
            // A planned fault can drop an FLR, but not a device reset.
            if (!is_device_reset && faults_.take(id, iov::FaultPoint::Flr)) continue;
            vf(id).flr();
            end_flr(id);
        }
        world_switch_.process();
    }
}

void Gpu::wake_poller() {
    {
        const std::scoped_lock lock(poll_mutex_);
        must_poll_ = true;
    }
    poll_wake_.notify_all();
}

/// The pause starts at kPollFirst after wake_poller() and doubles up to kPollLast, because a wait
/// that does not end soon usually lasts long. If no VF needs polling, the thread sleeps until
/// wake_poller().
void Gpu::poll_loop() {
    // Linux divides the weight of a session (autogroup) among the CPUs by load, and a thread that
    // wakes thousands of times a second counts as permanent load. At the process's nice value of
    // -10, this thread would pull nine tenths of the session's weight to its own CPU, away from the
    // workers, although it uses little CPU time.
    reset_nice();
    std::chrono::microseconds pause = kPollFirst;
    while (!is_stopping_) {
        const bool must_continue = poll_once();
        std::unique_lock lock(poll_mutex_);
        const auto is_woken = [this] { return must_poll_ || is_stopping_; };
        if (must_continue)
            poll_wake_.wait_for(lock, pause, is_woken);
        else
            poll_wake_.wait(lock, is_woken);
        pause = must_poll_ ? kPollFirst : std::min(pause * 2, kPollLast);
        must_poll_ = false;
    }
}

/// True if the poller must poll again, because only polling can find new work of some attached VF.
/// If the busy bit of a VF is set, its work is known, and the VF needs no poll.
bool Gpu::poll_once() {
    bool must_continue = false;
    for (const auto& each : vfs_) {
        const VfId id = each->vf();
        if (!each->is_attached()) continue;
        if (active_ == id) {
            must_continue |= each->doorbell_mode() == iov::DoorbellMode::Poll;
            each->scan_doorbells(iov::Doorbells::Scan::Hot);
            continue;
        }
        if ((busy_ & iov::vf_bit(id)) != 0 || !each->needs_polling()) continue;
        must_continue = true;
        each->poll_waits();
    }
    return must_continue;
}

}  // namespace vgpu::softgpu
