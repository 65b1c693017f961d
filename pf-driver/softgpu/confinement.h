// SPDX-License-Identifier: MIT
//
// Locks softgpu in (pf-driver/confine), except for the paths and system calls that it needs while
// it serves. main.cpp calls the functions in this order.
#pragma once

#include "pf-driver/softgpu/gpu.h"

namespace vgpu::softgpu {

/// Before the sockets are bound. `has_control`: with the control socket.
[[nodiscard]] Result<> seal_paths(const Gpu::Spec& spec, bool has_control);
/// After the sockets are bound and before the threads start, which inherit the remaining rights.
[[nodiscard]] Result<> drop_files();
/// After the threads have started. From now on the process starts no thread.
[[nodiscard]] Result<> drop_calls();

}  // namespace vgpu::softgpu
