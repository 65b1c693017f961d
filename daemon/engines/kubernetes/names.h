// SPDX-License-Identifier: MIT
//
// Names that vgpu-dra shares with Kubernetes and vgpud: the driver, devices, owners. Pure
// functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace vgpu::kubernetes {

/// Name of the DRA driver (dynamic resource allocation) in ResourceSlices, DeviceClasses and paths
/// of the kubelet.
inline constexpr std::string_view kDriver = "gpu.vgpu.org";
/// Domain in the names of resources ("vgpu.org/small", device plugin), taints and CDI devices.
inline constexpr std::string_view kDomain = "vgpu.org";

/// Longest owner in bytes that vgpud takes for the owner of a job (kMaxEngineOwner in vgpud).
inline constexpr std::size_t kMaxOwner = 72;

/// The name of a VF as a device of Kubernetes: "gpu0-vf3" for the target "gpu0/vf3". Kubernetes
/// allows only lower-case letters, digits and '-', so letters become lower case and all other
/// characters become '-'.
[[nodiscard]] std::string device_name_of(std::string_view target);

/// The name of an environment variable of a container: "VGPU_SOCKET_GPU0_VF3" for the prefix
/// "VGPU_SOCKET" and the device "gpu0-vf3".
[[nodiscard]] std::string variable_of(std::string_view prefix, std::string_view device);

/// True if `word` is 1 to 63 lower-case letters, digits and '-', with no '-' at either end (an RFC
/// 1123 label). Such a word is safe as the name of a file.
[[nodiscard]] bool is_label(std::string_view word);

/// True if `name` is labels separated by dots, at most 253 characters (an RFC 1123 subdomain).
[[nodiscard]] bool is_subdomain(std::string_view name);

/// The owner of the VFs of a ResourceClaim: "k8s:CLUSTER:UID.0". The last part, the life, is always
/// 0, because Kubernetes never uses a uid again. In the mode device-plugin, "device-NAME" replaces
/// UID (allocations.h).
[[nodiscard]] std::string owner_of(std::string_view cluster, std::string_view uid);

/// The uid (a UUID) in `owner`, if `owner` is a ResourceClaim of `cluster`; else none.
[[nodiscard]] std::optional<std::string> uid_of(std::string_view owner, std::string_view cluster);

}  // namespace vgpu::kubernetes
