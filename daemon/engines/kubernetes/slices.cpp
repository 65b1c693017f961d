// SPDX-License-Identifier: MIT
#include "daemon/engines/kubernetes/slices.h"

#include "daemon/engines/kubernetes/names.h"
#include "text/json_document.h"

#include <fmt/format.h>
#include <algorithm>

namespace vgpu::kubernetes {

namespace {

using nlohmann::json;

constexpr const char* kVersion = "resource.k8s.io/v1";
constexpr const char* kList = "ResourceSliceList";
constexpr const char* kOwnerUid = "/metadata/ownerReferences/0/uid";  // a JSON pointer

PublishedSlice published_slice(const json& slice) {
    const json& pool = slice.at("spec").at("pool");
    PublishedSlice out{
        .name = slice.at("metadata").at("name").get<std::string>(),
        .resource_version = slice.at("metadata").at("resourceVersion").get<std::string>(),
        .owner_uid = slice.value(json::json_pointer(kOwnerUid), std::string()),
        .generation = pool.at("generation").get<std::int64_t>(),
        .slice_count = pool.at("resourceSliceCount").get<std::int64_t>(),
        .devices = {}};
    for (const json& device : slice.at("spec").value("devices", json::array()))
        out.devices.push_back(device_of(device));
    return out;
}

}  // namespace

std::vector<std::vector<Device>> split(std::span<const Device> devices) {
    const bool is_tainted =
        std::ranges::any_of(devices, [](const Device& device) { return !device.taints.empty(); });
    const std::size_t limit = is_tainted ? kMaxTaintedDevices : kMaxDevices;
    std::vector<std::vector<Device>> slices;
    do {
        const auto piece = devices.first(std::min(limit, devices.size()));
        slices.emplace_back(piece.begin(), piece.end());
        devices = devices.subspan(piece.size());
    } while (!devices.empty());
    return slices;
}

std::string slice_name(const std::string& node, std::size_t index) {
    return fmt::format("{}-{}-{}", node, kDriver, index);
}

json slice_json(const NodeReference& node, std::size_t index, std::size_t count,
                std::int64_t generation, std::span<const Device> devices) {
    json metadata{{"name", slice_name(node.name, index)}};
    if (!node.uid.empty())
        metadata["ownerReferences"] = json::array({{{"apiVersion", "v1"},
                                                    {"kind", "Node"},
                                                    {"name", node.name},
                                                    {"uid", node.uid},
                                                    {"controller", true}}});
    json listed = json::array();
    for (const Device& device : devices) listed.push_back(json_of(device));
    return {{"apiVersion", kVersion},
            {"kind", "ResourceSlice"},
            {"metadata", metadata},
            {"spec",
             {{"driver", kDriver},
              {"nodeName", node.name},
              {"pool",
               {{"name", node.name}, {"generation", generation}, {"resourceSliceCount", count}}},
              {"devices", listed}}}};
}

Result<std::vector<PublishedSlice>> published_in(const std::string& list, const std::string& node) {
    const auto document = text::read_json(list);
    if (!document)
        return fail(ErrorId::System,
                    "the API server's list of ResourceSlices is not JSON: " + document.error());
    try {
        if (document->value("kind", "") != kList)
            return fail(ErrorId::System,
                        fmt::format("the API server answers with a '{}' instead of a {}",
                                    document->value("kind", ""), kList));
        std::vector<PublishedSlice> slices;
        for (const json& slice : document->at("items")) {
            const json& spec = slice.at("spec");
            if (spec.at("driver") != kDriver || spec.value("nodeName", "") != node) continue;
            slices.push_back(published_slice(slice));
        }
        return slices;
    } catch (const json::exception& error) {
        return fail(ErrorId::System,
                    fmt::format("a ResourceSlice of this node cannot be read: {}", error.what()));
    }
}

bool is_published(std::span<const PublishedSlice> published,
                  std::span<const std::vector<Device>> desired, const std::string& node) {
    if (published.size() != desired.size()) return false;
    for (std::size_t index = 0; index < desired.size(); ++index) {
        const auto same =
            std::ranges::find(published, slice_name(node, index), &PublishedSlice::name);
        if (same == published.end() || same->devices != desired[index] ||
            same->generation != published.front().generation ||
            same->slice_count != static_cast<std::int64_t>(desired.size()))
            return false;
    }
    return true;
}

}  // namespace vgpu::kubernetes
