// SPDX-License-Identifier: MIT
//
// Makes two kinds of documents for a ResourceClaim: the CDI specification (Container Device
// Interface), which describes to the container runtime what to add to a container with a VF; and
// the metadata of the VF, which the container may read (Kubernetes enhancement proposal KEP-5304).
// The functions write no files; they only read sysfs, through PciPort.
//
//   VF               additions to the container
//   a PCI function   device nodes /dev/vfio/vfio and /dev/vfio/GROUP; an environment variable with
//                    the PCI address
//   of softgpu       the vfio-user socket, mounted at /run/vgpu-vf/DEVICE.sock; an environment
//                    variable with this path
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

    std::map<std::string, std::string> variables;  ///< of the environment, by name
    std::vector<Mount> mounts;                     ///< bind mounts
    std::vector<std::string> device_nodes;  ///< the same path on the host and in the container
};

/// The additions for one VF. `device`: device_name_of() the VF. WrongState if the VF is a PCI
/// function without a known address or without an IOMMU group.
[[nodiscard]] Result<ContainerEdits> edits_of(const std::string& device, const HostVf& vf,
                                              const PciPort& pci);

/// A device that is allocated to a ResourceClaim, and its VF.
struct PreparedDevice {
    AllocatedDevice allocated;
    HostVf vf;
};

/// Kind of vgpu's CDI devices: vendor and class.
inline constexpr std::string_view kCdiKind = "vgpu.org/vf";

/// The CDI devices for devices[index], by their qualified names ("vgpu.org/vf=NAME"). The first is
/// the CDI device of the VF. If devices[index] is the first device of its request, the second is
/// the CDI device that mounts the metadata file of the request.
[[nodiscard]] std::vector<std::string> cdi_ids(const std::string& claim_uid,
                                               const std::vector<PreparedDevice>& devices,
                                               std::size_t index);

/// The path of the metadata file of `request` in a container.
[[nodiscard]] std::string metadata_path(const Claim& claim, const std::string& request);

/// The metadata of each request of a claim, by base_request(): a DeviceMetadata object of
/// metadata.resource.k8s.io/v1alpha1. `pool`: name of the pool of this host (slices.h).
[[nodiscard]] std::map<std::string, nlohmann::json> metadata_of(
    const Claim& claim, const std::vector<PreparedDevice>& devices, const std::string& pool,
    const PciPort& pci);

/// The CDI specification of a claim. `metadata_files`: paths of the metadata files on the host, by
/// base_request(). Errors as edits_of().
[[nodiscard]] Result<nlohmann::json> cdi_spec(
    const Claim& claim, const std::vector<PreparedDevice>& devices,
    const std::map<std::string, std::string>& metadata_files, const PciPort& pci);

}  // namespace vgpu::kubernetes
