// SPDX-License-Identifier: MIT
//
// Allocations: gives VFs to containers by the device plugin interface, in which a VF is a device of
// a resource vgpu.org/PROFILE. The kubelet names the devices for a container, but neither names the
// pod nor reports when the devices are free again. So the owner of a VF is named after its device,
// and the claim ends when the kubelet gives the device to the next container.
//
//   owner: k8s:CLUSTER:device-gpu0-vf3.0
#pragma once

#include "daemon/engines/kubernetes/cdi.h"

#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace vgpu::kubernetes {

/// A device of a resource.
struct PluginDevice {
    std::string id;
    bool is_healthy = false;
    std::optional<int> numa_node;

    bool operator==(const PluginDevice&) const = default;
};

/// Devices by profile. A VF is unhealthy if another owner has it, if it is open without an owner,
/// or if it is not in service. A VF without a profile is not a device.
[[nodiscard]] std::map<std::string, std::vector<PluginDevice>> plugin_devices(
    std::span<const HostVf> vfs, std::string_view cluster, const PciPort& pci);

/// Any thread may call an Allocations.
class Allocations {
public:
    Allocations(VgpudPort& vgpud, const PciPort& pci, std::string cluster, SocketUser user)
        : vgpud_(vgpud), pci_(pci), cluster_(std::move(cluster)), user_(user) {}

    /// Claims the VFs of `ids` for one container, all or none. Ends the claims of earlier
    /// containers first, and vgpud then scrubs these VFs. WrongState if a client of an earlier
    /// container still has one of the VFs open. NoSuchVf if this host has no such device. Other
    /// errors are errors of edits_of() and VgpudPort.
    Result<ContainerEdits> allocate(const std::vector<std::string>& ids);

private:
    Result<> assign(const std::string& id, const HostVf& vf);

    VgpudPort& vgpud_;
    const PciPort& pci_;
    std::string cluster_;
    SocketUser user_;
    std::mutex mutex_;
};

}  // namespace vgpu::kubernetes
