// SPDX-License-Identifier: MIT
//
// Policy: another system's algorithm (peers.h), which chooses the next VF for the engine. All
// policies get the same events at the same times.
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

    /// VF numbers begin at 1.
    virtual void set(std::uint32_t vf, const VfPolicy& policy, std::int64_t at_ns) = 0;
    virtual void remove(std::uint32_t vf, std::int64_t at_ns) = 0;
    virtual void wake(std::uint32_t vf, std::int64_t at_ns) = 0;
    virtual void sleep(std::uint32_t vf, std::int64_t at_ns) = 0;

    virtual Grant next(std::int64_t at_ns) = 0;
    /// The VF granted last has entered the engine, or has left it.
    virtual void started(std::int64_t at_ns) = 0;
    virtual void ended(std::int64_t at_ns) = 0;

    /// Time of a change without an event. At that time advance() is called.
    [[nodiscard]] virtual std::optional<std::int64_t> next_event() const { return {}; }
    virtual void advance(std::int64_t) {}

    /// Why the policy cannot simulate a scenario with hangs.
    [[nodiscard]] virtual std::string_view refuses_hangs() const = 0;
};

}  // namespace vgpu::simulator
