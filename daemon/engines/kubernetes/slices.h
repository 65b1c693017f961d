// SPDX-License-Identifier: MIT
//
// Slices: convert the devices of this host to ResourceSlices of resource.k8s.io/v1, and back. The
// host has one pool, with the name of its node. Each slice names the generation of the pool and the
// number of slices in the pool. Kubernetes uses a pool only if all slices of its newest generation
// exist. Pure functions.
#pragma once

#include "daemon/engines/kubernetes/devices.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace vgpu::kubernetes {

/// Limit of Kubernetes for the number of devices of a slice.
inline constexpr std::size_t kMaxDevices = 128;
/// The limit for a slice in which a device has a taint or uses counters.
inline constexpr std::size_t kMaxTaintedDevices = 64;

inline constexpr std::string_view kSlicesPath = "/apis/resource.k8s.io/v1/resourceslices";

/// A slice that the API server has.
struct PublishedSlice {
    std::string name;
    std::string resource_version;
    std::int64_t generation = 0;   ///< generation of the pool
    std::int64_t slice_count = 0;  ///< number of slices in the pool
    std::vector<Device> devices;
};

/// The node that owns the slices: Kubernetes removes the slices together with the node.
struct NodeReference {
    std::string name;
    std::string uid;  ///< empty: not known, so the slices have no owner
};

/// The devices of each slice, in order. Without devices, there is one empty slice.
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
