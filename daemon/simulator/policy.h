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
    /// The VF got work, or has none left.
    virtual void wake(std::uint32_t vf, std::int64_t at_ns) = 0;
    virtual void sleep(std::uint32_t vf, std::int64_t at_ns) = 0;

    /// The next slice. If none, the engine idles until the next event.
    virtual Grant next(std::int64_t at_ns) = 0;
    /// The VF granted last has entered the engine, or has left it.
    virtual void started(std::int64_t at_ns) = 0;
    virtual void ended(std::int64_t at_ns) = 0;

    /// Time at which the policy itself changes, such as a refill of credit; none if it never does.
    /// advance() is called at that time.
    [[nodiscard]] virtual std::optional<std::int64_t> next_event() const { return {}; }
    virtual void advance(std::int64_t) {}

    /// Why the policy cannot simulate a scenario with hangs; empty if it can.
    [[nodiscard]] virtual std::string_view hang_refusal() const = 0;
};

}  // namespace vgpu::simulator
