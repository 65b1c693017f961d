// SPDX-License-Identifier: MIT
//
// Claim: the devices of this driver on this host that a ResourceClaim has, read from an answer of
// the API server. Pure functions.
#pragma once

#include "daemon/engines/kubernetes/ports.h"

#include <string>
#include <string_view>
#include <vector>

namespace vgpu::kubernetes {

/// The names by which the kubelet identifies a claim.
struct ClaimReference {
    std::string name_space;
    std::string name;
    std::string uid;

    bool operator==(const ClaimReference&) const = default;
};

struct AllocatedDevice {
    std::string request;  ///< "gpu", or "gpu/small" for an alternative of a request
    std::string device;   ///< "gpu0-vf3"

    bool operator==(const AllocatedDevice&) const = default;
};

struct Claim {
    ClaimReference reference;
    std::string pod_claim;  ///< name of the claim within its pod, if made from a template; else
                            ///< empty
    std::vector<AllocatedDevice> devices;
};

/// "default/train"
[[nodiscard]] std::string text_of(const ClaimReference& reference);

/// OutOfRange unless all parts have the form that Kubernetes prescribes. They become parts of
/// paths.
[[nodiscard]] Result<> check_reference(const ClaimReference& reference);

/// Path of the claim on the API server.
[[nodiscard]] std::string path_of(const ClaimReference& reference);

/// "gpu" for "gpu/small"
[[nodiscard]] std::string base_request(const std::string& request);

/// Whether a claim exists, by the answer of the API server.
enum class Existence {
    Exists,   ///< with the uid of the reference
    Gone,     ///< there is no such claim, or a later one has its name
    Unknown,  ///< the answer says neither: an error, or another API version
};

/// A 404 counts only if it names this claim: the API server answers an unknown path with 404, too.
[[nodiscard]] Existence existence_in(const Response& response, const ClaimReference& reference);

/// The devices of this driver that `response` allocates to the claim. `node`: the pool of this
/// host. NoSuchVf: the claim is gone. WrongState: it has no device here, or requests administrative
/// access. UnknownOption: it has parameters for this driver. System: unreadable answer.
[[nodiscard]] Result<Claim> claim_in(const Response& response, const ClaimReference& reference,
                                     std::string_view node);

/// "status 403: resourceclaims … is forbidden …": the status and the message of a refusal.
[[nodiscard]] std::string refusal_text(const Response& response);

}  // namespace vgpu::kubernetes
