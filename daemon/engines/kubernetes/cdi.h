// SPDX-License-Identifier: MIT
//
// CDI (Container Device Interface): the file that tells the container runtime what a container with
// a VF gets. Also the metadata of the VF, which the container may read (Kubernetes' enhancement
// proposal KEP-5304). The functions change nothing; PciPort reads sysfs.
//
//   the VF is        a container gets
//   a PCI function   device nodes /dev/vfio/vfio and /dev/vfio/GROUP; a variable with the address
//   of softgpu       the vfio-user socket at /run/vgpu-vf/DEVICE.sock; a variable with this path
#pragma once

#include "daemon/engines/kubernetes/claim.h"
#include "daemon/engines/kubernetes/devices.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace vgpu::kubernetes {

/// The additions to a container that gets a VF.
struct ContainerEdits {
    struct Mount {
        std::string host_path;
        std::string container_path;
    };

    std::map<std::string, std::string> variables;
    std::vector<Mount> mounts;
    std::vector<std::string> device_nodes;
};

/// The additions for one VF. `device`: name of the VF as a device. WrongState if a PCI function has
/// no IOMMU group.
[[nodiscard]] Result<ContainerEdits> edits_of(const std::string& device, const HostVf& vf,
                                              const PciPort& pci);

/// A device of a claim, with its VF.
struct PreparedDevice {
    AllocatedDevice allocated;
    HostVf vf;
};

/// Vendor and class of vgpu's CDI devices.
inline constexpr std::string_view kCdiKind = "vgpu.org/vf";

/// The fully qualified names of the CDI devices for the device at `index`: the CDI device of the VF
/// and, for the first device of a request, the CDI device of the request's metadata.
[[nodiscard]] std::vector<std::string> cdi_ids(const std::string& uid,
                                               const std::vector<PreparedDevice>& devices,
                                               std::size_t index);

/// Containers see the metadata of `request` at this path.
[[nodiscard]] std::string metadata_path(const Claim& claim, const std::string& request);

/// The metadata of each request of a claim, by the name of the request: DeviceMetadata of
/// metadata.resource.k8s.io/v1alpha1.
[[nodiscard]] std::map<std::string, nlohmann::json> metadata_of(
    const Claim& claim, const std::vector<PreparedDevice>& devices, const std::string& pool,
    const PciPort& pci);

/// The CDI specification of a claim. `metadata_files`: paths of the metadata files on the host, by
/// request. Errors as edits_of().
[[nodiscard]] Result<nlohmann::json> cdi_spec(
    const Claim& claim, const std::vector<PreparedDevice>& devices,
    const std::map<std::string, std::string>& metadata_files, const PciPort& pci);

}  // namespace vgpu::kubernetes
