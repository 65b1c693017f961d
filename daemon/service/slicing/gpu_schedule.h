// SPDX-License-Identifier: MIT
//
// GpuSchedule: the time slicing of one GPU. Knows which VFs compete, how much engine time each
// received, and when the PF core needs a new run table: when members or contracts change, the PF
// core restarts, a VF is idle for kAsleepAfter or wakes after that, a lag or the overhead of slices
// leaves its bound, or a table that corrects lags has run once. Requests at most one table per
// kMinInterval.
//
// The entries of each priority class share, by weight, the time that reservations leave. A table
// also has contracts, which the PF core keeps. Lags concern entries only: reserved service does not
// count, and a throttled or gang VF does not compete. The PF core also tracks lags, by the
// table's weights, and deviates from the entries if a lag exceeds the longest entry. The caller
// passes the time. Owned by GpuModel; one thread.
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
    /// Minimum time between two accepted tables; doubles up to kMaxInterval while tables are
    /// refused.
    static constexpr Nanoseconds kMinInterval = std::chrono::milliseconds(10);
    static constexpr Nanoseconds kMaxInterval = std::chrono::seconds(1);
    /// Minimum time between two checks of the lags, which drift slowly.
    static constexpr Nanoseconds kCheckInterval = std::chrono::milliseconds(250);
    /// A VF that is idle for less than this is planned as a busy VF, so that a short idle period
    /// causes no new table.
    static constexpr Nanoseconds kAsleepAfter = std::chrono::milliseconds(100);

    /// A new table is required when a lag exceeds the lags of the table in force by this many
    /// quanta. A smaller value would replace tables because of measurement noise.
    static constexpr double kLagSlack = 0.25;
    /// Bound of the lags of an adopted table, in quanta. The position in the cycle of such a table
    /// is not known, so the lags may be off by a quantum.
    static constexpr double kAdoptedLagBound = 2.0;

    /// Assumed overhead of a slice (switch and overrun) until it is measured.
    static constexpr Nanoseconds kInitialOverhead = std::chrono::microseconds(100);
    /// Limit of measured overheads, because a host may stall.
    static constexpr Nanoseconds kMaxOverhead = std::chrono::milliseconds(2);

    struct Member {
        std::uint32_t vf = 0;
        std::uint32_t weight = scheduler::kDefaultWeight;
        /// The VF's own value, or the GPU's value if the VF has none; never 0.
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

    /// The state that decisions depend on, except a table that was made and is not yet confirmed.
    /// Schedules with equal images and equal inputs decide alike.
    struct Image {
        std::vector<Member> members{};
        std::uint32_t max_gap_ms = scheduler::kDefaultMaxGapMs;
        scheduler::Fluid fluid{};
        scheduler::Plan plan{};                               ///< plan of the table in force
        std::map<std::uint32_t, Nanoseconds> woken{};         ///< wakes since the last reported run
        std::map<std::uint32_t, Nanoseconds> asleep_since{};  ///< since when a VF has no work
        std::set<std::uint32_t> throttled{};                  ///< throttled VFs that have work
        /// By VF: whether the last make_table() counted the VF as asleep.
        std::map<std::uint32_t, bool> planned_asleep{};
        Nanoseconds now{0};                   ///< time of the last make_table() or installed()
        Nanoseconds installed_at{0};          ///< when the PF core last accepted or refused a table
        Nanoseconds interval = kMinInterval;  ///< minimum until the next table; grows with refusals
        double lag_bound_quanta = kLagSlack;  ///< a larger |lag| requires a new table
        Nanoseconds overhead = kInitialOverhead;  ///< mean of switch and overrun of a slice
        Nanoseconds planned_overhead{0};  ///< the overhead for which the table in force was made
        Nanoseconds last_end{0};          ///< end of the last reported run
        bool is_stale = true;  ///< true if a table is due (new members, restart, refusal)

        bool operator==(const Image&) const = default;
    };

    GpuSchedule() = default;
    /// For replays (trace/event.h). Terms and limits are computed from the members.
    explicit GpuSchedule(Image image);
    [[nodiscard]] const Image& image() const { return state_; }

    /// Fails with OutOfRange if a contract is invalid, or with NoSchedule and any number that would
    /// fit if the contracts cannot all be kept. `max_gap_ms`: for members that set no limit.
    /// `names`: for messages.
    static Result<> admit(const std::vector<Member>& members, std::uint32_t max_gap_ms,
                          std::span<const std::string> names = {});

    /// A new member begins without work and lag. A VF that changes its priority class loses its
    /// lag. If the members do not fit together, there is no new table (make_table() says why), and
    /// the table in force stays.
    void set_members(const std::vector<Member>& members, std::uint32_t max_gap_ms, Nanoseconds now);

    /// `vf` ran for `ns` until `end` (of Clock), `reserved_ns` of it reserved. Runs are reported
    /// when they are over; VFs that woke during the run compete from their wake on.
    void on_run(std::uint32_t vf, std::int64_t ns, Nanoseconds end, std::int64_t reserved_ns = 0);
    /// `vf` competes from `at` on. The wake is accounted with the next reported run, which may have
    /// begun before `at`.
    void on_wake(std::uint32_t vf, Nanoseconds at);
    /// The VF in the engine has no more work; its run is reported later.
    void on_idle(std::uint32_t vf, Nanoseconds at);
    /// `vf`, which is not in the engine, has no more work.
    void on_inactive_idle(std::uint32_t vf, Nanoseconds at);
    /// `vf`, which is not in the engine, has work but no tokens. on_wake() ends this state.
    void on_throttled(std::uint32_t vf);
    /// Events were lost. In them, `vf` received `ns`, `reserved_ns` of it reserved.
    void on_missed(std::uint32_t vf, std::int64_t ns, std::int64_t reserved_ns = 0);
    /// The device or the PF core restarted, so service cannot be followed. Sets all lags to 0.
    void restart();

    /// True if a new table is due.
    [[nodiscard]] bool needs_table(Nanoseconds now) const;
    /// When to call needs_table() again if no event comes.
    [[nodiscard]] Nanoseconds next_check(Nanoseconds now) const;

    /// The table to install as `generation`. OutOfRange or NoSchedule if the members do not fit
    /// together. Call installed() or refused() before the next call of make_table().
    Result<vgpu_pf_run_table> make_table(std::uint64_t generation, Nanoseconds now);
    /// The PF core accepted the table.
    void installed(Nanoseconds now);
    /// The PF core refused the table. The next table is due after a delay that grows.
    void refused(Nanoseconds now);
    /// Keeps `table`, which is in force in the PF core, if it is fair for the current members. Else
    /// does nothing.
    void adopt(const vgpu_pf_run_table& table, Nanoseconds now);

    [[nodiscard]] bool has_members(const std::vector<Member>& members,
                                   std::uint32_t max_gap_ms) const {
        return members == state_.members && max_gap_ms == state_.max_gap_ms;
    }
    [[nodiscard]] const scheduler::Plan& plan() const { return state_.plan; }
    [[nodiscard]] const scheduler::Fluid& fluid() const { return state_.fluid; }
    [[nodiscard]] const ServiceAccount& account() const { return account_; }
    /// Part of the engine that `vf` is entitled to by contract and weight, given which VFs have
    /// work; 0..1.
    [[nodiscard]] double ideal_share(std::uint32_t vf) const;
    [[nodiscard]] bool is_throttled(std::uint32_t vf) const {
        return state_.throttled.contains(vf);
    }
    /// True if the VF keeps its slots without work. An IDLE event of such a VF changes nothing.
    [[nodiscard]] bool is_strict(std::uint32_t vf) const;
    /// Largest |lag_quanta()| of `vf` since it joined.
    [[nodiscard]] double worst_lag_quanta(std::uint32_t vf) const;
    /// lag / largest slice of the table in force. The fairness bound has the same unit.
    [[nodiscard]] double lag_quanta(std::uint32_t vf) const;

private:
    /// Admits the members together: sets terms_ and limits_, or misfit_.
    void fit_members();
    [[nodiscard]] bool is_asleep(std::uint32_t vf, Nanoseconds now) const;
    [[nodiscard]] bool sleeping_vfs_changed(Nanoseconds now) const;
    [[nodiscard]] bool lag_left_bound() const;
    /// `between`: time from the end of the previous run to the beginning of this run.
    void record_overhead(std::uint32_t vf, std::int64_t ns, Nanoseconds between);
    [[nodiscard]] bool overhead_left_plan() const;
    /// True if the VF has work, with tokens or without; always true for a gang.
    [[nodiscard]] bool needs_engine(std::uint32_t vf) const;
    /// The planner's input for one priority class, including wakes not accounted yet.
    [[nodiscard]] std::vector<scheduler::Demand> demands(std::size_t priority_class) const;
    [[nodiscard]] vgpu_pf_contract contract(std::size_t member) const;
    void set_terms(vgpu_pf_run_table& table) const;
    /// The gap limit in us of real time that a table gives the PF core for a member; 0 if the
    /// planner has no limit for the member (kNoGapLimit).
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
    std::optional<Error> misfit_;               ///< why the members do not fit together
    scheduler::Limits limits_;
    ServiceAccount account_;
    std::optional<scheduler::Plan> made_;           ///< made by make_table(), not confirmed yet
    Nanoseconds made_overhead_{0};                  ///< the overhead for which made_ was made
    std::map<std::uint32_t, double> worst_quanta_;  ///< worst_lag_quanta(), by VF
};

}  // namespace vgpu::daemon
