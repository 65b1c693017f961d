// SPDX-License-Identifier: MIT
//
// DevicePlugin: the gRPC services of the kubelet's device plugin interface v1beta1, for clusters
// without dynamic resource allocation. Each profile is a resource and has its own socket in the
// directory of the kubelet's socket:
//
//   DIRECTORY/kubelet.sock        served by the kubelet: Register
//   DIRECTORY/vgpu-PROFILE.sock   served by vgpu-dra: ListAndWatch, Allocate
//
// When the kubelet starts, it removes all other sockets in the directory; serve_again() recreates
// them. A DevicePlugin is not thread-safe. Its gRPC services run in threads of gRPC, which call
// Allocations.
#pragma once

#include "daemon/engines/kubernetes/allocations.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace vgpu::kubernetes {

class DevicePlugin {
public:
    /// `directory`: the directory of the kubelet's socket.
    DevicePlugin(std::string directory, Allocations& allocations);
    ~DevicePlugin();
    DevicePlugin(const DevicePlugin&) = delete;
    DevicePlugin& operator=(const DevicePlugin&) = delete;

    /// Reports the devices to the kubelet. Serves and registers each new profile. A profile that
    /// has no VFs any more stays registered, without devices. Continues after an error, and returns
    /// the first error: an error of serve_at() (grpc_server.h), or System if the kubelet does not
    /// register a profile.
    Result<> update(const DevicesByProfile& devices);
    /// Recreates all sockets and registers all profiles again. Errors as update().
    Result<> serve_again();

private:
    class Resource;

    Result<> start(Resource& resource);

    std::string directory_;
    Allocations& allocations_;
    std::map<std::string, std::unique_ptr<Resource>> resources_;  ///< by profile
};

}  // namespace vgpu::kubernetes
