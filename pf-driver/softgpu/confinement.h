// SPDX-License-Identifier: MIT
//
// The confinement of softgpu (pf-driver/confine): takes from the process all paths and system calls
// that it does not need while it serves. main.cpp calls the functions in this order.
#pragma once

#include "pf-driver/softgpu/gpu.h"

namespace vgpu::softgpu {

/// Names the paths that stay usable: the paths of the sockets and of their client records. Call
/// before the sockets are bound. `has_control`: true if there will be a control socket.
[[nodiscard]] Result<> seal_paths(const Gpu::Spec& spec, bool has_control);
/// Gives up capabilities and, if the kernel has Landlock, all paths that seal_paths() did not name.
/// Call after the sockets are bound and before the threads start, because threads inherit the
/// rights that remain.
[[nodiscard]] Result<> drop_files();
/// Gives up all system calls that softgpu does not need while it serves. Call after the threads
/// have started; afterwards the process can start no thread.
[[nodiscard]] Result<> drop_calls();

}  // namespace vgpu::softgpu
