// SPDX-License-Identifier: MIT
//
// Rounds of gangs (docs/decisions/0012-gangs.md). The length of a round is the least common
// multiple of the periods of all gangs. The first round begins at time 0 of the host's clock, which
// here is the clock of the ModelGpu. At the start of each round, the slots with phase 0 of all
// gangs begin together. Time 0 of a simulation of the product (product.h) is the start of a round,
// so that the phases in a scenario count from time 0.
#pragma once

#include "daemon/simulator/simulator.h"

#include <cstdint>
#include <optional>

namespace vgpu::simulator {

/// Length of a round in ns; 0 without gangs; none if the round would be too long (above 2^60 ns).
[[nodiscard]] std::optional<std::int64_t> round_of_slots(const Simulation& setup);
/// Start of the first round at or after `now_ns`, by the ModelGpu's clock; `now_ns` without gangs
/// or if the round would be too long.
[[nodiscard]] std::int64_t begin_of_round(const Simulation& setup, std::int64_t now_ns);

}  // namespace vgpu::simulator
