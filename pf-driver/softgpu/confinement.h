// SPDX-License-Identifier: MIT
//
// The confinement of softgpu (pf-driver/confine): before the process serves a client, it gives up
// all paths and system calls that it no longer needs. main.cpp calls the functions in the order of
// this file. An error means that softgpu must not serve.
#pragma once

#include "pf-driver/softgpu/gpu.h"

namespace vgpu::softgpu {

/// Names the paths that stay usable: the sockets and their client records
/// (vfio_user/client_record.h). Call before the sockets are bound. `has_control`: true if softgpu
/// will serve control.sock.
[[nodiscard]] Result<> seal_paths(const Gpu::Spec& spec, bool has_control);
/// Gives up capabilities, except those that softgpu still needs for real-time priority and locked
/// memory. If the kernel has Landlock, also gives up files outside the socket directory. Call after
/// the sockets are bound and before the threads start, because threads inherit the rights that
/// remain.
[[nodiscard]] Result<> drop_files();
/// Gives up all system calls that softgpu does not need while it serves, and all paths that
/// seal_paths() did not name. Call after the threads have started; afterwards the process can start
/// no thread.
[[nodiscard]] Result<> drop_calls();

}  // namespace vgpu::softgpu
