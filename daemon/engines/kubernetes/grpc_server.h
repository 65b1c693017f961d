// SPDX-License-Identifier: MIT
//
// serve_at(): starts a gRPC server on a Unix socket that only the user of vgpu-dra (root) may open.
// KubeletPlugin and DevicePlugin use it.
#pragma once

#include "daemon/engines/kubernetes/ports.h"

#include <grpcpp/grpcpp.h>
#include <memory>
#include <string>
#include <vector>

namespace vgpu::kubernetes {

/// Replaces any file at `path`, usually the socket of an earlier vgpu-dra; HostLock (host_lock.h)
/// ensures that no other vgpu-dra uses this socket. `services` must outlive the server. OutOfRange
/// if `path` is too long for a socket. System if the socket cannot be made.
Result<std::unique_ptr<grpc::Server>> serve_at(const std::string& path,
                                               const std::vector<grpc::Service*>& services);

/// Stops the server: waits up to 5 s for the calls under way and cancels the remaining calls. Then
/// removes the socket `path`. Does nothing if `server` is null.
void stop_serving(std::unique_ptr<grpc::Server> server, const std::string& path);

}  // namespace vgpu::kubernetes
