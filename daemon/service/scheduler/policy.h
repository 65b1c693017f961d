// SPDX-License-Identifier: MIT
//
// VfPolicy: a VF's contract in the units of a run table. contract.cpp makes a VfPolicy from a
// Contract. GpuSchedule puts its terms into the run table, and the PF core enforces them
// (pf-driver/core/run/contract.c). Times are in ns.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vgpu::daemon::scheduler {

/// The order of the values is the order in which the PF core serves the classes.
enum class PriorityClass : std::uint8_t { High, Normal, Low };
inline constexpr std::size_t kPriorityClasses = 3;

/// A budget of service in every period, served before all priority classes. Admission ensures
/// budget_ns ≤ period_ns.
struct Reservation {
    std::int64_t budget_ns = 0;  ///< 0: no reservation
    std::int64_t period_ns = 0;
    std::int64_t ahead = 0;  ///< maximum number of budgets of later periods used in advance

    bool operator==(const Reservation&) const = default;
};

/// A limit of engine time, kept by a token bucket. contract.cpp makes burst_ns at least one slice,
/// so that a full bucket never cuts a slice.
struct Cap {
    std::uint32_t rate_ppm = kAll;  ///< part of the engine's time; kAll: no cap
    std::int64_t burst_ns = 0;      ///< capacity of the bucket

    [[nodiscard]] bool is_on() const { return rate_ppm < kAll; }
    bool operator==(const Cap&) const = default;

    static constexpr std::uint32_t kAll = 1'000'000;
};

/// The cap also limits reserved service. Reservations are served before all priority classes, and
/// the weight counts within a class.
struct VfPolicy {
    PriorityClass priority_class =
        PriorityClass::Normal;            ///< entries wait while a VF of a higher class has work
    std::uint32_t weight = 100;           ///< 1..10000
    std::int64_t request_ns = 6'000'000;  ///< longest slice
    Reservation reservation{};
    Cap cap{};
    bool is_strict = false;  ///< true: without work, the engine idles in the VF's slots
    bool is_gang = false;    ///< true: the VF gets only its reservation, phase_ns into each period
    std::int64_t phase_ns = 0;  ///< only if is_gang

    bool operator==(const VfPolicy&) const = default;
};

}  // namespace vgpu::daemon::scheduler
