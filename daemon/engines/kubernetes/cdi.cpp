// SPDX-License-Identifier: MIT
#include "daemon/engines/kubernetes/cdi.h"

#include "daemon/engines/kubernetes/names.h"

#include <fmt/format.h>

namespace vgpu::kubernetes {

namespace {

using nlohmann::json;

/// containerd 1.7, CRI-O 1.23 and later versions of both read this version of CDI.
constexpr const char* kCdiVersion = "0.5.0";
constexpr const char* kSocketDirectory = "/run/vgpu-vf";
constexpr const char* kMetadataDirectory = "/var/run/kubernetes.io/dra-device-attributes";

std::string vf_name(const std::string& claim_uid, const std::string& device) {
    return fmt::format("{}-{}", claim_uid, device);
}

std::string metadata_name(const std::string& claim_uid, const std::string& request) {
    return fmt::format("{}-metadata-{}", claim_uid, request);
}

std::string qualified(const std::string& name) {
    return fmt::format("{}={}", kCdiKind, name);
}

json bind_mount(const std::string& host_path, const std::string& container_path, const char* mode) {
    return {{"hostPath", host_path},
            {"containerPath", container_path},
            {"options", {mode, "nosuid", "nodev", "bind"}}};
}

json json_of(const ContainerEdits& edits) {
    json out{{"env", json::array()}};
    for (const auto& [name, value] : edits.variables)
        out["env"].push_back(fmt::format("{}={}", name, value));
    for (const auto& [host_path, container_path] : edits.mounts)
        out["mounts"].push_back(bind_mount(host_path, container_path, "rw"));
    for (const std::string& path : edits.device_nodes)
        out["deviceNodes"].push_back({{"path", path}});
    return out;
}

}  // namespace

Result<ContainerEdits> edits_of(const std::string& device, const HostVf& vf, const PciPort& pci) {
    if (!vf.socket.empty()) {
        const std::string path = fmt::format("{}/{}.sock", kSocketDirectory, device);
        return ContainerEdits{.variables = {{variable_of("VGPU_SOCKET", device), path}},
                              .mounts = {{.host_path = vf.socket, .container_path = path}},
                              .device_nodes = {}};
    }
    const std::string group = vf.address.empty() ? "" : pci.iommu_group(vf.address);
    if (group.empty())
        return fail(ErrorId::WrongState,
                    fmt::format("{}: the function {} has no IOMMU group; enable the IOMMU of the "
                                "host, and see docs/kubernetes.md",
                                vf.target, vf.address.empty() ? "(unknown)" : vf.address));
    return ContainerEdits{.variables = {{variable_of("VGPU_PCI", device), vf.address}},
                          .mounts = {},
                          .device_nodes = {"/dev/vfio/vfio", "/dev/vfio/" + group}};
}

std::vector<std::string> cdi_ids(const std::string& claim_uid,
                                 const std::vector<PreparedDevice>& devices, std::size_t index) {
    const AllocatedDevice& device = devices.at(index).allocated;
    const std::string request = base_request(device.request);
    std::vector<std::string> ids{qualified(vf_name(claim_uid, device.device))};
    for (std::size_t before = 0; before < index; ++before)
        if (base_request(devices[before].allocated.request) == request) return ids;
    ids.push_back(qualified(metadata_name(claim_uid, request)));
    return ids;
}

std::string metadata_path(const Claim& claim, const std::string& request) {
    const bool is_of_template = !claim.pod_claim.empty();
    return fmt::format("{}/{}/{}/{}/{}-metadata.json", kMetadataDirectory,
                       is_of_template ? "resourceclaimtemplates" : "resourceclaims",
                       is_of_template ? claim.pod_claim : claim.reference.name, request, kDriver);
}

std::map<std::string, json> metadata_of(const Claim& claim,
                                        const std::vector<PreparedDevice>& devices,
                                        const std::string& pool, const PciPort& pci) {
    std::map<std::string, json> files;
    for (const auto& [allocated, vf] : devices) {
        const std::string request = base_request(allocated.request);
        if (!files.contains(request)) {
            json& file = files[request];
            file = {{"apiVersion", "metadata.resource.k8s.io/v1alpha1"},
                    {"kind", "DeviceMetadata"},
                    {"metadata",
                     {{"name", claim.reference.name},
                      {"namespace", claim.reference.name_space},
                      {"uid", claim.reference.uid},
                      {"generation", 1}}},
                    {"requests", json::array({{{"name", allocated.request}}})}};
            if (!claim.pod_claim.empty()) file["podClaimName"] = claim.pod_claim;
        }
        files[request]["requests"][0]["devices"].push_back(
            {{"driver", kDriver},
             {"pool", pool},
             {"name", allocated.device},
             {"attributes", json_of(attributes_of(vf, pci))}});
    }
    return files;
}

Result<json> cdi_spec(const Claim& claim, const std::vector<PreparedDevice>& devices,
                      const std::map<std::string, std::string>& metadata_files,
                      const PciPort& pci) {
    json listed = json::array();
    for (const auto& [allocated, vf] : devices) {
        TRY(const ContainerEdits edits, edits_of(allocated.device, vf, pci));
        listed.push_back({{"name", vf_name(claim.reference.uid, allocated.device)},
                          {"containerEdits", json_of(edits)}});
    }
    for (const auto& [request, file] : metadata_files)
        listed.push_back(
            {{"name", metadata_name(claim.reference.uid, request)},
             {"containerEdits",
              {{"mounts", json::array({bind_mount(file, metadata_path(claim, request), "ro")})}}}});
    return json{{"cdiVersion", kCdiVersion}, {"kind", kCdiKind}, {"devices", listed}};
}

}  // namespace vgpu::kubernetes
