// SPDX-License-Identifier: MIT
//
// Scheduler: decides which VF runs next in the engine of one GPU, and for how long. Caps
// (TokenBucket) take a VF out of the competition; reservations (EDF) come before everything else;
// each priority band shares the rest by weight (Proportional, EEVDF). docs/scheduling.md has the
// algorithm, its bounds and their proofs.
//
// Pure: `at_ns` is of any one clock that never goes back. The owner reports wake, sleep, start and
// stop, and asks decide(). Service is the time between start() and stop(), without the world
// switch. Service beyond the slice, or of a VF gone to sleep, is charged to the VF that received
// it.
//
// A value: copies are independent. VF numbers are indexes; only set() allocates. One thread.
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

/// One VF's entitlement, made from a contract by contract.h. Times in ns. The cap applies first,
/// then the reservation, then band and weight.
struct VfPolicy {
    Band band = Band::Normal;  ///< served only while all bands before it have no work
    std::uint32_t weight = 100;
    std::int64_t request_ns = 6'000'000;  ///< longest slice
    Reservation reservation{};
    Cap cap{};
    bool is_strict = false;  ///< keeps its slots without work; the engine idles there
    bool is_gang = false;    ///< only gets a slot at phase_ns of each period, its reservation; kept
                             ///< by the PF core, not by a Scheduler
    std::int64_t phase_ns = 0;

    bool operator==(const VfPolicy&) const = default;
};

enum class ServiceClass : std::uint8_t { None, Reserved, Proportional };

/// Valid for start() at the same time only: any event may change the decision.
struct Decision {
    ServiceClass service = ServiceClass::None;  ///< None: no VF is to be served
    std::uint32_t vf = 0;
    std::int64_t slice_ns = 0;

    [[nodiscard]] explicit operator bool() const { return service != ServiceClass::None; }
};

/// Calls for a VF without set() do nothing.
class Scheduler {
public:
    struct Settings {
        /// Minimum slice before pre-emption, and minimum tokens to start a capped VF.
        std::int64_t min_run_ns = 100'000;
    };

    Scheduler() = default;
    explicit Scheduler(const Settings& settings) : settings_(settings) {}

    /// Adds the VF without work, or changes it. A new weight may take effect later (Proportional).
    void set(std::uint32_t vf, const VfPolicy& policy, std::int64_t at_ns);
    void remove(std::uint32_t vf, std::int64_t at_ns);

    void wake(std::uint32_t vf, std::int64_t at_ns);
    void sleep(std::uint32_t vf, std::int64_t at_ns);

    /// Charges nothing; start() does.
    [[nodiscard]] Decision decide(std::int64_t at_ns);
    /// The engine must be free: stop() comes between two starts.
    void start(const Decision& decision, std::int64_t at_ns);
    /// Charges up to `at_ns`. A VF without tokens does not compete from here on.
    void stop(std::int64_t at_ns);

    /// When to cut the running slice for another VF; none if it may run to its end. Ask after
    /// wake() and at next_event().
    [[nodiscard]] std::optional<std::int64_t> preempt_at(std::int64_t at_ns) const;
    /// When budgets or caps change by themselves: call advance() then.
    [[nodiscard]] std::optional<std::int64_t> next_event() const;
    void advance(std::int64_t at_ns);

    [[nodiscard]] bool has(std::uint32_t vf) const;
    /// It has work, or is strict, and its cap does not hold it back.
    [[nodiscard]] bool competes(std::uint32_t vf) const;
    [[nodiscard]] bool is_capped(std::uint32_t vf) const { return members_[vf].is_capped; }
    [[nodiscard]] bool has_work(std::uint32_t vf) const { return members_[vf].has_work; }
    [[nodiscard]] const VfPolicy& policy(std::uint32_t vf) const { return members_[vf].policy; }
    [[nodiscard]] std::uint32_t weight(std::uint32_t vf) const;
    /// ideal − received by weight, in ns of the band's service; ≤ 0 while the VF does not compete.
    [[nodiscard]] std::int64_t lag_ns(std::uint32_t vf) const;
    /// Reserved service up to its next deadline if the VF has work at `at_ns`.
    [[nodiscard]] std::int64_t reserved_ns(std::uint32_t vf, std::int64_t at_ns) const {
        return reservations_.available_ns(vf, at_ns);
    }
    [[nodiscard]] std::uint32_t end_of_vfs() const {
        return static_cast<std::uint32_t>(members_.size());
    }

private:
    /// Stays in the vector when the VF goes, with is_in false.
    struct Member {
        VfPolicy policy;
        TokenBucket bucket;
        bool is_in = false;
        bool has_work = false;
        bool is_capped = false;     ///< throttled until there are tokens
        bool is_competing = false;  ///< as the classes know it
    };

    /// The VF in the engine; service is charged from charged_ns on.
    struct Run {
        Decision decision;
        std::int64_t started_ns = 0;
        std::int64_t charged_ns = 0;
        std::int64_t deadline_ns = 0;  ///< of the reservation
    };

    Proportional& band_of(std::uint32_t vf);
    [[nodiscard]] const Proportional& band_of(std::uint32_t vf) const;
    void charge(std::int64_t at_ns);
    void charge_band(std::uint32_t vf, std::int64_t ns);
    void update(std::uint32_t vf, std::int64_t at_ns);
    void hold_back(std::uint32_t vf, std::int64_t at_ns);
    [[nodiscard]] Decision choose();
    /// Within a slice given by weight.
    [[nodiscard]] bool is_mid_slice(std::uint32_t vf, std::int64_t at_ns) const;
    [[nodiscard]] bool is_outranked() const;

    Settings settings_;
    std::vector<Member> members_;
    Reservations reservations_;
    std::array<Proportional, kBands> bands_;
    IndexedHeap<std::int64_t> capped_;  ///< by when they may compete again
    std::optional<Run> run_;
};

}  // namespace vgpu::daemon::scheduler
