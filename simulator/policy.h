// SPDX-License-Identifier: MIT
//
// Policy: who is in the engine next, as the simulator asks it. The scheduler library is
// one (library.h), the algorithms of other systems are others (peers.h). All of them are told the
// same events at the same instants.
#pragma once

#include "daemon/service/scheduler/scheduler.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace vgpu::simulator {

using daemon::scheduler::VfPolicy;

struct Grant {
    std::uint32_t vf = 0;  ///< 0: nobody
    std::int64_t slice_ns = 0;
    bool is_reserved = false;  ///< before the shares by weight, not part of them
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
    /// The VF granted last is in the engine; it has left it.
    virtual void started(std::int64_t at_ns) = 0;
    virtual void ended(std::int64_t at_ns) = 0;

    /// When the run under way is to be cut; asked after each event.
    [[nodiscard]] virtual std::optional<std::int64_t> preempt_at(std::int64_t) const { return {}; }
    /// When something changes without an event; advance() is called then.
    [[nodiscard]] virtual std::optional<std::int64_t> next_event() const { return {}; }
    virtual void advance(std::int64_t) {}

    /// The policy keeps a VF with work out of the engine on purpose.
    [[nodiscard]] virtual bool is_held_back(std::uint32_t) const { return false; }
    /// The weight in force, for the oracle.
    [[nodiscard]] virtual std::uint32_t weight(std::uint32_t vf) const = 0;

    // --- why a scenario with these cannot be simulated under it
    [[nodiscard]] virtual std::string_view refuses_gangs() const { return "it has no gang slots"; }
    [[nodiscard]] virtual std::string_view refuses_hangs() const = 0;
};

}  // namespace vgpu::simulator
