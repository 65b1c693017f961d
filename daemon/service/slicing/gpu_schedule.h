// SPDX-License-Identifier: MIT
//
// GpuSchedule: the time slicing of one GPU: who competes, what each received, and when the PF core
// needs a new run table. Fed with events; asked for tables. A table is wanted when the members or
// their contracts change, when a VF that slept wakes or falls asleep for good, when a lag leaves
// its bound, and when a table that pays lags back has done so; at most one every kMinInterval.
//
// A table has two parts: entries, which share by weight what reservations leave, each priority band
// for itself; and contracts, which the PF core keeps. Lags are about the first part: what a
// reservation paid for is no service there, and a VF that its cap holds back does not compete. Nor
// does a VF of a gang: it has its slots and no more.
//
// The PF core keeps each VF's account by the weights that the table names, also between the moment
// a table is planned and the moment it is in force. Time is injected. One thread; owned by
// GpuModel.
#pragma once

#include "daemon/ports/clock.h"
#include "daemon/service/scheduler/fluid.h"
#include "daemon/service/scheduler/planner.h"
#include "daemon/service/slicing/account.h"
#include "daemon/service/vf/qos.h"
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
    /// Between two tables that the PF core takes; doubles up to kMaxInterval while it refuses them.
    static constexpr Nanoseconds kMinInterval = std::chrono::milliseconds(10);
    static constexpr Nanoseconds kMaxInterval = std::chrono::seconds(1);
    /// Lags drift slowly: they are looked at once per cycle, but not more often than this.
    static constexpr Nanoseconds kCheckInterval = std::chrono::milliseconds(250);
    /// A VF without work for less keeps its place among those that work: short idles must not cost
    /// a table each.
    static constexpr Nanoseconds kAsleepAfter = std::chrono::milliseconds(100);

    /// Quanta beyond the lags of the table in force that ask for another one. Where an adopted
    /// table stands in its cycle is not known, so lags counted from there may be off by a quantum.
    /// In quanta; smaller ones would replace tables for noise of the measurement.
    static constexpr double kLagSlack = 0.25;
    static constexpr double kAdoptedLagBound = 2.0;

    /// What passes with a turn beyond its slice, until it has been measured, and the most that
    /// counts as such: a host that stood still is no property of turns.
    static constexpr Nanoseconds kFirstTurn = std::chrono::microseconds(100);
    static constexpr Nanoseconds kMaxTurn = std::chrono::milliseconds(2);

    /// quantum_us is the VF's own, or the GPU's: never 0 here.
    struct Member {
        std::uint32_t vf = 0;
        std::uint32_t weight = scheduler::kDefaultWeight;
        std::uint32_t quantum_us = scheduler::kDefaultQuantumUs;
        VfQos qos{};

        bool operator==(const Member&) const = default;
    };

    /// What decisions depend on, except for a table that is given out and not yet confirmed. Equal
    /// ones, told and asked the same, decide alike.
    struct Image {
        std::vector<Member> members{};
        std::uint32_t max_gap_ms = scheduler::kDefaultMaxGapMs;
        scheduler::FluidImage fluid{};
        scheduler::Plan plan{};                        ///< in force
        std::map<std::uint32_t, Nanoseconds> woken{};  ///< since the last run was reported
        std::map<std::uint32_t, Nanoseconds> asleep_since{};
        std::set<std::uint32_t> held{};  ///< have work and no tokens
        std::map<std::uint32_t, bool> planned_asleep{};
        Nanoseconds now{0};
        Nanoseconds installed_at{0};
        Nanoseconds interval = kMinInterval;
        double lag_bound_quanta = kLagSlack;
        Nanoseconds turn = kFirstTurn;
        Nanoseconds planned_turn{0};
        Nanoseconds last_end{0};
        bool is_stale = true;

        bool operator==(const Image&) const = default;
    };

    GpuSchedule() = default;
    /// For replays (trace/event.h): terms and limits are not in the image, they follow from the
    /// members.
    explicit GpuSchedule(const Image& image);
    [[nodiscard]] Image image() const;

    /// OutOfRange or NoSchedule, with a number that fits, if the contracts of `members` make no
    /// sense or cannot be kept together; gaps are `max_gap_ms` where a member asks for none.
    /// `names`: of the members, for the message; without them it has their numbers.
    static Result<> admit(const std::vector<Member>& members, std::uint32_t max_gap_ms,
                          std::span<const std::string> names = {});

    /// A newcomer begins without work and without lag; one that moves to another band takes neither
    /// lag nor debt along. Members that do not fit together make no table (make_table() says why):
    /// the one in force goes on.
    void set_members(const std::vector<Member>& members, std::uint32_t max_gap_ms, Nanoseconds now);

    /// `vf` ran for `ns` until `end`; its reservation paid for `reserved_ns` of that. All times are
    /// of Clock. A run is reported when it is over; VFs that woke during it compete from then on,
    /// not before.
    void on_run(std::uint32_t vf, std::int64_t ns, Nanoseconds end, std::int64_t reserved_ns = 0);
    /// It competes from `at` on, but the account learns of it with the next run, which may have
    /// begun before.
    void on_wake(std::uint32_t vf, Nanoseconds at);
    /// The VF in the engine has run out of work; its run is still to be reported.
    void on_idle(std::uint32_t vf, Nanoseconds at);
    /// A VF off the engine has no work (any more).
    void on_parked_idle(std::uint32_t vf, Nanoseconds at);
    /// A VF off the engine has work and no tokens; on_wake() tells when it has some.
    void on_capped(std::uint32_t vf);
    /// Events were lost in which `vf` received `ns`, of which `reserved_ns` were reserved.
    void on_missed(std::uint32_t vf, std::int64_t ns, std::int64_t reserved_ns = 0);
    /// Service can no longer be followed (device or PF core started anew): lags begin at zero.
    void restart();

    [[nodiscard]] bool wants_table(Nanoseconds now) const;
    /// When to ask wants_table() again without an event.
    [[nodiscard]] Nanoseconds next_check(Nanoseconds now) const;

    /// The table to install as `generation`.
    /// NoSchedule if the members cannot be kept together. Followed by installed() or refused(),
    /// before anything else is made. O(bands) calls of the planner.
    Result<vgpu_pf_run_table> make_table(std::uint64_t generation, Nanoseconds now);
    /// The PF core took the table made last.
    void installed(Nanoseconds now);
    /// The PF core refused it; another is wanted after a while (longer each time).
    void refused(Nanoseconds now);
    /// The PF core has `table` in force; kept if it is fair for the members as they are.
    void adopt(const vgpu_pf_run_table& table, Nanoseconds now);

    [[nodiscard]] bool has_members(const std::vector<Member>& members,
                                   std::uint32_t max_gap_ms) const {
        return members == members_ && max_gap_ms == max_gap_ms_;
    }
    [[nodiscard]] const scheduler::Plan& plan() const { return plan_; }
    [[nodiscard]] const scheduler::Fluid& fluid() const { return fluid_; }
    [[nodiscard]] const ServiceAccount& account() const { return account_; }
    /// Part of the engine that contract and weight entitle `vf` to now, given who has work, 0..1;
    /// 0 while it has none.
    [[nodiscard]] double ideal_share(std::uint32_t vf) const;
    /// Is it held back for want of tokens?
    [[nodiscard]] bool is_capped(std::uint32_t vf) const { return held_.contains(vf); }
    /// Keeps its slots without work, so that its going idle changes nothing.
    [[nodiscard]] bool is_strict(std::uint32_t vf) const;
    /// Largest |lag| of `vf` seen since it joined, in quanta of the table then in force.
    [[nodiscard]] double worst_lag_quanta(std::uint32_t vf) const;
    /// lag / largest slice of the table in force: the unit of the fairness bound.
    [[nodiscard]] double lag_quanta(std::uint32_t vf) const;
    /// World switch and overrun of a turn, lately, on average.
    [[nodiscard]] Nanoseconds turn() const { return turn_; }

private:
    /// Sets terms_ and limits_, or misfit_.
    void fit_members();
    [[nodiscard]] bool is_asleep(std::uint32_t vf, Nanoseconds now) const;
    [[nodiscard]] bool sleepers_changed(Nanoseconds now) const;
    [[nodiscard]] bool lag_left_bound() const;
    /// `between`: the end of the run before it and its own beginning.
    void note_turn(std::uint32_t vf, std::int64_t ns, Nanoseconds between);
    [[nodiscard]] bool turns_left_plan() const;
    /// Has work as far as is known, tokens or not; a gang always does.
    [[nodiscard]] bool wants_engine(std::uint32_t vf) const;
    /// What the planner is to know of one band now, wakes that no run has shown yet included.
    [[nodiscard]] std::vector<scheduler::Claim> claims(std::size_t band) const;
    [[nodiscard]] vgpu_pf_contract contract(std::size_t member) const;
    /// Contracts, weights and gaps of a table of the members.
    void set_terms(vgpu_pf_run_table& table) const;
    /// In us; 0: no limit.
    [[nodiscard]] std::uint32_t gap_in_table(std::size_t member) const;
    [[nodiscard]] bool has_bands() const;
    [[nodiscard]] static bool is_gang(const Member& member) {
        return member.qos.mode == scheduler::SlotMode::Gang;
    }
    [[nodiscard]] bool is_gang(std::uint32_t vf) const;
    void leave_entries(std::uint32_t vf, Nanoseconds now);
    [[nodiscard]] bool is_kept_by(const vgpu_pf_run_table& table) const;
    void apply_wakes(scheduler::Fluid& fluid) const;
    void note_lags();
    [[nodiscard]] double quantum_ns() const;

    std::vector<Member> members_;
    std::uint32_t max_gap_ms_ = scheduler::kDefaultMaxGapMs;
    std::vector<scheduler::TableTerms> terms_;  ///< of members_; empty: they do not fit together
    std::optional<Error> misfit_;               ///< why not
    scheduler::Limits limits_;
    scheduler::Fluid fluid_;
    ServiceAccount account_;
    scheduler::Plan plan_;                        ///< in force
    std::optional<scheduler::Plan> made_;         ///< given out, not yet confirmed
    std::map<std::uint32_t, Nanoseconds> woken_;  ///< since the last run was reported
    std::map<std::uint32_t, Nanoseconds> asleep_since_;
    std::set<std::uint32_t> held_;  ///< have work and no tokens
    std::map<std::uint32_t, bool> planned_asleep_;
    std::map<std::uint32_t, double> worst_quanta_;
    Nanoseconds now_{0};
    Nanoseconds installed_at_{0};
    Nanoseconds interval_ = kMinInterval;  ///< until the next table; grows while they are refused
    double lag_bound_quanta_ = kLagSlack;
    Nanoseconds turn_ = kFirstTurn;
    Nanoseconds planned_turn_{0};  ///< what the table in force was made for
    Nanoseconds made_turn_{0};     ///< the same of made_
    Nanoseconds last_end_{0};      ///< of the run reported last
    bool is_stale_ = true;         ///< members changed since the table in force was made
};

}  // namespace vgpu::daemon
