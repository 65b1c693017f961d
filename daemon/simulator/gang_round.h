// SPDX-License-Identifier: MIT
//
// Rounds of gangs: the host's clock counts slots of gangs (docs/decisions/0012-gangs.md). From a
// time at which slots of phase 0 of all gangs begin, slots come in the same order, round after
// round. Time 0 of a simulation is such a time, so a scenario's phases count from it.
#pragma once

#include "daemon/simulator/simulator.h"

#include <cstdint>
#include <optional>

namespace vgpu::simulator {

/// 0 without gangs; none if the gangs differ so much that a round is longer than any useful wait.
[[nodiscard]] std::optional<std::int64_t> round_of_slots(const Simulation& setup);
/// The first begin of a round at or after `now_ns`; `now_ns` without gangs.
[[nodiscard]] std::int64_t begin_of_round(const Simulation& setup, std::int64_t now_ns);

}  // namespace vgpu::simulator
