// SPDX-License-Identifier: MIT
//
// Fuzzes what vgpu-dra reads from an API server. The first byte of the input says whether the
// answer that follows is about a claim (found, not found, error) or about the slices of this host.
// For any input, an error has a text, and the names in a claim that is read are valid in paths and
// give a CDI specification.
#include "daemon/engines/kubernetes/cdi.h"
#include "daemon/engines/kubernetes/names.h"
#include "daemon/engines/kubernetes/slices.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace {

using namespace vgpu::kubernetes;

constexpr const char* kNode = "worker-1";
const ClaimReference kClaim{
    .name_space = "default", .name = "train", .uid = "c7e7b22e-239b-4498-b27c-7f1344481e14"};

void require(bool is_true) {
    if (!is_true) std::abort();
}

class NoPci final : public PciPort {
public:
    [[nodiscard]] std::optional<int> numa_node(const std::string&) const override { return {}; }
    [[nodiscard]] std::string iommu_group(const std::string&) const override { return "17"; }
};

void check_cdi(const Claim& claim) {
    const NoPci pci;
    std::vector<PreparedDevice> devices;
    for (const AllocatedDevice& allocated : claim.devices)
        devices.push_back({allocated, {.target = "gpu0/vf1", .name = "a", .socket = "/run/s"}});
    std::map<std::string, std::string> files;
    for (const auto& [request, metadata] : metadata_of(claim, devices, kNode, pci)) {
        require(is_label(request));
        files[request] = "/var/lib/vgpu-dra/" + request;
        require(!metadata.dump().empty() && metadata_path(claim, request).starts_with("/"));
    }
    const auto spec = cdi_spec(claim, devices, files, pci);
    require(spec && (*spec)["devices"].size() >= devices.size());
}

void check_claim(const Response& response) {
    const Existence existence = existence_in(response, kClaim);
    const auto claim = claim_in(response, kClaim, kNode);
    require(!refusal_text(response).empty());
    if (!claim) return require(!claim.error().cause.empty());
    require(existence == Existence::Exists && claim->reference == kClaim);
    require(!claim->devices.empty());
    require(claim->pod_claim.empty() || is_label(claim->pod_claim));
    for (const AllocatedDevice& device : claim->devices)
        require(is_label(device.device) && is_label(base_request(device.request)));
    check_cdi(*claim);
}

void check_slices(const std::string& text) {
    const auto slices = published_in(text, kNode);
    if (!slices) return require(!slices.error().cause.empty());
    std::vector<std::vector<Device>> desired;
    for (const PublishedSlice& slice : *slices) {
        desired.push_back(slice.devices);
        for (const Device& device : slice.devices) require(!json_of(device).dump().empty());
    }
    static_cast<void>(is_published(*slices, desired, kNode));
    require(is_published({}, desired, kNode) == false || desired.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::array kStatus{kHttpOk, kHttpNotFound, 500};
    if (size == 0) return 0;
    std::string text;
    text.assign(data + 1, data + size);
    if (data[0] % 4 < kStatus.size())
        check_claim({.status = kStatus[data[0] % 4], .body = text});
    else
        check_slices(text);
    return 0;
}
