// SPDX-License-Identifier: MIT
//
// Policy: another system's algorithm (peers.h), which chooses the next VF for the engine. All
// policies get the same arrivals and changes at the same times.
#pragma once

#include "daemon/service/scheduler/policy.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace vgpu::simulator {

using daemon::scheduler::VfPolicy;

struct Grant {
    std::uint32_t vf = 0;  ///< 0: none
    std::int64_t slice_ns = 0;
};

class Policy {
public:
    virtual ~Policy() = default;

    [[nodiscard]] virtual std::string_view name() const = 0;

    /// Adds or changes a VF. VF numbers begin at 1.
    virtual void set(std::uint32_t vf, const VfPolicy& policy, std::int64_t at_ns) = 0;
    virtual void remove(std::uint32_t vf, std::int64_t at_ns) = 0;
    /// Informs the policy that the VF got work.
    virtual void wake(std::uint32_t vf, std::int64_t at_ns) = 0;
    /// Informs the policy that the VF has no work left.
    virtual void sleep(std::uint32_t vf, std::int64_t at_ns) = 0;

    /// The next slice. Without one, the engine idles until the next event.
    virtual Grant next(std::int64_t at_ns) = 0;
    /// Informs the policy that the VF of the last grant has entered the engine.
    virtual void started(std::int64_t at_ns) = 0;
    /// Informs the policy that the VF of the last grant has left the engine.
    virtual void ended(std::int64_t at_ns) = 0;

    /// When the policy must change its own state, as by a refill of credit; none if it need not.
    [[nodiscard]] virtual std::optional<std::int64_t> next_event() const { return {}; }
    /// Makes the policy's own changes up to a time. The caller calls it at next_event(), and may
    /// call it at other times.
    virtual void advance(std::int64_t) {}

    /// Why the policy cannot simulate a scenario with hangs; empty if it can.
    [[nodiscard]] virtual std::string_view hang_refusal() const = 0;
};

}  // namespace vgpu::simulator
