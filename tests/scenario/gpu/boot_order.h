// SPDX-License-Identifier: MIT
//
// The order in which a device sees a stock amdgpu VF driver come up, as milestones over a Trace.
// Each milestone is an access that must be seen after the milestone before it. The same table
// judges a recording of the stock driver, with the milestones that trap.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/support/vf_client/trace.h"

namespace vgpu::test {

struct Milestone {
    std::string name;
    TraceKind kind{};
    std::function<bool(const TraceEvent&)> is_it;
};

/// The milestones of one driver load, in order.
[[nodiscard]] const std::vector<Milestone>& boot_milestones();

/// Empty if every milestone is first seen after the one before it; else which one is missing or too
/// early.
[[nodiscard]] std::string check_order(const std::vector<TraceEvent>& events,
                                      const std::vector<Milestone>& milestones);

/// A recording of tests/guest/record.py as a trace; throws VfError, naming the line, if it is none.
[[nodiscard]] std::vector<TraceEvent> read_recording(const std::string& path);

}  // namespace vgpu::test
