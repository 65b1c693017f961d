// SPDX-License-Identifier: MIT
//
// DevicePlugin: the gRPC services of the device plugin interface v1beta1, for clusters without
// dynamic resource allocation. Each profile is a resource with its own socket in the directory of
// the kubelet's socket:
//
//   DEVICE_PLUGINS/kubelet.sock        served by the kubelet: Register
//   DEVICE_PLUGINS/vgpu-PROFILE.sock   ListAndWatch, Allocate
//
// When a kubelet starts, it removes all other sockets of the directory; serve_again() recreates
// them. One thread calls DevicePlugin. The services run in threads of gRPC, which call Allocations.
#pragma once

#include "daemon/engines/kubernetes/allocations.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace vgpu::kubernetes {

using DevicesByProfile = std::map<std::string, std::vector<PluginDevice>>;

class DevicePlugin {
public:
    /// `directory`: the directory of the kubelet's socket.
    DevicePlugin(std::string directory, Allocations& allocations);
    ~DevicePlugin();
    DevicePlugin(const DevicePlugin&) = delete;
    DevicePlugin& operator=(const DevicePlugin&) = delete;

    /// Reports the devices to the kubelet. Serves and registers a new profile. A profile without
    /// VFs stays registered, with no device.
    Result<> update(const DevicesByProfile& devices);
    /// Recreates all sockets and registers all profiles.
    Result<> serve_again();

private:
    class Resource;

    Result<> start(Resource& resource);

    std::string directory_;
    Allocations& allocations_;
    std::map<std::string, std::unique_ptr<Resource>> resources_;  ///< by profile
};

}  // namespace vgpu::kubernetes
