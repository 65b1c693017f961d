// SPDX-License-Identifier: MIT
//
// Simulator: simulates one engine, its VFs and their work under any Policy, event by event. A run
// depends only on setup and policy. As in the product's engine, no VF is charged for the time of a
// world switch. Slices may overrun. A VF leaves the engine when its work ends; a strict VF stays
// until its slice ends. Simulator treats a kernel that hangs as endless work, because only the
// product (product.h) resets VFs. An Observer gets all service, and all changes of the set of
// competing VFs, in the order of time.
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

struct VfSetup {
    std::string name{};
    daemon::scheduler::Contract contract{};  ///< as requested
    double preempt_timeout_ms = 0;           ///< 0: as vgpud provisions a VF
    VfPolicy policy{};                       ///< after admission
    Workload work{};
    bool joins_later = false;  ///< true if the VF joins later, by a Change
};

enum class ChangeKind : std::uint8_t { Weight, Leave, Join };

struct Change {
    std::int64_t at_ns = 0;
    ChangeKind kind = ChangeKind::Weight;
    std::uint32_t vf = 0;
    std::uint32_t weight = 0;  ///< for Weight and Join
};

struct DeviceModel {
    std::int64_t switch_ns = 100'000;
    std::int64_t decision_ns = 0;  ///< time between a run and the next switch
    double overrun_part = 0;       ///< probability that a slice with work left overruns
    std::int64_t overrun_mean_ns = 0;
    std::int64_t overrun_max_ns = 0;
};

struct Simulation {
    std::string name{};
    DeviceModel device{};
    std::vector<VfSetup> vfs{};  ///< VF 1, 2, ...
    std::vector<Change> changes{};
    std::int64_t duration_ns = 0;  ///< 0: no limit
    std::uint64_t max_runs = 0;    ///< 0: no limit
    std::uint64_t seed = 1;
};

struct Job {
    std::int64_t arrived_ns = 0;
    std::int64_t left_ns = 0;  ///< remaining work
};

struct VfFigures {
    std::int64_t service_ns = 0;
    std::int64_t reserved_ns = 0;
    std::uint64_t runs = 0;
    std::uint64_t jobs = 0;
    std::uint64_t missed = 0;          ///< jobs that missed their deadline
    std::uint64_t dropped = 0;         ///< jobs beyond a queue of kMaxJobs
    std::uint64_t resets = 0;          ///< number of resets of the VF
    std::uint64_t lost = 0;            ///< jobs that a reset ended, or that came without a driver
    std::int64_t hung_ns = 0;          ///< time on the engine without progress
    std::int64_t longest_wait_ns = 0;  ///< longest time off the engine with work and not throttled
    std::int64_t worst_overrun_ns = 0;
    std::vector<std::int64_t> response_ns;  ///< response of each job

    void complete(const Job& job, const Workload& work, std::int64_t at_ns);
};

struct Figures {
    std::int64_t elapsed_ns = 0;
    std::int64_t service_ns = 0;
    std::int64_t switching_ns = 0;
    std::int64_t idle_ns = 0;
    std::int64_t idle_with_work_ns = 0;  ///< idle time while a VF had work and was not throttled
    std::int64_t hung_ns = 0;            ///< time from each hang until the engine was usable again
    std::uint64_t switches = 0;
    std::uint64_t runs = 0;
    std::vector<VfFigures> vfs;  ///< by VF number; 0 unused
};

/// Observes a run. The functions do nothing by default.
class Observer {
public:
    virtual ~Observer() = default;
    virtual void joined(std::uint32_t, std::uint32_t /*weight*/) {}
    virtual void left(std::uint32_t) {}
    /// Swaps the accounts of two VFs. Only the product calls it, when a VF joins with another VF
    /// number than before, or with a number that another VF has had.
    virtual void swapped(std::uint32_t, std::uint32_t /*other*/) {}
    /// Gets vgpud's recording (recording.h) at the end of the run. Only the product calls it.
    virtual void recorded(const std::vector<std::uint8_t>&) {}
    virtual void reweighted(std::uint32_t, std::uint32_t /*weight*/) {}
    /// Called between two runs, and by the product also before a VF begins to compete. `vf`: the VF
    /// that is next by weight; 0: none or unknown.
    virtual void decided(std::uint32_t /*vf*/) {}
    virtual void competes(std::uint32_t) {}
    /// The VF has no work left, or is throttled. `is_mid_slice`: true if this is within the VF's
    /// slice by weight.
    virtual void stops_competing(std::uint32_t, bool /*is_mid_slice*/) {}
    /// The VF got `ns` of service, which ended at `at_ns`.
    virtual void served(std::uint32_t, std::int64_t /*ns*/, bool /*is_reserved*/,
                        std::int64_t /*at_ns*/) {}
    virtual void arrived(std::uint32_t, std::int64_t /*work_ns*/) {}
};

/// `setup` must outlive the Simulator.
class Simulator {
public:
    static constexpr std::size_t kMaxJobs = 4096;
    static constexpr std::int64_t kEndlessNs = INT64_MAX / 2;  ///< work of an endless job

    Simulator(const Simulation& setup, Policy& policy, Observer* observer = nullptr);

    Figures run();

private:
    struct Vf {
        std::deque<Job> jobs;
        std::int64_t waits_since_ns = 0;
        bool is_in = false;
        bool has_work = false;
        std::uint64_t incarnation = 0;  ///< number of joins; arrivals of earlier joins are void
    };

    /// The present slice. `vf` is 0 between two slices.
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
    Rng rng_;
    std::vector<Vf> vfs_;
    ArrivalQueue arrivals_;
    std::size_t next_change_ = 0;
    std::int64_t now_ns_ = 0;
    std::uint32_t loaded_ = 0;
    std::uint32_t with_work_ = 0;
    Slice slice_;
    Figures figures_;
};

/// The quantile of `values`, such as the median for a `part` of 0.5; 0 without values.
[[nodiscard]] std::int64_t quantile(std::vector<std::int64_t> values, double part);

}  // namespace vgpu::simulator
