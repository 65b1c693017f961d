// SPDX-License-Identifier: MIT
//
// ArrivalQueue: the next arrivals of work for all VFs, earliest first. Also the types that describe
// the work of a VF. The random times depend only on the seed, the VF and the number of its joins,
// so every policy gets the same work.
#pragma once

#include "daemon/simulator/rng.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <vector>

namespace vgpu::simulator {

/// How the work of a VF arrives. The names in the comments are members of Workload.
enum class Arrivals : std::uint8_t {
    Backlogged,  ///< the VF always has work
    Bursty,      ///< jobs of work_ns; times between arrivals are exponential, with mean period_ns
    Periodic,    ///< a job of work_ns every period_ns, the first phase_ns after the VF joins
    Recorded,    ///< the jobs in `jobs`, without those before the VF joins
};

struct RecordedJob {
    std::int64_t at_ns = 0;    ///< time of arrival, since the simulation began
    std::int64_t work_ns = 0;  ///< engine time that the job needs
};

enum class BadKernel : std::uint8_t {
    None,     ///< no fault
    Endless,  ///< runs without end, but can be preempted like any other kernel
    Hang,     ///< neither proceeds nor leaves the engine, so its VF must be reset
};

/// A GPU kernel that never ends. A guest starts the kernel at `at_ns`.
struct VfFault {
    std::int64_t at_ns = 0;  ///< since the simulation began
    BadKernel kind = BadKernel::None;
    bool stays_out = false;  ///< true if the guest does not load its driver again after a reset
};

/// The work of one VF.
struct Workload {
    Arrivals arrivals = Arrivals::Backlogged;
    std::int64_t work_ns = 0;
    std::int64_t period_ns = 0;
    std::int64_t phase_ns = 0;
    std::int64_t deadline_ns = 0;     ///< time from a job's arrival to its deadline; 0: none
    std::vector<RecordedJob> jobs{};  ///< only for Arrivals::Recorded; in the order of time
    std::vector<VfFault> faults{};    ///< in addition to the jobs
};

/// A job, or a fault, that arrives at a VF.
struct Arrival {
    std::int64_t at_ns = 0;
    std::uint32_t vf = 0;
    std::uint64_t incarnation = 0;  ///< number of joins of the VF so far; arrivals of earlier joins
                                    ///< are ignored
    std::int64_t work_ns = 0;
    std::size_t next_job = 0;  ///< index of the next job in Workload::jobs
    VfFault fault{};           ///< if fault.kind is not None, the fault arrives instead of a job
    Rng rng{0};                ///< draws the VF's later arrivals

    /// Orders by time, then by VF.
    bool operator>(const Arrival& other) const {
        return at_ns > other.at_ns || (at_ns == other.at_ns && vf > other.vf);
    }
};

class ArrivalQueue {
public:
    static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

    [[nodiscard]] bool is_empty() const { return queue_.empty(); }
    [[nodiscard]] std::int64_t next_ns() const { return is_empty() ? kNever : queue_.top().at_ns; }
    Arrival take() {
        const Arrival arrival = queue_.top();
        queue_.pop();
        return arrival;
    }
    /// Adds the first arrival, if any, of a VF that joins at from.at_ns, and the faults of the VF
    /// from that time on. `seed`: Simulation::seed.
    void begin(const Workload& work, Arrival from, std::uint64_t seed) {
        from.rng = Rng(seed ^ Rng((std::uint64_t{from.vf} << 32) + from.incarnation)());
        for (const VfFault& fault : work.faults)
            if (fault.at_ns >= from.at_ns)
                queue_.push({.at_ns = fault.at_ns,
                             .vf = from.vf,
                             .incarnation = from.incarnation,
                             .fault = fault});
        if (work.arrivals == Arrivals::Recorded) return push_next_job(work, from);
        if (work.arrivals == Arrivals::Bursty) from.at_ns += from.rng.exponential(work.period_ns);
        if (work.arrivals == Arrivals::Periodic) from.at_ns += work.phase_ns;
        from.work_ns = work.work_ns;
        queue_.push(from);
    }
    /// Adds work after a reset, when the VF's driver has loaded again. Does so only for backlogged
    /// work; for other kinds of work, the queue still has the VF's next arrival, if any.
    void begin_again(const Workload& work, const Arrival& from) {
        if (work.arrivals == Arrivals::Backlogged) queue_.push(from);
    }
    /// Adds the VF's next arrival after `last`, if any. Does nothing for backlogged work, which has
    /// no next arrival.
    void follow(const Workload& work, Arrival last) {
        if (work.arrivals == Arrivals::Backlogged) return;
        if (work.arrivals == Arrivals::Recorded) return push_next_job(work, last);
        last.at_ns += work.arrivals == Arrivals::Bursty ? last.rng.exponential(work.period_ns)
                                                        : work.period_ns;
        queue_.push(last);
    }

private:
    /// Adds the first job from `last.next_job` on that arrives at last.at_ns or later, if any.
    void push_next_job(const Workload& work, Arrival last) {
        while (last.next_job < work.jobs.size() && work.jobs[last.next_job].at_ns < last.at_ns)
            ++last.next_job;
        if (last.next_job == work.jobs.size()) return;
        const RecordedJob& job = work.jobs[last.next_job++];
        last.at_ns = job.at_ns;
        last.work_ns = job.work_ns;
        queue_.push(last);
    }

    std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> queue_;
};

}  // namespace vgpu::simulator
