// SPDX-License-Identifier: MIT
#include "daemon/engines/kubernetes/devices.h"

#include "daemon/engines/kubernetes/names.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>

namespace vgpu::kubernetes {

namespace {

using nlohmann::json;

/// In these states of a GPU, its VFs do not compute any more.
constexpr std::array<std::string_view, 2> kGpuLost{"device-lost", "failed"};
/// A VF in these states stays out of service until an administrator acts.
constexpr std::array<std::string_view, 4> kOutOfService{"absent", "stopped", "quarantined",
                                                        "mismatch"};
constexpr std::string_view kPaused = "paused", kScrubbing = "scrubbing", kWithheldMode = "none";
constexpr const char* kPciBusId = "resource.kubernetes.io/pciBusID";
constexpr const char* kMemory = "memory";

bool is_one_of(std::string_view word, std::span<const std::string_view> words) {
    return std::ranges::find(words, word) != words.end();
}

/// True if vgpud refuses the VF to every owner. A VF that is being scrubbed has a condition if its
/// scrub keeps failing. A PCI function of mode 'none' is not withheld: no driver is probed for it.
bool is_out_of_service(const HostVf& vf) {
    const bool is_withheld = vf.assignment_mode == kWithheldMode && !vf.socket.empty();
    const bool has_failed_scrub = vf.state == kScrubbing && !vf.condition.empty();
    return is_one_of(vf.state, kOutOfService) || is_withheld || has_failed_scrub;
}

/// True if the VF is a device of this cluster. A VF that a ResourceClaim of this cluster owns stays
/// a device in any state, so that the scheduler of Kubernetes knows that the VF is allocated.
bool is_for_cluster(const HostVf& vf, std::string_view cluster) {
    return uid_of(vf.owner, cluster).has_value() || is_free(vf);
}

std::vector<Taint> taints_of(const HostVf& vf) {
    if (vf.gpu_state == kGpuOk) return {};
    return {{.key = fmt::format("{}/gpu", kDomain),
             .value = vf.gpu_state,
             .effect = is_one_of(vf.gpu_state, kGpuLost) ? "NoExecute" : "NoSchedule"}};
}

std::string gpu_of(const std::string& target) {
    return target.substr(0, target.find('/'));
}

}  // namespace

Result<std::string> DeviceNames::take(const std::string& target) {
    std::string name = device_name_of(target);
    if (is_label(name) && taken_.insert(name).second) return name;
    return fail(ErrorId::BadConfiguration,
                fmt::format("{} cannot be the device '{}': Kubernetes requires a unique name of at "
                            "most 63 letters, digits and '-'; give the GPU another id in vgpud's "
                            "configuration",
                            target, name));
}

bool is_in_service(const HostVf& vf) {
    return vf.gpu_state == kGpuOk && !is_out_of_service(vf);
}

bool is_free(const HostVf& vf) {
    const bool has_owner = !vf.owner.empty() && !vf.is_lease_over;
    return !has_owner && !vf.is_open && vf.state != kPaused && !is_out_of_service(vf);
}

std::string quantity_of(std::uint64_t bytes) {
    constexpr std::array kUnits{"", "Ki", "Mi", "Gi", "Ti"};
    constexpr std::uint64_t kStep = 1024;
    std::size_t unit = 0;
    while (bytes != 0 && bytes % kStep == 0 && unit + 1 < kUnits.size()) {
        bytes /= kStep;
        ++unit;
    }
    return fmt::format("{}{}", bytes, kUnits.at(unit));
}

std::map<std::string, Attribute> attributes_of(const HostVf& vf, const PciPort& pci) {
    std::map<std::string, Attribute> attributes{{"name", vf.name}, {"gpu", gpu_of(vf.target)}};
    if (vf.weight) attributes["weight"] = std::int64_t{*vf.weight};
    if (vf.min_pct) attributes["minPct"] = static_cast<std::int64_t>(std::floor(*vf.min_pct));
    if (!vf.profile.empty()) attributes["profile"] = vf.profile;
    if (!vf.socket.empty() || vf.address.empty()) return attributes;
    attributes[kPciBusId] = vf.address;
    if (const auto node = pci.numa_node(vf.address)) attributes["numaNode"] = std::int64_t{*node};
    return attributes;
}

Result<std::vector<Device>> devices_of(std::span<const HostVf> vfs, std::string_view cluster,
                                       const PciPort& pci) {
    DeviceNames names;
    std::map<std::string, Device> devices;
    for (const HostVf& vf : vfs) {
        if (!is_for_cluster(vf, cluster)) continue;
        TRY(const std::string name, names.take(vf.target));
        Device device{.name = name,
                      .attributes = attributes_of(vf, pci),
                      .capacity = {},
                      .taints = taints_of(vf)};
        if (vf.vram_bytes) device.capacity[kMemory] = quantity_of(*vf.vram_bytes);
        devices[name] = std::move(device);
    }
    std::vector<Device> sorted;
    for (auto& [name, device] : devices) sorted.push_back(std::move(device));
    return sorted;
}

json json_of(const std::map<std::string, Attribute>& attributes) {
    json out = json::object();
    for (const auto& [name, value] : attributes) {
        if (const auto* number = std::get_if<std::int64_t>(&value))
            out[name] = {{"int", *number}};
        else
            out[name] = {{"string", std::get<std::string>(value)}};
    }
    return out;
}

json json_of(const Device& device) {
    json out{{"name", device.name}, {"attributes", json_of(device.attributes)}};
    for (const auto& [name, quantity] : device.capacity)
        out["capacity"][name] = {{"value", quantity}};
    for (const Taint& taint : device.taints)
        out["taints"].push_back(
            {{"key", taint.key}, {"value", taint.value}, {"effect", taint.effect}});
    return out;
}

Device device_of(const json& in) {
    Device device{
        .name = in.at("name").get<std::string>(), .attributes = {}, .capacity = {}, .taints = {}};
    const json attributes = in.value("attributes", json::object());
    const json capacity = in.value("capacity", json::object());
    for (const auto& [name, value] : attributes.items()) {
        if (value.contains("int"))
            device.attributes[name] = value.at("int").get<std::int64_t>();
        else if (value.contains("string"))
            device.attributes[name] = value.at("string").get<std::string>();
        else
            device.attributes[name] = value.dump();  // differs from each value that vgpu-dra writes
    }
    for (const auto& [name, value] : capacity.items())
        device.capacity[name] = value.at("value").get<std::string>();
    for (const json& taint : in.value("taints", json::array()))
        device.taints.push_back({.key = taint.at("key").get<std::string>(),
                                 .value = taint.value("value", ""),
                                 .effect = taint.at("effect").get<std::string>()});
    return device;
}

}  // namespace vgpu::kubernetes
