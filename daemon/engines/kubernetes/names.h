// SPDX-License-Identifier: MIT
//
// Names that vgpu-dra shares with Kubernetes and vgpud: the driver, devices, owners. Pure
// functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vgpu::kubernetes {

/// Name of the DRA driver, in ResourceSlices, DeviceClasses and paths of the kubelet.
inline constexpr std::string_view kDriver = "gpu.vgpu.org";
/// Domain in the names of resources ("vgpu.org/small", device plugin), taints and CDI devices.
inline constexpr std::string_view kDomain = "vgpu.org";

/// The name of a VF as a device: "gpu0-vf3" for "gpu0/vf3". Kubernetes allows lower-case letters,
/// digits and '-'; other characters become '-'.
[[nodiscard]] std::string device_name_of(std::string_view target);

/// "VGPU_SOCKET_GPU0_VF3" for the prefix "VGPU_SOCKET" and the device "gpu0-vf3".
[[nodiscard]] std::string variable_of(std::string_view prefix, std::string_view device);

/// True if `word` is 1 to 63 lower-case letters, digits and '-', with no '-' at either end (an RFC
/// 1123 label). Such a word is safe as the name of a file.
[[nodiscard]] bool is_label(std::string_view word);

/// True if `name` consists of labels and dots, at most 253 characters (an RFC 1123 subdomain).
[[nodiscard]] bool is_subdomain(std::string_view name);

/// "k8s:CLUSTER:UID.0". A ResourceClaim has one life, because its uid is never used again.
[[nodiscard]] std::string owner_of(std::string_view cluster, std::string_view uid);

/// The uid (a UUID) of an owner of `cluster`; none for other owners.
[[nodiscard]] std::optional<std::string> uid_of(std::string_view owner, std::string_view cluster);

}  // namespace vgpu::kubernetes
