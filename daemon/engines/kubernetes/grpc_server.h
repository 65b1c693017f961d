// SPDX-License-Identifier: MIT
//
// serve_at(): starts a gRPC server at a Unix socket that only the user of vgpu-dra (root) may open.
// kubelet_plugin and device_plugin use it.
#pragma once

#include "daemon/engines/kubernetes/ports.h"

#include <grpcpp/grpcpp.h>
#include <memory>
#include <string>
#include <vector>

namespace vgpu::kubernetes {

/// Replaces any file at `path`, usually the socket of an earlier vgpu-dra. HostLock ensures that no
/// other vgpu-dra uses the path. OutOfRange if `path` is too long for a socket; System if the
/// socket cannot be made. `services` must outlive the server.
Result<std::unique_ptr<grpc::Server>> serve_at(const std::string& path,
                                               const std::vector<grpc::Service*>& services);

/// Waits up to 5 s for calls under way, cancels the rest, and removes the socket. Does nothing
/// without a server.
void stop_serving(std::unique_ptr<grpc::Server> server, const std::string& path);

}  // namespace vgpu::kubernetes
