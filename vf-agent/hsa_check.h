// SPDX-License-Identifier: MIT
//
// The VF's self-test: a barrier packet through a new queue, then a copy from host to VF, within the
// VF (ROCr's copy kernel, a dispatch on compute units) and back, compared. Runs in a child
// (`vgpu-agent --self-test`), because a runtime may crash or hang.
#pragma once

#include "vf-agent/messages.h"

namespace vgpu::agent {

/// Text on standard output.
inline constexpr int kSelfTestPassed = 0, kSelfTestFailed = 1;

/// The text says what was done, or names the failed step and ROCr's error. No time limit; the
/// parent has one. Once per process.
Outcome check_hsa();

}  // namespace vgpu::agent
