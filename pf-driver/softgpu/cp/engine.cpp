// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/cp/engine.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cassert>

#include "pf-driver/softgpu/base/await.h"
#include "pf-driver/softgpu/base/priority.h"
#include "pf-driver/softgpu/cp/worker_priority.h"

namespace vgpu::softgpu::cp {

/// One worker thread.
struct Engine::Worker final : isa::MessageSink {
    std::uint32_t index = 0;
    std::atomic<bool> stop{false};               ///< the running group reads this flag
    std::atomic<std::uint64_t> run_sequence{0};  ///< odd while a group runs
    bool is_inside = false;  // guarded by mutex_; true if the worker may touch the VF
    WorkerPriority priority;
    std::chrono::microseconds pause{};  ///< next pause between polls
    Messages messages;                  ///< messages of the group that runs

    /// Stops the group, so that release() raises the interrupt while the kernel still runs.
    void interrupt(std::uint32_t payload) override {
        messages.emplace_back(payload);
        stop.store(true);
    }
    void interrupt_from(const isa::WaveState& sender, std::uint32_t payload) override {
        messages.emplace_back(sender, payload);
        stop.store(true);
    }
};

Engine::Engine(const Spec& spec, const Clock& clock, Listener& listener)
    : spec_(spec), clock_(clock), listener_(listener), idle_(spec.idle_grace) {
    assert(spec.threads > 0);
    for (std::uint32_t i = 0; i < spec.threads; ++i) {
        workers_.push_back(std::make_unique<Worker>());
        workers_.back()->index = i;
    }
    for (const auto& worker : workers_)
        threads_.emplace_back([this, &worker = *worker] { work(worker); });
    quantum_timer_ = std::thread([this] { run_quantum_timer(); });
}

Engine::~Engine() {
    (void)park();
    {
        const std::lock_guard lock(mutex_);
        shutdown_ = true;
        changed_.notify_all();
        quantum_timer_wake_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
    quantum_timer_.join();
}

// --- runs ---------------------------------------------------------------------------------------

Result<std::uint64_t> Engine::run(Context& context, std::optional<Nanoseconds> quantum) {
    const std::lock_guard lock(mutex_);
    if (time_slice_.phase() != TimeSlice::Phase::Parked)
        return fail(EBUSY, "the engine is running another VF");
    time_slice_.begin(context, clock_.now(), quantum);
    idle_.begin();
    stopping_.store(false);
    changed_.notify_all();
    quantum_timer_wake_.notify_all();
    return time_slice_.number();
}

/// Call with mutex_ held. After the change of the phase, no further worker enters the VF.
void Engine::request_park() {
    time_slice_.stop(clock_.now());
    spec_.park->begin(BusySince::Clock::now());
    stopping_.store(true);
    for (const auto& worker : workers_) {
        worker->stop.store(true);
        // A worker that the host has preempted sees the request only when it runs again.
        if (worker->is_inside) worker->priority.raise();
    }
    changed_.notify_all();
}

void Engine::enter(Worker& worker) {
    worker.is_inside = true;
    ++inside_;
    worker.priority.wake(clock_.now());
}

void Engine::leave(Worker& worker) {
    worker.is_inside = false;
    --inside_;
}

/// Call after request_park(): waits for the last worker and ends the time slice.
RunReport Engine::end_time_slice(std::unique_lock<PiMutex>& lock) {
    parked_.wait(lock, [&] { return inside_ == 0; });
    const Nanoseconds now = clock_.now();
    idle_.end_idle(now);
    parked_.notify_all();
    return time_slice_.end(now, idle_.idle_time());
}

bool Engine::is_over(std::uint64_t time_slice) const {
    return shutdown_ || !time_slice_.is_running() || time_slice_.number() != time_slice;
}

/// If the quantum timer already parks the VF, the timer reports the time slice, and park() waits
/// until quantum_expired() has returned. So when park() returns, the time slice is over and
/// reported.
std::optional<RunReport> Engine::park() {
    std::unique_lock lock(mutex_);
    if (time_slice_.is_running()) {
        request_park();
        const RunReport report = end_time_slice(lock);
        spec_.park->end();
        return report;
    }
    const std::uint64_t time_slice = time_slice_.number();
    parked_.wait(lock, [&] {
        return (time_slice_.phase() != TimeSlice::Phase::Parking && !is_reporting_) ||
               time_slice_.number() != time_slice;
    });
    return std::nullopt;
}

std::optional<VfId> Engine::running() const {
    const std::lock_guard lock(mutex_);
    return time_slice_.context() == nullptr ? std::nullopt
                                            : std::optional(time_slice_.context()->vf);
}

/// Ends time slices whose quantum is over. Each wait for a deadline lasts at most kLongest, so that
/// the thread notices a jump of a virtual clock even without tick().
void Engine::run_quantum_timer() {
    constexpr Nanoseconds kLongest = std::chrono::seconds(1);
    // The default timer slack of 50 us could lengthen every quantum. 1 ns is the minimum.
    (void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    (void)make_real_time(pthread_self(), kRealTimeWatch);
    std::unique_lock lock(mutex_);
    while (!shutdown_) {
        if (!time_slice_.is_running() || !time_slice_.deadline()) {
            quantum_timer_wake_.wait(lock);
            continue;
        }
        const Nanoseconds left = *time_slice_.deadline() - clock_.now();
        if (left > Nanoseconds::zero()) {
            quantum_timer_wake_.wait_for(lock, std::min(left, kLongest));
            continue;
        }
        request_park();
        const RunReport report = end_time_slice(lock);
        is_reporting_ = true;
        lock.unlock();
        listener_.quantum_expired(report);
        lock.lock();
        is_reporting_ = false;
        // The listener may have put the next VF on the engine, which may be parked already.
        if (time_slice_.phase() != TimeSlice::Phase::Parking) spec_.park->end();
        parked_.notify_all();
    }
}

// --- wake-ups -----------------------------------------------------------------------------------

/// Takes no lock unless a worker sleeps, so a kick costs two atomic accesses while all workers are
/// busy.
void Engine::kick() {
    kicks_.fetch_add(1);
    // No kick is lost: a worker increments asleep_ before it reads kicks_ for the last time.
    if (asleep_.load() == 0) return;
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
}

void Engine::tick() {
    const std::lock_guard lock(mutex_);
    quantum_timer_wake_.notify_all();
    changed_.notify_all();
}

/// An odd sequence number means that the worker is inside isa::run(). Stops such a worker and waits
/// until its number changes; any other worker holds no pointer of a wave. This covers only waves;
/// GpuVm::await_holds() does the same for packets.
///
/// A VF off the engine has no wave to wait for, because all workers leave the VF before its time
/// slice ends. The caller has already ended the VF's translations. If a time slice of the VF begins
/// after the check of running(), run() takes mutex_ after running() did, so the waves of the time
/// slice see that the translations have ended.
void Engine::quiesce(VfId vf) {
    if (running() != vf) return;
    for (const auto& worker : workers_) {
        const std::uint64_t seen = worker->run_sequence.load();
        if (seen % 2 == 0) continue;
        worker->stop.store(true);
        await_soon([&] { return worker->run_sequence.load() != seen; });
    }
}

// --- workers ------------------------------------------------------------------------------------

void Engine::work(Worker& worker) {
    reset_nice();
    std::unique_lock lock(mutex_);
    worker.priority.attach();
    std::uint64_t served = 0;
    while (true) {
        changed_.wait(lock, [&] {
            return shutdown_ || (time_slice_.is_running() && time_slice_.number() != served);
        });
        if (shutdown_) return;
        served = time_slice_.number();
        Context& context = *time_slice_.context();
        enter(worker);
        lock.unlock();
        serve(worker, context);
        lock.lock();
    }
}

/// Charges the worker's CPU time to its real-time budget. Gives the worker normal priority once the
/// budget is spent, except during a park.
void Engine::count_time(Worker& worker) {
    if (!worker.priority.has_budget() || worker.priority.charge()) return;
    const std::lock_guard lock(mutex_);
    if (time_slice_.phase() != TimeSlice::Phase::Parking && worker.priority.clear_real_time())
        worker.priority.lower();
}

/// Does the VF's work until the time slice ends; on return the worker is outside the VF.
void Engine::serve(Worker& worker, Context& context) {
    worker.pause = spec_.poll_first;
    while (true) {
        const std::uint64_t seen = kicks_.load();
        if (!stopping_.load() && step(worker, context) == Progress::Worked) {
            count_time(worker);
            worker.pause = spec_.poll_first;
            idle_.worked();
            continue;
        }
        if (!sleep(worker, context, seen)) return;
    }
}

/// Call with the VF lock held. Each source does one bounded step, so that the CP gets its turn
/// during a long copy.
Engine::Progress Engine::step_packets(Context& context) {
    Progress progress = Progress::NothingToDo;
    if (context.cp.step() == StepResult::Progress) progress = Progress::Worked;
    for (PacketSource* source : context.sources)
        if (source->step() == StepResult::Progress) progress = Progress::Worked;
    return progress;
}

/// Clears the stop flag for the next group, unless the whole time slice must stop. Reads stopping_
/// after it clears the flag, so that a park request in between is not lost.
void Engine::clear_stop_flag(Worker& worker) const {
    worker.stop.store(false);
    if (stopping_.load()) worker.stop.store(true);
}

/// Call without the VF lock.
isa::RunResult Engine::run_group(Worker& worker, const GroupLease& lease) {
    const isa::RunContext context{
        .port = *lease.port,
        .cache = *lease.cache,
        .clock = clock_,
        .messages = worker,
        .stop = worker.stop,
        .max_instructions = spec_.group_budget,
        .apertures = lease.apertures,
        .reference_hz = spec_.reference_hz,
        .core_hz = spec_.core_hz,
        .trap = lease.trap,
        .wave_sync = lease.wave_sync,
        .watches = lease.watches,
        .vmid = lease.vmid,
    };
    worker.run_sequence.fetch_add(1);
    isa::RunResult result = isa::run(*lease.group, context);
    worker.run_sequence.fetch_add(1);
    return result;
}

/// Executes packets, then work-groups while there are any, with a step of packets after each group.
/// The VF lock is free while a group runs, so other workers execute packets and take groups
/// meanwhile.
Engine::Progress Engine::step(Worker& worker, Context& context) {
    std::unique_lock vf_lock(context.lock);
    Progress progress = step_packets(context);
    while (!stopping_.load()) {
        clear_stop_flag(worker);
        const std::optional<GroupLease> lease = context.cp.take_group(worker.index, worker.stop);
        if (!lease) break;
        // Wake sleeping workers: groups may become ready without a doorbell, for example those of a
        // kernel that waited for an earlier kernel.
        if (asleep_.load() != 0 && context.cp.has_groups()) kick();
        vf_lock.unlock();
        const isa::RunResult result = run_group(worker, *lease);
        count_time(worker);
        vf_lock.lock();
        context.cp.release(*lease, result, worker.messages);
        worker.messages.clear();
        progress = Progress::Worked;
        (void)step_packets(context);
    }
    return progress;
}

/// True if this worker must poll, because nothing kicks the engine at the end of a wait of the VF.
/// Only worker 0 polls.
bool Engine::must_poll(const Worker& worker, Context& context) const {
    if (worker.index != 0 || stopping_.load()) return false;
    const std::lock_guard vf_lock(context.lock);
    return context.cp.needs_polling() ||
           std::any_of(context.sources.begin(), context.sources.end(),
                       [](const PacketSource* s) { return s->needs_polling(); });
}

/// Reports the idle period. Releases mutex_ during the call of the listener, which takes other
/// locks.
void Engine::report_idle(std::unique_lock<PiMutex>& lock) {
    idle_.report();
    const VfId vf =
        time_slice_.context()->vf;  // read now: a park may end the time slice during the call
    lock.unlock();
    listener_.out_of_work(vf);
    lock.lock();
}

/// Waits for a kick or the end of the time slice; if `is_polling`, at most for the worker's pause.
/// The worker that was the last to leave the VF starts the idle period. A waiting worker reports
/// the period when its grace is over.
void Engine::idle_wait(std::unique_lock<PiMutex>& lock, const Worker& worker, bool is_polling,
                       std::uint64_t seen_kicks) {
    const std::uint64_t time_slice = time_slice_.number();
    const auto poll_end = std::chrono::steady_clock::now() + worker.pause;
    const auto must_wake = [&] { return is_over(time_slice) || kicks_.load() != seen_kicks; };
    if (inside_ == 0 && !must_wake()) idle_.found_no_work(clock_.now());
    while (!must_wake()) {
        const auto left = inside_ == 0 ? idle_.left(clock_.now()) : std::nullopt;
        if (left && *left <= Nanoseconds::zero()) {
            report_idle(lock);
            continue;
        }
        const auto now = std::chrono::steady_clock::now();
        if (is_polling && now >= poll_end) return;
        if (is_polling)
            changed_.wait_until(lock, left ? std::min(poll_end, now + *left) : poll_end);
        else if (left)
            changed_.wait_until(lock, now + *left);
        else
            changed_.wait(lock);
    }
}

/// Waits in idle_wait() until the worker should look for work again. Leaves the VF before the wait,
/// so that no sleeping worker delays a park. True if the worker has entered the VF again; false if
/// the time slice is over.
bool Engine::sleep(Worker& worker, Context& context, std::uint64_t seen_kicks) {
    const bool is_polling = must_poll(worker, context);
    std::unique_lock lock(mutex_);
    const std::uint64_t time_slice = time_slice_.number();
    leave(worker);
    asleep_.fetch_add(1);
    if (inside_ == 0) parked_.notify_all();
    if (!worker.priority.charge() && worker.priority.clear_real_time()) {
        lock.unlock();
        worker.priority.lower();
        lock.lock();
    }
    if (!is_over(time_slice)) idle_wait(lock, worker, is_polling, seen_kicks);
    if (!is_over(time_slice)) idle_.end_idle(clock_.now());
    asleep_.fetch_sub(1);
    worker.pause = std::min(worker.pause * 2, spec_.poll_last);
    if (is_over(time_slice)) return false;
    enter(worker);
    return true;
}

}  // namespace vgpu::softgpu::cp
