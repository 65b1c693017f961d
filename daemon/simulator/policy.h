// SPDX-License-Identifier: MIT
//
// Policy: here, the scheduling algorithm of another system (peers.h), which chooses the next VF for
// the engine. The Simulator (simulator.h) calls the Policy. For one scenario, all policies get the
// same changes and arrivals at the same times, except bursty arrivals: their times and the overruns
// of slices come from one sequence of random numbers, so they depend on the slices that a policy
// chooses. Times are virtual times in ns since the simulation began.
#pragma once

#include "daemon/service/scheduler/policy.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace vgpu::simulator {

using daemon::scheduler::VfPolicy;

/// The decision of a Policy: the next VF and the length of its slice.
struct Grant {
    std::uint32_t vf = 0;  ///< 0: no VF
    std::int64_t slice_ns = 0;
};

class Policy {
public:
    virtual ~Policy() = default;

    [[nodiscard]] virtual std::string_view name() const = 0;

    /// Adds or changes a VF. VF numbers begin at 1. `policy`: the VF's scheduling settings.
    virtual void set(std::uint32_t vf, const VfPolicy& policy, std::int64_t at_ns) = 0;
    virtual void remove(std::uint32_t vf, std::int64_t at_ns) = 0;
    /// Informs the policy that a VF without work got work.
    virtual void wake(std::uint32_t vf, std::int64_t at_ns) = 0;
    /// Informs the policy that the VF has no work left.
    virtual void sleep(std::uint32_t vf, std::int64_t at_ns) = 0;

    /// Chooses the next slice. If Grant::vf is 0, the engine idles until the next event. Neither
    /// started() nor ended() follows if the VF leaves during the world switch.
    virtual Grant next(std::int64_t at_ns) = 0;
    /// Informs the policy that the slice of the last grant begins.
    virtual void started(std::int64_t at_ns) = 0;
    /// Informs the policy that the slice of the last grant has ended.
    virtual void ended(std::int64_t at_ns) = 0;

    /// Time of the next change that the policy makes by itself, such as a refill of credits; none
    /// without such a change.
    [[nodiscard]] virtual std::optional<std::int64_t> next_event() const { return {}; }
    /// Makes these changes up to `at_ns`. Called at next_event(), and possibly at other times.
    virtual void advance(std::int64_t /*at_ns*/) {}

    /// Why the policy cannot simulate a scenario with hangs; empty if it can.
    [[nodiscard]] virtual std::string_view hang_refusal() const = 0;
};

}  // namespace vgpu::simulator
