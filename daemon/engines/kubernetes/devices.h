// SPDX-License-Identifier: MIT
//
// Devices: the VFs of this host as vgpu-dra reports them to Kubernetes. A VF that the cluster must
// not use is not a device. The cluster must not use the VFs of other owners, nor VFs without an
// owner that are open or stay out of service until an administrator acts (such as a stopped or
// quarantined VF). The functions change nothing; PciPort reads sysfs.
//
//   state of the GPU              taint of its devices
//   ok                            none
//   device-lost, failed           NoExecute: Kubernetes ends the pods that use them
//   starting, pf-lost,            NoSchedule: pods stay, because guests continue to compute while
//   version-mismatch, any other   vgpud or the PF core does not answer
#pragma once

#include "daemon/engines/kubernetes/ports.h"

#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace vgpu::kubernetes {

struct Taint {
    std::string key;
    std::string value;
    std::string effect;

    bool operator==(const Taint&) const = default;
};

using Attribute = std::variant<std::int64_t, std::string>;

/// A device of resource.k8s.io/v1.
struct Device {
    std::string name;
    std::map<std::string, Attribute> attributes;
    std::map<std::string, std::string> capacity;  ///< quantities, such as "64Mi"
    std::vector<Taint> taints;

    bool operator==(const Device&) const = default;
};

/// True if the VF and its GPU are in service.
[[nodiscard]] bool is_in_service(const HostVf& vf);

/// The quantity `bytes` as Kubernetes itself writes it: "64Mi", "1Gi", "1000".
[[nodiscard]] std::string quantity_of(std::uint64_t bytes);

/// The attributes of a VF: name, profile, gpu, weight, minPct (whole percent, rounded down),
/// numaNode and resource.kubernetes.io/pciBusID (of PCI functions).
[[nodiscard]] std::map<std::string, Attribute> attributes_of(const HostVf& vf, const PciPort& pci);

/// The devices, sorted by name. VFs with an owner are devices only if a ResourceClaim of `cluster`
/// owns them. BadConfiguration if two VFs would have the same device name, or if Kubernetes does
/// not allow the name of a device.
[[nodiscard]] Result<std::vector<Device>> devices_of(std::span<const HostVf> vfs,
                                                     std::string_view cluster, const PciPort& pci);

[[nodiscard]] nlohmann::json json_of(const std::map<std::string, Attribute>& attributes);
[[nodiscard]] nlohmann::json json_of(const Device& device);

/// The device in a ResourceSlice. Ignores fields that vgpu-dra does not write, such as the time of
/// a taint. Throws nlohmann::json::exception if a field is missing or has another type.
[[nodiscard]] Device device_of(const nlohmann::json& json);

}  // namespace vgpu::kubernetes
