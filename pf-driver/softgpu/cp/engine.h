// SPDX-License-Identifier: MIT
//
// Engine: the worker threads of the whole device, which run one VF at a time. The workers execute
// the VF's packets with the VF's lock held, in bounded steps, and the VF's work-groups without the
// lock. A worker is "inside" the VF while it may touch the VF's state. run() puts a VF on the
// engine, park() takes it off (time_slice.h). Between the two calls the engine changes the VF's
// state; after park() the engine does not touch the VF.
//
// When the quantum of a VF ends, the quantum timer thread parks the VF and calls the listener's
// quantum_expired(). Except at the destruction of the engine, every time slice is reported once: by
// park(), or by quantum_expired() if the quantum timer thread has begun to end the time slice. In
// the second case park() waits until quantum_expired() has returned, then returns nullopt. So after
// park() and run(), no report of an earlier time slice can arrive. The quantum timer thread has
// real-time priority if the host allows it. Workers have real-time priority at times
// (worker_priority.h).
//
// When no worker finds more work, all workers leave the VF and wait. One of them calls the
// listener's out_of_work() when the VF counts as out of work (idle_tracker.h). The workers wait
// outside the VF, so they delay neither a park nor the end of the quantum.
//
// Any thread may call every function. Call park() without the VF lock, all other functions with or
// without the VF lock. The engine's own threads call the listener without any lock held. The
// listener may call run() and kick(), but not park().
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "pf-driver/softgpu/base/busy_since.h"
#include "pf-driver/softgpu/base/clock.h"
#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/base/pi_mutex.h"
#include "pf-driver/softgpu/cp/idle_tracker.h"
#include "pf-driver/softgpu/cp/time_slice.h"

namespace vgpu::softgpu::cp {

class Engine {
public:
    /// Constant after construction.
    struct Spec {
        std::uint32_t threads = 1;  ///< number of workers, at least 1
        /// Maximum number of instructions, summed over the waves of a work-group, after which the
        /// worker gives the group back to the CP (GroupLease).
        std::uint64_t group_budget = 32'768;
        /// Packets may wait for a condition whose change nothing reports, so a worker polls it.
        /// This is the first pause between two polls.
        std::chrono::microseconds poll_first{20};
        /// Longest such pause; up to it, each pause is twice the previous one.
        std::chrono::microseconds poll_last{1000};
        /// Time for which a VF that has run out of work keeps the engine before out_of_work(). The
        /// default is longer than the time from a signal to the guest's next doorbell (tens of
        /// microseconds), and short compared with a quantum.
        std::chrono::microseconds idle_grace{100};
        /// Rates of s_memrealtime and s_memtime in Hz (Vega ISA manual, SMEM).
        std::uint64_t reference_hz = 27'000'000;
        std::uint64_t core_hz = 1'000'000'000;
        /// Begins with each request to park, and ends when the park, with the quantum_expired()
        /// that reports it, is over.
        std::shared_ptr<BusySince> park = std::make_shared<BusySince>();
    };

    /// Called in the quantum timer thread or a worker thread, without any lock held.
    class Listener {
    public:
        virtual ~Listener() = default;
        /// The VF has used up its quantum and is parked.
        virtual void quantum_expired(const RunReport& report) = 0;
        /// The running VF has had no work for the idle grace, or since its time slice began. Called
        /// at most once per idle period. Another thread may park the VF before or during the call.
        virtual void out_of_work(VfId vf) = 0;
    };

    /// Starts the threads. `clock` and `listener` outlive the engine.
    Engine(const Spec& spec, const Clock& clock, Listener& listener);
    ~Engine();  ///< parks the VF and ends the threads
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    /// Puts a VF on the parked engine; EBUSY if a VF is on the engine. The quantum counts from this
    /// call, even if no worker has started yet; nullopt: no limit. `context` must live until the VF
    /// is parked. Returns the number of the time slice, which is also in its RunReport.
    [[nodiscard]] Result<std::uint64_t> run(Context& context, std::optional<Nanoseconds> quantum);
    /// Takes the VF off the engine; returns when no worker is inside the VF. nullopt if no VF was
    /// on the engine, or if the quantum timer has ended the time slice and reported it;
    /// quantum_expired() may then have put the next VF on the engine. Never call with the VF lock
    /// held, or with another lock that the listener takes.
    std::optional<RunReport> park();
    /// The VF on the engine, also while it is being parked; nullopt if there is none. The answer
    /// may be out of date at once unless the caller prevents switches.
    [[nodiscard]] std::optional<VfId> running() const;

    /// Wakes workers for new work of the running VF; cheap, any lock may be held.
    void kick();
    /// Returns when no wave of the VF uses a pointer that a Port returned before the call. For
    /// this, stops the groups of the VF that run now; workers run them again later. Returns at once
    /// if the VF is not on the engine. The VF lock may be held.
    void quiesce(VfId vf);
    /// Makes the threads read the clock again, after a virtual clock has advanced.
    void tick();

private:
    struct Worker;
    enum class Progress : std::uint8_t { Worked, NothingToDo };

    /// Body of the quantum timer thread.
    void run_quantum_timer();
    /// Body of a worker thread.
    void work(Worker& worker);
    void serve(Worker& worker, Context& context);
    [[nodiscard]] Progress step(Worker& worker, Context& context);
    [[nodiscard]] static Progress step_packets(Context& context);
    [[nodiscard]] isa::RunResult run_group(Worker& worker, const GroupLease& lease);
    [[nodiscard]] bool sleep(Worker& worker, Context& context, std::uint64_t seen_kicks);
    [[nodiscard]] bool must_poll(const Worker& worker, Context& context) const;
    void idle_wait(std::unique_lock<PiMutex>& lock, const Worker& worker, bool is_polling,
                   std::uint64_t seen_kicks);
    void report_idle(std::unique_lock<PiMutex>& lock);
    void clear_stop_flag(Worker& worker) const;
    void enter(Worker& worker);
    void count_time(Worker& worker);
    void leave(Worker& worker);
    void request_park();
    [[nodiscard]] RunReport end_time_slice(std::unique_lock<PiMutex>& lock);
    /// True if the time slice with that number is over or is being parked, or if the engine shuts
    /// down. Call with mutex_ held.
    [[nodiscard]] bool is_over(std::uint64_t time_slice) const;

    const Spec spec_;
    const Clock& clock_;
    Listener& listener_;

    /// May be taken while a VF lock is held; no VF lock is taken while mutex_ is held.
    mutable PiMutex mutex_;
    PiCondition changed_;  ///< workers wait for run(), kick(), tick(), a park or shutdown
    /// The quantum timer waits for a time slice, for the end of its quantum or for shutdown.
    PiCondition quantum_timer_wake_;
    /// The thread that parks the VF waits until the last worker has left. A park() while the
    /// quantum timer parks the VF waits until quantum_expired() has returned.
    PiCondition parked_;
    TimeSlice time_slice_;
    IdleTracker idle_;
    bool is_reporting_ = false;  ///< true while the timer is in quantum_expired()
    std::uint32_t inside_ = 0;   ///< number of workers that may touch the VF
    bool shutdown_ = false;
    /// True if all workers must leave the VF. Worker::stop ends only the run of one group.
    std::atomic<bool> stopping_{false};
    /// Counts kicks. A worker sleeps only if the count has not changed since its search for work.
    std::atomic<std::uint64_t> kicks_{0};
    std::atomic<std::uint32_t> asleep_{0};  ///< number of workers inside sleep()

    std::vector<std::unique_ptr<Worker>> workers_;
    std::vector<std::thread> threads_;
    std::thread quantum_timer_;
};

}  // namespace vgpu::softgpu::cp
