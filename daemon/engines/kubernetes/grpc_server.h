// SPDX-License-Identifier: MIT
//
// serve_at(): a gRPC server at a Unix socket, for the kubelet alone. Used by the services of this
// folder.
#pragma once

#include "daemon/engines/kubernetes/ports.h"

#include <grpcpp/grpcpp.h>
#include <memory>
#include <string>
#include <vector>

namespace vgpu::kubernetes {

/// Replaces a socket that an earlier vgpu-dra left; HostLock ensures that no other one uses it.
/// System if the socket cannot be made. `services` must outlive the server.
Result<std::unique_ptr<grpc::Server>> serve_at(const std::string& path,
                                               const std::vector<grpc::Service*>& services);

/// Ends calls that are under way after a short time, and removes the socket.
void stop_serving(std::unique_ptr<grpc::Server> server, const std::string& path);

}  // namespace vgpu::kubernetes
