// SPDX-License-Identifier: MIT
//
// Scheduler: who is in the engine of one GPU next, and for how long. Three parts in front of each
// other: caps (TokenBucket) take a VF out of the competition, reservations (earliest deadline
// first) come before everything else, and each priority band shares what is left by weight
// (Proportional, EEVDF). docs/scheduling.md has the algorithm, its bounds and their proofs.
//
// Pure: time is an argument, in ns of any one clock that never goes back from call to call. The
// owner tells what happens (wake, sleep, start, stop) and asks decide(). Service is what lies
// between start() and stop(); the world switch lies outside and is nobody's. Service beyond the
// slice, or of a VF that has gone to sleep, is charged to the VF that received it.
//
// A value: a copy goes its own way. VF numbers are used as indexes; only set() allocates. One
// thread.
#pragma once

#include "daemon/service/scheduler/proportional.h"
#include "daemon/service/scheduler/reservations.h"
#include "daemon/service/scheduler/token_bucket.h"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace vgpu::daemon::scheduler {

enum class Band : std::uint8_t { High, Normal, Low };
inline constexpr std::size_t kBands = 3;

/// What one VF gets; contract.h makes it from a contract and says whether all of them fit. All
/// times in ns. What the classes do with it: cap in front, then reservation, then band and weight.
struct VfPolicy {
    Band band = Band::Normal;  ///< a band is served only while those before it have no work
    std::uint32_t weight = 100;
    std::int64_t request_ns = 6'000'000;  ///< longest slice
    Reservation reservation{};
    Cap cap{};
    bool is_strict = false;  ///< keeps its slots while it has no work; the engine idles there
    bool is_gang = false;    ///< its reservation is a slot at phase_ns of each period, and all it
                             ///< gets; kept by the PF core, not by a Scheduler
    std::int64_t phase_ns = 0;

    bool operator==(const VfPolicy&) const = default;
};

enum class ServiceClass : std::uint8_t { None, Reserved, Proportional };

/// Good for start() at the time it was asked for: anything that happens in between may make another
/// one right.
struct Decision {
    ServiceClass service = ServiceClass::None;  ///< None: nobody is to be served
    std::uint32_t vf = 0;
    std::int64_t slice_ns = 0;

    [[nodiscard]] explicit operator bool() const { return service != ServiceClass::None; }
};

/// Calls with a VF that was not set() do nothing. `at_ns` is of one clock and never smaller than in
/// the call before.
class Scheduler {
public:
    struct Settings {
        /// A slice is not pre-empted before, and a capped VF not started with fewer tokens.
        std::int64_t min_run_ns = 100'000;
    };

    Scheduler() = default;
    explicit Scheduler(const Settings& settings) : settings_(settings) {}

    /// Enters without work, or changes. A new weight takes effect once the VF is owed nothing.
    void set(std::uint32_t vf, const VfPolicy& policy, std::int64_t at_ns);
    void remove(std::uint32_t vf, std::int64_t at_ns);

    /// `vf` has work (again), or none.
    void wake(std::uint32_t vf, std::int64_t at_ns);
    void sleep(std::uint32_t vf, std::int64_t at_ns);

    /// Who comes next; nothing is charged until start().
    [[nodiscard]] Decision decide(std::int64_t at_ns);
    /// Nobody else may be in the engine: stop() comes between two starts.
    void start(const Decision& decision, std::int64_t at_ns);
    /// Charges up to `at_ns`. A VF that has used up its tokens is held back from here on, and
    /// has_work() and competes() tell the difference.
    void stop(std::int64_t at_ns);

    /// When the slice in the engine is to be cut for somebody else; none if it may run to its end.
    /// Ask after wake() and at next_event().
    [[nodiscard]] std::optional<std::int64_t> preempt_at(std::int64_t at_ns) const;
    /// When something changes by itself (budgets, caps): call advance() then.
    [[nodiscard]] std::optional<std::int64_t> next_event() const;
    /// Accounts for everything up to `at_ns`.
    void advance(std::int64_t at_ns);

    [[nodiscard]] bool has(std::uint32_t vf) const;
    /// It has work, or is strict, and is not held back by its cap.
    [[nodiscard]] bool competes(std::uint32_t vf) const;
    [[nodiscard]] bool is_capped(std::uint32_t vf) const { return members_[vf].is_capped; }
    [[nodiscard]] bool has_work(std::uint32_t vf) const { return members_[vf].has_work; }
    [[nodiscard]] const VfPolicy& policy(std::uint32_t vf) const { return members_[vf].policy; }
    /// The weight in force.
    [[nodiscard]] std::uint32_t weight(std::uint32_t vf) const;
    /// What its weight entitles it to, minus what it received for its weight; > 0: it is owed.
    /// In ns of its band's service; <= 0, what it still owes, while it does not compete.
    [[nodiscard]] std::int64_t lag_ns(std::uint32_t vf) const;
    /// What is reserved for it until its next deadline if it has work at `at_ns`.
    [[nodiscard]] std::int64_t reserved_ns(std::uint32_t vf, std::int64_t at_ns) const {
        return reservations_.available_ns(vf, at_ns);
    }
    /// Numbers in use are below this one.
    [[nodiscard]] std::uint32_t end_of_vfs() const {
        return static_cast<std::uint32_t>(members_.size());
    }

private:
    /// One VF number; it stays in the vector when the VF goes, with is_in false.
    struct Member {
        VfPolicy policy;
        TokenBucket bucket;
        bool is_in = false;
        bool has_work = false;
        bool is_capped = false;     ///< held back until there are tokens
        bool is_competing = false;  ///< as the classes know it
    };

    /// What is in the engine; service is charged from charged_ns on.
    struct Run {
        Decision decision;
        std::int64_t started_ns = 0;
        std::int64_t charged_ns = 0;
        std::int64_t deadline_ns = 0;  ///< of its reservation
    };

    Proportional& band_of(std::uint32_t vf);
    [[nodiscard]] const Proportional& band_of(std::uint32_t vf) const;
    void charge(std::int64_t at_ns);
    void charge_band(std::uint32_t vf, std::int64_t ns);
    void update(std::uint32_t vf, std::int64_t at_ns);
    void hold_back(std::uint32_t vf, std::int64_t at_ns);
    [[nodiscard]] Decision choose();
    /// In a slice given by weight, and before its end.
    [[nodiscard]] bool is_mid_slice(std::uint32_t vf, std::int64_t at_ns) const;
    [[nodiscard]] bool is_outranked() const;

    Settings settings_;
    std::vector<Member> members_;
    Reservations reservations_;
    std::array<Proportional, kBands> bands_;
    IndexedHeap<std::int64_t> capped_;  ///< by the time they may compete again
    std::optional<Run> run_;
};

}  // namespace vgpu::daemon::scheduler
