// SPDX-License-Identifier: MIT
//
// The VF's self-test. Sends a barrier packet through a new queue, copies from the host to the VF,
// within the VF (ROCr's copy kernel, a dispatch on compute units) and back, and compares. Runs in a
// child (`vgpu-agent --self-test`), because a runtime may crash or hang.
#pragma once

#include "vf-agent/messages.h"

namespace vgpu::agent {

/// Exit statuses of the child, which writes the text to standard output.
inline constexpr int kSelfTestPassed = 0, kSelfTestFailed = 1;

/// Runs the test. The text describes the test, or names the failed step and ROCr's error. Has no
/// time limit; the parent has one. Call once per process.
Outcome check_hsa();

}  // namespace vgpu::agent
