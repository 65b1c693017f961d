// SPDX-License-Identifier: MIT
//
// Rounds of gangs: slots of gangs are counted by the host's clock (docs/decisions/0012-gangs.md).
// From a time at which slots of phase 0 of all gangs begin, they come in the same order, round
// after round. A simulation's time 0 is such a time, so that phases are what a scenario says.
#pragma once

#include "simulator/simulator.h"

#include <cstdint>
#include <optional>

namespace vgpu::simulator {

/// 0: no gangs; nothing: they are so different that it is longer than anybody waits.
[[nodiscard]] std::optional<std::int64_t> round_of_slots(const Simulation& setup);
/// The first at `now_ns` or after it; `now_ns` without gangs.
[[nodiscard]] std::int64_t begin_of_round(const Simulation& setup, std::int64_t now_ns);

}  // namespace vgpu::simulator
