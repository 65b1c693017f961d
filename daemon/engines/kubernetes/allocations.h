// SPDX-License-Identifier: MIT
//
// Allocations: gives VFs to containers in the mode device-plugin of vgpu-dra. A VF is a device of
// the resource vgpu.org/PROFILE. The kubelet names the devices for a container, but does not name
// the pod or report when the devices are free again. So the owner of a claim in vgpud names the
// device instead of a pod, and the claim ends only when the kubelet gives the device to the next
// container.
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

/// A VF as a device of the device plugin interface.
struct PluginDevice {
    std::string id;                ///< device_name_of() the VF: "gpu0-vf3"
    bool is_healthy = false;       ///< the kubelet gives only healthy devices to containers
    std::optional<int> numa_node;  ///< none: not known, or not a PCI function

    bool operator==(const PluginDevice&) const = default;
};

using DevicesByProfile = std::map<std::string, std::vector<PluginDevice>>;

/// The devices of this host, by profile. A VF is unhealthy if another owner has claimed it, if it
/// is open or paused without an owner, or if it is not in service. A VF without a profile is not a
/// device. Errors are those of DeviceNames. BadConfiguration also if the owner of a device would
/// have more than kMaxOwner bytes.
[[nodiscard]] Result<DevicesByProfile> plugin_devices(std::span<const HostVf> vfs,
                                                      std::string_view cluster, const PciPort& pci);

/// Thread-safe.
class Allocations {
public:
    Allocations(VgpudPort& vgpud, const PciPort& pci, std::string cluster, SocketUser user)
        : vgpud_(vgpud), pci_(pci), cluster_(std::move(cluster)), user_(user) {}

    /// Claims the VFs of the devices `ids` for one container, all or none. If a VF is still claimed
    /// for an earlier container, ends that claim first, because the end of a claim scrubs the VF.
    /// Returns the additions to the container. WrongState if a client of an earlier container still
    /// has one of the VFs open. NoSuchVf if this host lacks one of the devices. Other errors are
    /// those of edits_of() and VgpudPort.
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
