// SPDX-License-Identifier: MIT
//
// Rounds of gangs (docs/decisions/0012-gangs.md): the host's clock counts slots. From a time at
// which slots of phase 0 of all gangs begin (as time 0 of a simulation), slots repeat in rounds.
#pragma once

#include "daemon/simulator/simulator.h"

#include <cstdint>
#include <optional>

namespace vgpu::simulator {

/// 0 without gangs; none if the round would be too long.
[[nodiscard]] std::optional<std::int64_t> round_of_slots(const Simulation& setup);
/// The first round at or after `now_ns`; `now_ns` without gangs.
[[nodiscard]] std::int64_t begin_of_round(const Simulation& setup, std::int64_t now_ns);

}  // namespace vgpu::simulator
