// SPDX-License-Identifier: MIT
//
// Simulator: one engine, its VFs and their work, under any Policy, event by event. Time is
// simulated; a run depends on nothing but its setup and seed. The engine is a model of the
// product's: a world switch costs switch_ns that no VF is charged for, a slice may be overrun, a VF
// whose work ends leaves at once, a waking VF may cut the current slice if the policy allows.
//
// A kernel without an end is work without an end. A kernel that hangs is the same here, because no
// one resets a VF; product.h does.
//
// To judge a run, pass a Witness: it gets every piece of service and every change of the set of
// competing VFs, at the instants at which they happen.
#pragma once

#include "daemon/service/scheduler/contract.h"
#include "daemon/simulator/arrivals.h"
#include "daemon/simulator/dice.h"
#include "daemon/simulator/policy.h"

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace vgpu::simulator {

struct VfSetup {
    std::string name{};
    daemon::scheduler::Contract contract{};  ///< what the operator asked for
    double preempt_timeout_ms = 0;           ///< 0: as vgpud provisions a VF
    VfPolicy policy{};                       ///< what admission made of it
    Workload work{};
    bool joins_later = false;  ///< by a Change
};

enum class ChangeKind : std::uint8_t { Weight, Leave, Join };

struct Change {
    std::int64_t at_ns = 0;
    ChangeKind kind = ChangeKind::Weight;
    std::uint32_t vf = 0;
    std::uint32_t weight = 0;  ///< of Weight and Join
};

struct DeviceModel {
    std::int64_t switch_ns = 100'000;
    std::int64_t decision_ns = 0;  ///< from the end of a run to the start of the switch
    double overrun_part = 0;       ///< of the slices that end with work left
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
    std::int64_t left_ns = 0;  ///< of its work
};

struct VfFigures {
    std::int64_t service_ns = 0;
    std::int64_t reserved_ns = 0;
    std::uint64_t runs = 0;
    std::uint64_t jobs = 0;
    std::uint64_t missed = 0;          ///< deadlines
    std::uint64_t dropped = 0;         ///< jobs beyond a queue of kMaxJobs
    std::uint64_t resets = 0;          ///< of the VF
    std::uint64_t lost = 0;            ///< jobs that a reset ended, or that found no driver
    std::int64_t hung_ns = 0;          ///< in the engine, and did not get on
    std::int64_t longest_wait_ns = 0;  ///< off the engine with work, not held back
    std::int64_t worst_overrun_ns = 0;
    std::vector<std::int64_t> response_ns;  ///< of jobs

    /// Records that `job`, one of `work`, is done.
    void complete(const Job& job, const Workload& work, std::int64_t at_ns);
};

struct Figures {
    std::int64_t elapsed_ns = 0;
    std::int64_t service_ns = 0;
    std::int64_t switching_ns = 0;
    std::int64_t idle_ns = 0;
    std::int64_t idle_with_work_ns = 0;  ///< although a VF that is not held back had work
    std::int64_t hung_ns = 0;            ///< a VF hung there, until the engine could be used again
    std::uint64_t switches = 0;
    std::uint64_t runs = 0;
    std::vector<VfFigures> vfs;  ///< by VF number; 0 unused
};

/// Observes a run as it happens; the default does nothing.
class Witness {
public:
    virtual ~Witness() = default;
    virtual void joined(std::uint32_t, std::uint32_t /*weight*/) {}
    virtual void left(std::uint32_t) {}
    /// Swaps the accounts of the two: a VF that left in debt and returns under another number gets
    /// another VF's account.
    virtual void traded(std::uint32_t, std::uint32_t /*other*/) {}
    /// At the end: the data of vgpud's recorder (recording.h); only for the product.
    virtual void recorded(const std::vector<std::uint8_t>&) {}
    virtual void wants_weight(std::uint32_t, std::uint32_t /*weight*/) {}
    virtual void reweighted(std::uint32_t, std::uint32_t /*weight*/, std::int64_t /*at_ns*/) {}
    /// The engine is between two runs; `vf` is next by weight; 0 if none, or unknown.
    virtual void decided(std::uint32_t /*vf*/) {}
    virtual void competes(std::uint32_t) {}
    /// The VF has run out of work or is held back. `is_mid_slice`: while it was served by weight,
    /// before the end of its slice.
    virtual void rests(std::uint32_t, bool /*is_mid_slice*/) {}
    /// `ns` of service that ended at `at_ns`.
    virtual void served(std::uint32_t, std::int64_t /*ns*/, bool /*is_reserved*/,
                        std::int64_t /*at_ns*/) {}
    virtual void overran(std::int64_t /*ns*/) {}
    virtual void arrived(std::uint32_t, std::int64_t /*work_ns*/) {}
};

/// The setup must outlive it.
class Simulator {
public:
    static constexpr std::size_t kMaxJobs = 4096;
    static constexpr std::int64_t kEndlessNs = INT64_MAX / 2;  ///< work of a job that never ends

    Simulator(const Simulation& setup, Policy& policy, Witness* witness = nullptr);

    Figures run();

private:
    struct Vf {
        std::deque<Job> jobs;
        std::int64_t waits_since_ns = 0;
        bool is_in = false;
        bool has_work = false;
        bool is_held_back = false;
        std::uint32_t weight = 0;  ///< as the witness knows it
        std::uint64_t life = 0;    ///< arrivals of an earlier life are void
    };

    /// A slice by weight; belongs to no VF between two runs.
    struct Slice {
        std::uint32_t vf = 0;
        std::int64_t end_ns = 0;
    };

    [[nodiscard]] bool is_over() const;
    [[nodiscard]] std::int64_t next_outside() const;
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
    [[nodiscard]] bool somebody_waits_for_nothing() const;
    void switch_to(std::uint32_t vf);
    void begin_slice(const Grant& grant);
    void run_slice(const Grant& grant);
    std::int64_t overrun_of(VfFigures& figures);
    void serve(const Grant& grant, std::int64_t until_ns);
    void complete_job(std::uint32_t vf);
    [[nodiscard]] std::int64_t end_of_work(std::uint32_t vf) const;
    void note_held_back();
    void note_weights();
    [[nodiscard]] bool is_mid_slice(std::uint32_t vf) const;
    [[nodiscard]] bool is_backlogged(std::uint32_t vf) const;

    const Simulation& setup_;
    Policy& policy_;
    Witness* witness_;
    Dice dice_;
    std::vector<Vf> vfs_;
    ArrivalQueue arrivals_;
    std::size_t next_change_ = 0;
    std::int64_t now_ns_ = 0;
    std::uint32_t loaded_ = 0;
    std::uint32_t with_work_ = 0;
    Slice slice_;
    bool has_caps_ = false;
    bool has_changes_ = false;
    Figures figures_;
};

/// The value below which `part` of the values lie; 0 if there are none.
[[nodiscard]] std::int64_t quantile(std::vector<std::int64_t> values, double part);

}  // namespace vgpu::simulator
