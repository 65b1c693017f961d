// SPDX-License-Identifier: MIT
//
// Slices: convert the devices of this host to ResourceSlices of resource.k8s.io/v1, and back. The
// host has one pool, with the name of its node. Each slice names the generation of the pool and the
// number of its slices; Kubernetes uses a pool only if all slices of its newest generation exist.
// Pure functions.
#pragma once

#include "daemon/engines/kubernetes/devices.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace vgpu::kubernetes {

/// Limits of Kubernetes for the devices of a slice; the second holds if a device has a taint or
/// uses counters.
inline constexpr std::size_t kMaxDevices = 128, kMaxTaintedDevices = 64;

inline constexpr std::string_view kSlicesPath = "/apis/resource.k8s.io/v1/resourceslices";

/// A slice that the API server has.
struct PublishedSlice {
    std::string name;
    std::string resource_version;
    std::int64_t generation = 0;  ///< of the pool
    std::int64_t slice_count = 0;
    std::vector<Device> devices;
};

/// The node that owns the slices: Kubernetes removes the slices together with the node.
struct NodeReference {
    std::string name;
    std::string uid;  ///< empty: not known, so the slices have no owner
};

/// Devices of each slice, in order. If there are no devices, one empty slice.
[[nodiscard]] std::vector<std::vector<Device>> split(std::span<const Device> devices);

/// "NODE-gpu.vgpu.org-0"
[[nodiscard]] std::string slice_name(const std::string& node, std::size_t index);

/// A slice without a resource version.
[[nodiscard]] nlohmann::json slice_json(const NodeReference& node, std::size_t index,
                                        std::size_t count, std::int64_t generation,
                                        std::span<const Device> devices);

/// The slices of `node` and this driver in a ResourceSliceList. System if `list` is something else.
[[nodiscard]] Result<std::vector<PublishedSlice>> published_in(const std::string& list,
                                                               const std::string& node);

/// True if the API server has exactly `desired` (as split() makes it) for `node`.
[[nodiscard]] bool is_published(std::span<const PublishedSlice> published,
                                std::span<const std::vector<Device>> desired,
                                const std::string& node);

}  // namespace vgpu::kubernetes
