// SPDX-License-Identifier: MIT
//
// GpuSchedule: the time slicing of one GPU. Knows which VFs compete and how much engine time each
// VF received, and makes run tables for the PF core. A new table is due, at most once per
// kMinInterval, when
//   - the members (VFs in the run table), their contracts or the GPU's gap limit change
//   - the device or the PF core restarts
//   - the PF core refused the last table
//   - a VF has been idle for kAsleepAfter, or such a VF wakes
//   - a lag, or the overhead of slices, leaves its bound
//   - a table that corrects lags has run for one cycle
//
// The entries of a priority class share, by weight, the time that reservations and higher classes
// leave. A table also carries the VFs' contracts, which the PF core enforces. Lags count all
// service except reserved service. A throttled VF and a VF of a gang do not compete. The PF core
// tracks lags, too, by the weights in the table, and deviates from the entries where a lag would
// exceed the longest entry. The caller passes the time. Owned by trace::Recorder; one thread.
#pragma once

#include "daemon/ports/clock.h"
#include "daemon/service/scheduler/fluid.h"
#include "daemon/service/scheduler/planner.h"
#include "daemon/service/slicing/account.h"
#include "daemon/service/vf/spec.h"
#include "pf-driver/uapi/vgpu_pf.h"

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace vgpu::daemon {

class GpuSchedule {
public:
    /// Minimum time between two tables.
    static constexpr Nanoseconds kMinInterval = std::chrono::milliseconds(10);
    /// Each refused table doubles the time until the next table, up to this limit.
    static constexpr Nanoseconds kMaxInterval = std::chrono::seconds(1);
    /// needs_table() checks the lags and the overhead only when the table is at least this old,
    /// because they drift slowly. next_check() is this far ahead while no new table is due.
    static constexpr Nanoseconds kCheckInterval = std::chrono::milliseconds(250);
    /// A VF that has been idle for less than this time is planned like a busy VF, so that a short
    /// idle period causes no new table.
    static constexpr Nanoseconds kAsleepAfter = std::chrono::milliseconds(100);

    /// A new table is due when a |lag| exceeds Plan::worst_lag_ns of the table in force by this
    /// many quanta. A smaller value would replace tables because of measurement noise.
    static constexpr double kLagSlack = 0.25;
    /// The limit of |lag|, in quanta, while an adopted table (adopt()) is in force. vgpud does not
    /// know which entry of such a table is next, so a lag may be off by a quantum.
    static constexpr double kAdoptedLagBound = 2.0;

    /// Overhead of a slice (switch and overrun) that is assumed before it is measured.
    static constexpr Nanoseconds kInitialOverhead = std::chrono::microseconds(100);
    /// Longer measured values are ignored or reduced to this limit, because a host may stall.
    static constexpr Nanoseconds kMaxOverhead = std::chrono::milliseconds(2);

    /// A VF that the run table schedules.
    struct Member {
        std::uint32_t vf = 0;
        std::uint32_t weight = scheduler::kDefaultWeight;
        /// Longest slice: the VF's quantum, or the GPU's if the VF has none; never 0.
        std::uint32_t quantum_us = scheduler::kDefaultQuantumUs;
        VfQos qos{};

        bool operator==(const Member&) const = default;
    };
    [[nodiscard]] static Member member_of(std::uint32_t vf, const VfSpec& spec,
                                          std::uint32_t gpu_quantum_us) {
        return {.vf = vf,
                .weight = spec.weight,
                .quantum_us = spec.quantum_us > 0 ? spec.quantum_us : gpu_quantum_us,
                .qos = spec.qos};
    }

    /// The state on which decisions depend, except a table that is made but not yet installed or
    /// refused. Schedules with equal images and equal inputs make equal tables.
    struct Image {
        std::vector<Member> members{};
        std::uint32_t max_gap_ms = scheduler::kDefaultMaxGapMs;
        scheduler::Fluid fluid{};
        scheduler::Plan plan{};                               ///< plan of the table in force
        std::map<std::uint32_t, Nanoseconds> woken{};         ///< wakes since the last reported run
        std::map<std::uint32_t, Nanoseconds> asleep_since{};  ///< VFs without work, and gang VFs
        std::set<std::uint32_t> throttled{};                  ///< VFs that have work but no tokens
        /// By VF: whether the last make_table() counted the VF as asleep.
        std::map<std::uint32_t, bool> planned_asleep{};
        Nanoseconds now{0};                   ///< time of the last make_table() or installed()
        Nanoseconds installed_at{0};          ///< time of the last installed() or refused()
        Nanoseconds interval = kMinInterval;  ///< minimum until the next table; grows with refusals
        double lag_bound_quanta = kLagSlack;  ///< a new table is due if a |lag| is larger
        Nanoseconds overhead = kInitialOverhead;  ///< mean of (switch + overrun) of a slice
        Nanoseconds planned_overhead{0};  ///< value of `overhead` when the table in force was made
        Nanoseconds last_end{0};          ///< end of the last reported run
        bool is_stale = true;  ///< true if a table is due (new members, restart, refusal)

        bool operator==(const Image&) const = default;
    };

    GpuSchedule() = default;
    /// Restores the state of a recording, for a replay (trace/event.h).
    explicit GpuSchedule(Image image);
    [[nodiscard]] const Image& image() const { return state_; }

    /// Checks whether the members can be scheduled together. Fails with OutOfRange if a contract is
    /// invalid, or with NoSchedule if not all contracts can be kept; the cause then names values
    /// that would fit, if any. `max_gap_ms`: the GPU's gap limit, for members without their own.
    /// `names`: names of the members, in their order, for messages; may be empty.
    static Result<> admit(const std::vector<Member>& members, std::uint32_t max_gap_ms,
                          std::span<const std::string> names = {});

    /// Replaces the members. A new member begins with no work and lag 0. A VF that changes its
    /// priority class loses its lag. If the members do not fit together, make_table() fails with
    /// the reason, and the table in force stays.
    void set_members(const std::vector<Member>& members, std::uint32_t max_gap_ms, Nanoseconds now);
    /// Removes the service of `vf` from account(). Call it when the VF is destroyed: a VF that is
    /// only paused, or whose driver is unloaded, stops being a member but keeps its service.
    void forget_service(std::uint32_t vf) { account_.forget(vf); }

    /// `vf` ran for `ns` until `end`; `reserved_ns` of this time came from its reservation. Call it
    /// when a run is over. VFs that woke during the run compete from their wake on.
    void on_run(std::uint32_t vf, std::int64_t ns, Nanoseconds end, std::int64_t reserved_ns = 0);
    /// `vf` has work from `at` on. The next on_run() accounts for the wake, even if the run began
    /// before `at`.
    void on_wake(std::uint32_t vf, Nanoseconds at);
    /// `vf`, which is in the engine, has no more work. Call on_run() for its run afterwards.
    void on_idle(std::uint32_t vf, Nanoseconds at);
    /// `vf`, which is not in the engine, has no more work.
    void on_inactive_idle(std::uint32_t vf, Nanoseconds at);
    /// `vf`, which is not in the engine, has work but no tokens. on_wake() ends this state.
    void on_throttled(std::uint32_t vf);
    /// RUN events of `vf` were lost. Together they had `ns` of service; `reserved_ns` of this came
    /// from the reservation.
    void on_missed(std::uint32_t vf, std::int64_t ns, std::int64_t reserved_ns = 0);
    /// The device or the PF core restarted, so the service since the last event is unknown. Sets
    /// all lags to 0.
    void restart();

    /// True if a new table is due. Then call make_table().
    [[nodiscard]] bool needs_table(Nanoseconds now) const;
    /// When to call needs_table() next if no event comes before.
    [[nodiscard]] Nanoseconds next_check(Nanoseconds now) const;

    /// The table to install, with `generation` in it. Fails with OutOfRange or NoSchedule if the
    /// members do not fit together. Call installed() or refused() before the next make_table().
    Result<vgpu_pf_run_table> make_table(std::uint64_t generation, Nanoseconds now);
    /// The PF core accepted the table.
    void installed(Nanoseconds now);
    /// The PF core refused the table or did not answer, or make_table() failed. The next table is
    /// due after a delay, which doubles with each call.
    void refused(Nanoseconds now);
    /// `table` is in force in the PF core, but this vgpud did not install it. Treats the table as
    /// installed if it is fair for the current members and has their contracts; otherwise does
    /// nothing.
    void adopt(const vgpu_pf_run_table& table, Nanoseconds now);

    [[nodiscard]] bool has_members(const std::vector<Member>& members,
                                   std::uint32_t max_gap_ms) const {
        return members == state_.members && max_gap_ms == state_.max_gap_ms;
    }
    [[nodiscard]] const scheduler::Plan& plan() const { return state_.plan; }
    [[nodiscard]] const scheduler::Fluid& fluid() const { return state_.fluid; }
    [[nodiscard]] const ServiceAccount& account() const { return account_; }
    /// Part of the engine, 0..1, that `vf` is entitled to by contract and weight among the VFs that
    /// have work now.
    [[nodiscard]] double ideal_share(std::uint32_t vf) const;
    [[nodiscard]] bool is_throttled(std::uint32_t vf) const {
        return state_.throttled.contains(vf);
    }
    /// True if the VF keeps its slots even without work (mode strict). on_idle() then does nothing.
    [[nodiscard]] bool is_strict(std::uint32_t vf) const;
    /// Largest |lag_quanta()| of `vf` since it became a member, while it had work.
    [[nodiscard]] double worst_lag_quanta(std::uint32_t vf) const;
    /// lag / longest slice of the table in force, the unit in which docs/scheduling.md bounds lags.
    /// Before the first table: lag / kDefaultQuantumUs.
    [[nodiscard]] double lag_quanta(std::uint32_t vf) const;

private:
    /// Admits the members together: sets terms_ and limits_, or misfit_.
    void fit_members();
    [[nodiscard]] bool is_asleep(std::uint32_t vf, Nanoseconds now) const;
    [[nodiscard]] bool sleeping_vfs_changed(Nanoseconds now) const;
    [[nodiscard]] bool lag_left_bound() const;
    /// Updates Image::overhead. `between`: time from the end of the previous run of any VF to the
    /// beginning of this run.
    void record_overhead(std::uint32_t vf, std::int64_t ns, Nanoseconds between);
    [[nodiscard]] bool overhead_left_plan() const;
    /// True if the VF has work, even if it is throttled; always true for a gang VF.
    [[nodiscard]] bool needs_engine(std::uint32_t vf) const;
    /// The planner's input for one priority class. Counts VFs in Image::woken as awake.
    [[nodiscard]] std::vector<scheduler::Demand> demands(std::size_t priority_class) const;
    [[nodiscard]] vgpu_pf_contract contract(std::size_t member) const;
    void set_terms(vgpu_pf_run_table& table) const;
    /// The member's gap limit in a run table, in us of real time; 0: no limit, because the planner
    /// has none for the member (kNoGapLimit).
    [[nodiscard]] std::uint32_t gap_in_table(std::size_t member) const;
    [[nodiscard]] bool has_priority_classes() const;
    [[nodiscard]] static bool is_gang(const Member& member) {
        return member.qos.mode == scheduler::SlotMode::Gang;
    }
    [[nodiscard]] bool is_gang(std::uint32_t vf) const;
    void stop_competing(std::uint32_t vf, Nanoseconds now);
    [[nodiscard]] bool fits_members(const vgpu_pf_run_table& table) const;
    void apply_wakes(scheduler::Fluid& fluid) const;
    void record_lags();
    [[nodiscard]] double quantum_ns() const;

    Image state_;
    std::vector<scheduler::TableTerms> terms_;  ///< by member; empty if misfit_ is set
    std::optional<Error> misfit_;               ///< why the members do not fit together; or none
    scheduler::Limits limits_;
    ServiceAccount account_;
    std::optional<scheduler::Plan> made_;  ///< plan of a table that is not yet installed or refused
    Nanoseconds made_overhead_{0};         ///< value of Image::overhead for made_
    std::map<std::uint32_t, double> worst_quanta_;  ///< worst_lag_quanta(), by VF
};

}  // namespace vgpu::daemon
