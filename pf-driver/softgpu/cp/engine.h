// SPDX-License-Identifier: MIT
//
// Engine: the worker threads of the whole device. It runs one VF at a time: the workers execute its
// packets (with the VF's lock held, in bounded steps) and its work-groups (without it). run() puts
// a VF on the engine, park() takes it off (stay.h); in between the state of the VF changes,
// afterwards nothing touches it but the caller.
//
// A VF with a quantum parks itself at its end and quantum_expired() tells the listener. Every stay
// is reported exactly once: by park(), or by quantum_expired() if the deadline came first; then a
// park() returns nothing, and only after the report was given: whoever parks before each run() is
// never told of a stay before this one. Where the host allows it, who ends quanta runs in real
// time, and so do workers at times (worker_priority.h).
//
// The last worker out of a VF that has run dry waits until it counts as out of work
// (idle_tracker.h), outside the VF, so a park or the end of the quantum is not delayed by it.
//
// Threads: any thread may call; park() without the VF lock, the others with or without it. The
// listener is called by the engine's own threads without any lock held; it may call run() and
// kick(), but not park().
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "pf-driver/softgpu/base/clock.h"
#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/base/pi_mutex.h"
#include "pf-driver/softgpu/cp/idle_tracker.h"
#include "pf-driver/softgpu/cp/stay.h"

namespace vgpu::softgpu::cp {

class Engine {
public:
    /// Constant after build.
    struct Spec {
        std::uint32_t threads = 1;
        std::uint64_t group_budget = 32'768;       ///< wave instructions before a group's turn ends
        std::chrono::microseconds poll_first{20};  ///< memory waits of the running VF are looked at
        std::chrono::microseconds poll_last{1000};  ///< this often, slower the longer they last
        /// Longest dry spell that belongs to a stay; longer than a guest takes from a signal to
        /// its next doorbell (tens of microseconds), short against a quantum.
        std::chrono::microseconds idle_grace{100};
        /// What s_memrealtime and s_memtime count (Vega ISA manual, SMEM).
        std::uint64_t reference_hz = 27'000'000;
        std::uint64_t core_hz = 1'000'000'000;
    };

    /// Called without any lock, by governor or workers.
    class Listener {
    public:
        virtual ~Listener() = default;
        /// The VF has used up its quantum and is parked.
        virtual void quantum_expired(const RunReport& report) = 0;
        /// The running VF has had nothing to do for the idle grace; once per dry spell.
        virtual void out_of_work(VfId vf) = 0;
    };

    /// Starts the threads. `clock` and `listener` outlive the engine.
    Engine(const Spec& spec, const Clock& clock, Listener& listener);
    ~Engine();  ///< parks
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    /// Puts a VF on the parked engine; EBUSY if another one is on it.
    /// The quantum counts from here, whether or not a worker has come yet; nullopt: no end.
    /// `context` must live until the VF is parked.
    [[nodiscard]] Result<> run(Context& context, std::optional<Nanoseconds> quantum);
    /// Takes the VF off; returns when no worker is inside it. nullopt if it was parked already, or
    /// parked itself meanwhile; quantum_expired() has returned then. Never call with the VF lock
    /// held, or another one that the listener takes.
    std::optional<RunReport> park();
    /// Also while it is being parked. Out of date at once, unless the caller prevents switches.
    [[nodiscard]] std::optional<VfId> running() const;

    /// New work for the running VF; cheap, any lock may be held.
    void kick();
    /// Returns when no pointer that a wave of the VF got from a Port before the call is still in
    /// use: workers that are inside the VF have passed a stop point. Others are let alone. The VF
    /// lock may be held.
    void quiesce(VfId vf);
    /// Looks at the clock again (a virtual clock has been advanced).
    void tick();

private:
    struct Worker;
    enum class Turn : std::uint8_t { Worked, NothingToDo };

    /// Body of the governor thread: ends quanta.
    void govern();
    /// Body of a worker thread.
    void work(Worker& worker);
    void serve(Worker& worker, Context& context);
    [[nodiscard]] Turn turn(Worker& worker, Context& context);
    [[nodiscard]] static Turn packet_turn(Context& context);
    [[nodiscard]] isa::RunResult run_group(Worker& worker, const GroupLoan& loan);
    [[nodiscard]] bool sleep(Worker& worker, Context& context, std::uint64_t seen_kicks);
    [[nodiscard]] bool polls(const Worker& worker, Context& context) const;
    void doze(std::unique_lock<PiMutex>& lock, const Worker& worker, bool is_polling,
              std::uint64_t seen_kicks);
    void tell_out_of_work(std::unique_lock<PiMutex>& lock);
    void arm(Worker& worker) const;
    void enter(Worker& worker);
    void count_time(Worker& worker);
    void leave(Worker& worker);
    void request_park();
    [[nodiscard]] RunReport close_run(std::unique_lock<PiMutex>& lock);
    /// mutex_ held; of the stay with that number.
    [[nodiscard]] bool is_over(std::uint64_t stay) const;

    const Spec spec_;
    const Clock& clock_;
    Listener& listener_;

    mutable PiMutex mutex_;  // leaf: taken with a VF lock held, never the other way round
    PiCondition changed_;    // run, kick, park, shutdown: workers
    PiCondition governed_;   // deadline, shutdown: governor
    PiCondition parked_;     // last worker out, run closed, quantum's end told
    Stay stay_;
    IdleTracker idle_;
    bool is_telling_ = false;   ///< the governor is in quantum_expired()
    std::uint32_t inside_ = 0;  ///< workers that may touch the VF
    bool shutdown_ = false;
    /// The stop of the whole stay; each worker's own flag stops one group.
    std::atomic<bool> stopping_{false};
    /// Counts up; a sleeper compares with what it saw before it last looked for work.
    std::atomic<std::uint64_t> kicks_{0};
    std::atomic<std::uint32_t> asleep_{0};

    std::vector<std::unique_ptr<Worker>> workers_;
    std::vector<std::thread> threads_;
    std::thread governor_;
};

}  // namespace vgpu::softgpu::cp
