// SPDX-License-Identifier: MIT
//
// The guest of the demo: a process of its own that drives one VF with the user-space driver. It
// keeps several rounds of the five programs queued, checks every result bit for bit and counts;
// on an order, it attacks its neighbours or starts a kernel that never ends.
#pragma once

#include <string>

#include "tests/scenario/demo/guest_report.h"

namespace vgpu::demo {

/// Returns the process' exit status.
int run_guest(const std::string& vf_socket, SharedReport report);

}  // namespace vgpu::demo
