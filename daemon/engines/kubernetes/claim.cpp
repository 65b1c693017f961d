// SPDX-License-Identifier: MIT
#include "daemon/engines/kubernetes/claim.h"

#include "daemon/engines/kubernetes/names.h"
#include "text/json_document.h"
#include "text/uuid.h"

#include <fmt/format.h>

namespace vgpu::kubernetes {

namespace {

using nlohmann::json;

/// The annotation with Claim::pod_claim.
constexpr const char* kPodClaim = "resource.kubernetes.io/pod-claim-name";
/// An error message quotes at most this many bytes of a body.
constexpr std::size_t kMaxQuoted = 200;

/// The member `key` of `object`; null if `object` is not an object or lacks the member.
const json& member(const json& object, const char* key) {
    static const json kNull;
    if (!object.is_object()) return kNull;
    const auto at = object.find(key);
    return at == object.end() ? kNull : *at;
}

/// The member `key` of `object` if it is a string, else empty.
std::string word(const json& object, const char* key) {
    const json& value = member(object, key);
    return value.is_string() ? value.get<std::string>() : "";
}

/// The body as JSON; null if it is not JSON.
json document_of(const Response& response) {
    return text::read_json(response.body).value_or(json());
}

/// True if `status` is a Status object with the reason NotFound that names the claim.
bool is_not_found(const json& status, const ClaimReference& reference) {
    const json& details = member(status, "details");
    return word(status, "kind") == "Status" && word(status, "reason") == "NotFound" &&
           word(details, "kind") == "resourceclaims" && word(details, "name") == reference.name;
}

/// The uid of a ResourceClaim; empty if `claim` is something else.
std::string uid_in(const json& claim) {
    return word(claim, "kind") == "ResourceClaim" ? word(member(claim, "metadata"), "uid") : "";
}

tl::unexpected<Error> fail_claim(ErrorId id, const ClaimReference& reference,
                                 const std::string& cause) {
    return fail(id, fmt::format("ResourceClaim {}: {}", text_of(reference), cause));
}

/// UnknownOption if the claim has parameters for this driver, because vgpu-dra supports none.
Result<> check_no_parameters(const json& allocation, const ClaimReference& reference) {
    for (const json& config : member(member(allocation, "devices"), "config"))
        if (word(member(config, "opaque"), "driver") == kDriver)
            return fail_claim(ErrorId::UnknownOption, reference,
                              fmt::format("has parameters for the driver {}, which accepts none; "
                                          "remove 'config' from the claim or its DeviceClass",
                                          kDriver));
    return {};
}

/// Reads a device from `result`, one element of the claim's status.allocation.devices.results.
Result<AllocatedDevice> allocated_device(const json& result, const ClaimReference& reference,
                                         std::string_view node) {
    AllocatedDevice device{.request = word(result, "request"), .device = word(result, "device")};
    const std::string pool = word(result, "pool");
    if (pool != node)
        return fail_claim(ErrorId::WrongState, reference,
                          fmt::format("its device {} is in pool '{}', but this host is pool '{}'",
                                      device.device, pool, node));
    if (member(result, "adminAccess") == true)
        return fail_claim(ErrorId::WrongState, reference,
                          "requests administrative access, which a VF does not offer");
    if (!is_label(base_request(device.request)) || !is_label(device.device))
        return fail_claim(
            ErrorId::System, reference,
            fmt::format("request '{}' or device '{}' is not a name that Kubernetes allows",
                        device.request, device.device));
    return device;
}

}  // namespace

std::string text_of(const ClaimReference& reference) {
    return fmt::format("{}/{}", reference.name_space, reference.name);
}

Result<> check_reference(const ClaimReference& reference) {
    if (is_label(reference.name_space) && is_subdomain(reference.name) &&
        text::parse_uuid(reference.uid))
        return {};
    return fail_claim(ErrorId::OutOfRange, reference,
                      fmt::format("namespace, name or uid '{}' is not one that Kubernetes allows",
                                  reference.uid));
}

std::string path_of(const ClaimReference& reference) {
    return fmt::format("/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims/{}",
                       reference.name_space, reference.name);
}

std::string base_request(const std::string& request) {
    return request.substr(0, request.find('/'));
}

std::string refusal_text(const Response& response) {
    const std::string message = word(document_of(response), "message");
    return fmt::format("status {}: {}", response.status,
                       message.empty() ? response.body.substr(0, kMaxQuoted) : message);
}

Existence existence_in(const Response& response, const ClaimReference& reference) {
    const json document = document_of(response);
    if (response.status == kHttpNotFound && is_not_found(document, reference))
        return Existence::Gone;
    const std::string uid = response.status == kHttpOk ? uid_in(document) : "";
    if (uid.empty() || word(member(document, "metadata"), "name") != reference.name)
        return Existence::Unknown;
    return uid == reference.uid ? Existence::Exists : Existence::Gone;
}

Result<Claim> claim_in(const Response& response, const ClaimReference& reference,
                       std::string_view node) {
    const json document = document_of(response);
    switch (existence_in(response, reference)) {
        case Existence::Exists:
            break;
        case Existence::Gone:
            if (response.status == kHttpNotFound)
                return fail_claim(ErrorId::NoSuchVf, reference,
                                  "there is no such claim (any more)");
            return fail_claim(
                ErrorId::NoSuchVf, reference,
                fmt::format("has the uid {}, but the kubelet asks for the uid {}: the "
                            "claim was deleted and recreated",
                            uid_in(document), reference.uid));
        case Existence::Unknown:
            return fail_claim(
                ErrorId::System, reference,
                fmt::format("the API server does not show it ({})", refusal_text(response)));
    }
    const json& allocation = member(member(document, "status"), "allocation");
    TRY_VOID(check_no_parameters(allocation, reference));
    Claim claim{.reference = reference,
                .pod_claim = word(member(member(document, "metadata"), "annotations"), kPodClaim),
                .devices = {}};
    for (const json& result : member(member(allocation, "devices"), "results")) {
        if (word(result, "driver") != kDriver) continue;
        TRY(AllocatedDevice device, allocated_device(result, reference, node));
        claim.devices.push_back(std::move(device));
    }
    if (claim.devices.empty())
        return fail_claim(ErrorId::WrongState, reference,
                          fmt::format("no device of the driver {} is allocated to it", kDriver));
    if (!claim.pod_claim.empty() && !is_label(claim.pod_claim))
        return fail_claim(ErrorId::System, reference,
                          fmt::format("its annotation {} is not a label", kPodClaim));
    return claim;
}

}  // namespace vgpu::kubernetes
