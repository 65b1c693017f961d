// SPDX-License-Identifier: MIT
//
// The self-test of a VF. It sends a barrier packet through a new queue, then copies a block from
// host memory to the VF, from there to another place in the VF (ROCr's copy kernel: a dispatch on
// the compute units) and back, and compares it byte by byte. It runs in a child process
// (`vgpu-agent --self-test`), because a runtime that crashes or hangs must not stop the agent.
#pragma once

#include "vf-agent/messages.h"

namespace vgpu::agent {

/// Exit statuses of the child; its text is on standard output.
inline constexpr int kSelfTestPassed = 0, kSelfTestFailed = 1;

/// Ok: the text says what was done. Not ok: the text names the failed step and ROCr's error. Takes
/// as long as the GPU does, without a limit; the parent has one. Call it once per process: the
/// runtime stays loaded and is not shut down after a failure.
Outcome check_hsa();

}  // namespace vgpu::agent
