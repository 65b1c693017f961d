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
    std::string pod_claim;  ///< name of the claim within its pod if the claim was made from a
                            ///< template; else empty
    std::vector<AllocatedDevice> devices;
};

/// "default/train"
[[nodiscard]] std::string text_of(const ClaimReference& reference);

/// Checks a reference, because its members become parts of paths. OutOfRange unless all members
/// have the form that Kubernetes prescribes.
[[nodiscard]] Result<> check_reference(const ClaimReference& reference);

/// Path of the claim on the API server.
[[nodiscard]] std::string path_of(const ClaimReference& reference);

/// "gpu" for "gpu/small"
[[nodiscard]] std::string base_request(const std::string& request);

/// Whether a claim exists, by the answer of the API server.
enum class Existence {
    Exists,   ///< with the uid of the reference
    Gone,     ///< there is no such claim, or a later claim has its name
    Unknown,  ///< the answer says neither: an error, or another API version
};

/// A 404 counts only if it names this claim: the API server answers an unknown path with 404, too.
[[nodiscard]] Existence existence_in(const Response& response, const ClaimReference& reference);

/// The devices of this driver that `response` allocates to the claim. `node`: the pool of this
/// host. NoSuchVf: the claim is gone. WrongState: the claim has no device of this driver, has a
/// device of another host, or requests administrative access. UnknownOption: the claim has
/// parameters for this driver. System: the answer is an error, cannot be read, or has names that
/// Kubernetes does not allow.
[[nodiscard]] Result<Claim> claim_in(const Response& response, const ClaimReference& reference,
                                     std::string_view node);

/// "status 403: resourceclaims … is forbidden …": the status and the message of a refusal.
[[nodiscard]] std::string refusal_text(const Response& response);

}  // namespace vgpu::kubernetes
