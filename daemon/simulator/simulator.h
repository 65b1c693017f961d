// SPDX-License-Identifier: MIT
//
// Simulator: simulates one engine, its VFs and their work under any Policy, event by event. The
// result depends only on setup and policy. As in the product (product.h), no VF is charged for the
// time of a world switch. Slices may overrun. A VF leaves the engine when its work ends; a strict
// VF stays until its slice ends. Simulator treats a kernel that hangs as endless work, because only
// the product resets VFs. An Observer gets all service, and all changes of the set of competing
// VFs, in the order of time.
#pragma once

#include "daemon/service/scheduler/contract.h"
#include "daemon/simulator/arrivals.h"
#include "daemon/simulator/policy.h"
#include "daemon/simulator/rng.h"

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace vgpu::simulator {

/// One VF of a Simulation.
struct VfSetup {
    std::string name{};
    daemon::scheduler::Contract contract{};  ///< as requested
    double preempt_timeout_ms = 0;           ///< 0: vgpud's default
    VfPolicy policy{};                       ///< made from `contract` by admission
    Workload work{};
    bool joins_later = false;  ///< true if the VF joins later, by a Change
};

enum class ChangeKind : std::uint8_t { Weight, Leave, Join };

/// A change that an operator makes.
struct Change {
    std::int64_t at_ns = 0;  ///< since the simulation began
    ChangeKind kind = ChangeKind::Weight;
    std::uint32_t vf = 0;      ///< index in Simulation::vfs, plus 1
    std::uint32_t weight = 0;  ///< for Weight and Join
};

/// Times of the device. An overrun is exponentially distributed, and cut at overrun_max_ns.
struct DeviceModel {
    std::int64_t switch_ns = 100'000;  ///< time of a world switch
    std::int64_t decision_ns = 0;      ///< time before each world switch, for the decision
    double overrun_part = 0;           ///< probability that a slice of a VF with work overruns
    std::int64_t overrun_mean_ns = 0;  ///< mean before the cut
    std::int64_t overrun_max_ns = 0;
};

/// The input of a run.
struct Simulation {
    std::string name{};
    DeviceModel device{};
    std::vector<VfSetup> vfs{};     ///< VF 1, 2, ...
    std::vector<Change> changes{};  ///< in the order of time
    std::int64_t duration_ns = 0;   ///< 0: no limit
    std::uint64_t max_runs = 0;     ///< limit of the runs of all VFs; 0: no limit
    std::uint64_t seed = 1;         ///< of all random numbers
};

struct Job {
    std::int64_t arrived_ns = 0;  ///< since the simulation began
    std::int64_t left_ns = 0;     ///< remaining work
};

/// The result for one VF. Simulator leaves reserved_ns, resets, lost and hung_ns 0.
struct VfFigures {
    std::int64_t service_ns = 0;
    std::int64_t reserved_ns = 0;       ///< part of service_ns from the reservation
    std::uint64_t runs = 0;             ///< slices
    std::uint64_t jobs = 0;             ///< completed jobs
    std::uint64_t missed = 0;           ///< completed jobs that missed their deadline
    std::uint64_t dropped = 0;          ///< jobs that arrived when the VF had kMaxJobs jobs
    std::uint64_t resets = 0;           ///< number of resets of the VF
    std::uint64_t lost = 0;             ///< jobs that a reset ended, except endless jobs, and jobs
                                        ///< that arrived while the driver was not loaded
    std::int64_t hung_ns = 0;           ///< time on the engine without progress
    std::int64_t longest_wait_ns = 0;   ///< longest time off the engine with work, not throttled,
                                        ///< before a slice; a wait that did not end is left out
    std::int64_t worst_overrun_ns = 0;  ///< longest overrun, or longest hang until a reset
    std::vector<std::int64_t> response_ns;  ///< response of each completed job

    /// Counts a job that was completed at `at_ns`.
    void complete(const Job& job, const Workload& work, std::int64_t at_ns);
};

/// The result of a run.
struct Figures {
    std::int64_t elapsed_ns = 0;  ///< simulated time
    std::int64_t service_ns = 0;
    std::int64_t switching_ns = 0;
    std::int64_t idle_ns = 0;
    /// Part of idle_ns in which a VF had work and was not throttled. The product leaves out work of
    /// gangs, and slots that their strict VF or gang did not use.
    std::int64_t idle_with_work_ns = 0;
    std::int64_t hung_ns = 0;  ///< time from each hang until the engine was usable again
    std::uint64_t switches = 0;
    std::uint64_t runs = 0;
    std::vector<VfFigures> vfs;  ///< by VF number; 0 unused
};

/// Observes a run. The functions do nothing by default. The first parameter of most functions is a
/// VF: its index in Simulation::vfs, plus 1. A VF competes while it has work and is not throttled
/// (product.h has exceptions).
class Observer {
public:
    virtual ~Observer() = default;
    virtual void joined(std::uint32_t, std::uint32_t /*weight*/) {}
    virtual void left(std::uint32_t) {}
    /// Swaps the lag accounts of two VFs. `other` may be above the number of VFs (spare account).
    /// Only the product calls this function, when a VF joins with another number on the device than
    /// before, or with a number that another VF has had.
    virtual void swapped(std::uint32_t, std::uint32_t /*other*/) {}
    /// Gets vgpud's recording (recording.h) at the end of a run of the product.
    virtual void recorded(const std::vector<std::uint8_t>&) {}
    virtual void reweighted(std::uint32_t, std::uint32_t /*weight*/) {}
    /// Called between two runs, and by the product also before a VF begins to compete. `vf`: the
    /// next VF; 0: none or unknown.
    virtual void decided(std::uint32_t /*vf*/) {}
    virtual void competes(std::uint32_t) {}
    /// The VF has no work left, or is throttled. `is_mid_slice`: true if this is within the VF's
    /// slice by weight.
    virtual void stops_competing(std::uint32_t, bool /*is_mid_slice*/) {}
    /// The VF got `ns` of service, which ended at `at_ns`. `is_reserved`: true if the service is
    /// not by weight, because it comes from the reservation or no run table has given the VF a
    /// share yet.
    virtual void served(std::uint32_t, std::int64_t /*ns*/, bool /*is_reserved*/,
                        std::int64_t /*at_ns*/) {}
    /// Work arrived at the VF. `work_ns`: Simulator::kEndlessNs for work without an end.
    virtual void arrived(std::uint32_t, std::int64_t /*work_ns*/) {}
};

/// `setup`, `policy` and `observer` must outlive the Simulator.
class Simulator {
public:
    static constexpr std::size_t kMaxJobs = 4096;  ///< limit of one VF's jobs; faults may exceed it
    static constexpr std::int64_t kEndlessNs = INT64_MAX / 2;  ///< work of an endless job

    Simulator(const Simulation& setup, Policy& policy, Observer* observer = nullptr);

    Figures run();

private:
    struct Vf {
        std::deque<Job> jobs;
        std::int64_t waits_since_ns = 0;
        bool is_in = false;
        bool has_work = false;
        std::uint64_t incarnation = 0;  ///< number of joins; arrivals of earlier joins are ignored
    };

    /// The current slice, without its overrun. `vf` is 0 between two slices.
    struct Slice {
        std::uint32_t vf = 0;
        std::int64_t end_ns = 0;
    };

    [[nodiscard]] bool is_over() const;
    [[nodiscard]] std::int64_t next_input() const;
    [[nodiscard]] std::int64_t next_event() const;
    void pass_to(std::int64_t at_ns);
    void deliver();
    void deliver_change(const Change& change);
    void arrive(const Arrival& arrival);
    void submit(const Arrival& arrival, std::int64_t work_ns);
    void join(std::uint32_t vf, std::uint32_t weight);
    void leave(std::uint32_t vf);
    void run_out_of_work(std::uint32_t vf);
    void idle();
    void switch_to(std::uint32_t vf);
    void begin_slice(const Grant& grant);
    void run_slice(const Grant& grant);
    std::int64_t overrun_of(VfFigures& figures);
    void serve(const Grant& grant, std::int64_t until_ns);
    void complete_job(std::uint32_t vf);
    [[nodiscard]] std::int64_t end_of_work(std::uint32_t vf) const;
    [[nodiscard]] bool is_mid_slice(std::uint32_t vf) const;
    [[nodiscard]] bool is_backlogged(std::uint32_t vf) const;

    const Simulation& setup_;
    Policy& policy_;
    Observer* observer_;
    Rng overrun_rng_;
    std::vector<Vf> vfs_;
    ArrivalQueue arrivals_;
    std::size_t next_change_ = 0;
    std::int64_t now_ns_ = 0;
    std::uint32_t loaded_ = 0;     ///< VF in the engine; 0: none
    std::uint32_t with_work_ = 0;  ///< number of VFs with work
    Slice slice_;
    Figures figures_;
};

/// The value at index round(part · (n − 1)) of the sorted `values`: for a `part` of 0.5 the (upper)
/// median, for 1 the maximum; 0 without values.
[[nodiscard]] std::int64_t quantile(std::vector<std::int64_t> values, double part);

}  // namespace vgpu::simulator
