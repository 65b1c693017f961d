// SPDX-License-Identifier: MIT
//
// Rounds of gangs (docs/decisions/0012-gangs.md). A round is the least common multiple of the
// gangs' periods, counted from time 0 of the host's clock. At the start of a round the slots of
// phase 0 of all gangs begin together, as at time 0 of a simulation.
#pragma once

#include "daemon/simulator/simulator.h"

#include <cstdint>
#include <optional>

namespace vgpu::simulator {

/// Length of a round in ns; 0 without gangs; none if the round would be too long (above 2^60 ns).
[[nodiscard]] std::optional<std::int64_t> round_of_slots(const Simulation& setup);
/// Start of the first round at or after `now_ns`; `now_ns` if there is no round.
[[nodiscard]] std::int64_t begin_of_round(const Simulation& setup, std::int64_t now_ns);

}  // namespace vgpu::simulator
