// SPDX-License-Identifier: MIT
//
// Devices: the VFs of this host as vgpu-dra reports them to Kubernetes in the mode dra. A VF is a
// device if a ResourceClaim of this cluster owns it, or if it is free: vgpud would give it to a new
// owner. The functions change nothing; they read sysfs through PciPort.
//
//   state of the GPU              taint of the devices of this GPU
//   ok                            none
//   device-lost, failed           NoExecute: Kubernetes ends the pods that use these devices
//   read-only                     NoSchedule: pods stay, but vgpud can neither make nor end claims
//   starting, pf-lost,            NoSchedule: pods stay, because guests continue to compute while
//   version-mismatch, any other   vgpud or the PF core does not answer
#pragma once

#include "daemon/engines/kubernetes/ports.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace vgpu::kubernetes {

/// A device taint of Kubernetes.
struct Taint {
    std::string key;     ///< "vgpu.org/gpu"
    std::string value;   ///< state of the GPU
    std::string effect;  ///< "NoSchedule" or "NoExecute"

    bool operator==(const Taint&) const = default;
};

using Attribute = std::variant<std::int64_t, std::string>;

/// A device of resource.k8s.io/v1.
struct Device {
    std::string name;                             ///< "gpu0-vf3"
    std::map<std::string, Attribute> attributes;  ///< by name
    std::map<std::string, std::string> capacity;  ///< quantities by name: {"memory", "64Mi"}
    std::vector<Taint> taints;

    bool operator==(const Device&) const = default;
};

/// True if the GPU is in service and the VF can serve an owner, now or after a running scrub. False
/// for example for a VF that is stopped, is withheld, or cannot be scrubbed.
[[nodiscard]] bool is_in_service(const HostVf& vf);

/// True if vgpud would give the VF to a new owner when its GPU is in service: for example if the VF
/// has no owner, or if the lease of its owner is over and no client has the VF open.
[[nodiscard]] bool is_free(const HostVf& vf);

/// `bytes` in the canonical form of a Kubernetes quantity: "64Mi", "1Gi", "1000".
[[nodiscard]] std::string quantity_of(std::uint64_t bytes);

/// The attributes of a VF: name, gpu, profile, weight and minPct (HostVf::min_pct, rounded down);
/// for a PCI function also numaNode and resource.kubernetes.io/pciBusID. Omits values that are not
/// known.
[[nodiscard]] std::map<std::string, Attribute> attributes_of(const HostVf& vf, const PciPort& pci);

/// The names of the devices of one host, each once.
class DeviceNames {
public:
    /// device_name_of() the target. BadConfiguration if another target has this name, or if
    /// Kubernetes does not allow the name.
    Result<std::string> take(const std::string& target);

private:
    std::set<std::string> taken_;
};

/// The devices, sorted by name. Errors are those of DeviceNames.
[[nodiscard]] Result<std::vector<Device>> devices_of(std::span<const HostVf> vfs,
                                                     std::string_view cluster, const PciPort& pci);

[[nodiscard]] nlohmann::json json_of(const std::map<std::string, Attribute>& attributes);
[[nodiscard]] nlohmann::json json_of(const Device& device);

/// Reads a device of a ResourceSlice. Ignores fields that vgpu-dra does not write, such as the time
/// of a taint. Throws nlohmann::json::exception if a required field is missing or has a wrong type.
[[nodiscard]] Device device_of(const nlohmann::json& json);

}  // namespace vgpu::kubernetes
