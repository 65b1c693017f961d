// SPDX-License-Identifier: MIT
//
// The VF's self-test. It sends a barrier packet through a new queue. Then it copies bytes from
// guest memory to VRAM, within VRAM, and back to guest memory, and compares them. ROCr makes the
// copy within VRAM with a kernel on compute units. The self-test runs in a child process, with
// `vgpu-agent --self-test`, because ROCr may crash or hang.
#pragma once

#include "vf-agent/messages.h"

namespace vgpu::agent {

/// Exit statuses of the child. The child also writes the text of the Outcome to standard output.
inline constexpr int kSelfTestPassed = 0, kSelfTestFailed = 1;

/// Runs the self-test. The Outcome's text describes the test or what failed. Has no time limit,
/// because the parent kills the child at the deadline. Call once per process.
Outcome check_hsa();

}  // namespace vgpu::agent
