// SPDX-License-Identifier: MIT
//
// The self-test itself: a barrier packet through a queue of its own, and a block of bytes from host
// memory to the VF, from there to another place of the VF (ROCr's own copy kernel: a dispatch on
// the compute units) and back, compared byte by byte. Runs in a child process (`vgpu-agent
// --self-test`), since a runtime that crashes or hangs must not take the agent with it.
#pragma once

#include "vf-agent/messages.h"

namespace vgpu::agent {

/// Exit statuses of the child; its words are on standard output.
inline constexpr int kSelfTestPassed = 0, kSelfTestFailed = 1;

/// Ok: what was done, for people. Not ok: the step that failed and ROCr's words. Takes as long as
/// the GPU does: there is no limit of its own, the parent has one. Call it once in a process, as
/// the runtime stays loaded and is not shut down after a failure.
Outcome check_hsa();

}  // namespace vgpu::agent
