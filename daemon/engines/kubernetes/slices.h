// SPDX-License-Identifier: MIT
//
// Slices: pure functions that convert the devices of this host to ResourceSlices of
// resource.k8s.io/v1 ("slices" in this folder), and back. The slices form one pool, which has the
// name of the host in Kubernetes (its node). Each slice contains the generation of the pool and the
// number of slices in the pool. Kubernetes uses a pool only if all slices of its newest generation
// exist.
#pragma once

#include "daemon/engines/kubernetes/devices.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace vgpu::kubernetes {

/// Kubernetes allows at most this many devices in a slice.
inline constexpr std::size_t kMaxDevices = 128;
/// The limit if a device of the slice has a taint.
inline constexpr std::size_t kMaxTaintedDevices = 64;

inline constexpr std::string_view kSlicesPath = "/apis/resource.k8s.io/v1/resourceslices";

/// A slice that the API server has.
struct PublishedSlice {
    std::string name;
    std::string resource_version;  ///< changes with each write of the slice
    std::string owner_uid;         ///< uid of the Node object that owns it; empty: no owner
    std::int64_t generation = 0;   ///< generation of the pool
    std::int64_t slice_count = 0;  ///< number of slices in the pool
    std::vector<Device> devices;
};

/// The Node object that owns the slices: Kubernetes removes the slices together with their owner.
struct NodeReference {
    std::string name;
    std::string uid;  ///< empty: not known, so the slices have no owner
};

/// Splits `devices` into the devices of each slice, in order. Returns one empty slice if there are
/// no devices.
[[nodiscard]] std::vector<std::vector<Device>> split(std::span<const Device> devices);

/// "NODE-gpu.vgpu.org-0" for index 0.
[[nodiscard]] std::string slice_name(const std::string& node, std::size_t index);

/// A ResourceSlice without a resource version. `count`: number of slices in the pool. `generation`:
/// generation of the pool.
[[nodiscard]] nlohmann::json slice_json(const NodeReference& node, std::size_t index,
                                        std::size_t count, std::int64_t generation,
                                        std::span<const Device> devices);

/// The slices of `node` and this driver in `list`, the JSON text of a ResourceSliceList. System if
/// `list` is something else.
[[nodiscard]] Result<std::vector<PublishedSlice>> published_in(const std::string& list,
                                                               const std::string& node);

/// True if `published` are exactly the slices `desired` (the result of split()) of `node`, in one
/// generation.
[[nodiscard]] bool is_published(std::span<const PublishedSlice> published,
                                std::span<const std::vector<Device>> desired,
                                const std::string& node);

}  // namespace vgpu::kubernetes
