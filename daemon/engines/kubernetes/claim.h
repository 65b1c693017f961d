// SPDX-License-Identifier: MIT
//
// Claim: the devices of this host that Kubernetes has allocated to a ResourceClaim. Only devices of
// this driver (kDriver in names.h) count. These pure functions read a Claim from an answer of the
// API server. In this file, a claim is a ResourceClaim.
#pragma once

#include "daemon/engines/kubernetes/ports.h"

#include <string>
#include <string_view>
#include <vector>

namespace vgpu::kubernetes {

/// Identifies a claim, in requests of the kubelet.
struct ClaimReference {
    std::string name_space;
    std::string name;  ///< a later claim may have the same name
    std::string uid;   ///< UUID that no other claim ever has

    bool operator==(const ClaimReference&) const = default;
};

/// A device that Kubernetes has allocated to a claim.
struct AllocatedDevice {
    std::string request;  ///< "gpu"; "gpu/small" for the alternative "small" of the request "gpu"
    std::string device;   ///< "gpu0-vf3"

    bool operator==(const AllocatedDevice&) const = default;
};

/// The part of a ResourceClaim that this driver serves.
struct Claim {
    ClaimReference reference;
    std::string pod_claim;  ///< if the claim was made from a ResourceClaimTemplate, its name in the
                            ///< pod's list of claims; else empty
    std::vector<AllocatedDevice> devices;
};

/// "default/train"
[[nodiscard]] std::string text_of(const ClaimReference& reference);

/// OutOfRange unless all members have the form that Kubernetes prescribes. Check each reference
/// before use, because its members become parts of paths.
[[nodiscard]] Result<> check_reference(const ClaimReference& reference);

/// Path of the claim on the API server.
[[nodiscard]] std::string path_of(const ClaimReference& reference);

/// The name of a request without the alternative: "gpu" for "gpu/small".
[[nodiscard]] std::string base_request(const std::string& request);

/// Whether a claim exists.
enum class Existence {
    Exists,   ///< the API server has a claim with this name and uid
    Gone,     ///< the API server has no claim with this name, or has one with another uid
    Unknown,  ///< the answer shows neither: an error, or another API version
};

/// Whether the claim exists, from the answer to a GET of path_of(). An answer with status 404 means
/// Gone only if it names this claim, because the API server also returns 404 for an unknown path.
[[nodiscard]] Existence existence_in(const Response& response, const ClaimReference& reference);

/// Reads the claim from the answer to a GET of path_of(). `node`: the name of this host in
/// Kubernetes, which is also the name of its pool of devices. Errors:
///
///   NoSuchVf        the claim is gone
///   WrongState      the claim has no device of this driver, has a device of another host, or
///                   requests administrative access
///   UnknownOption   the claim has parameters for this driver
///   System          the answer is an error, cannot be read, or has names that Kubernetes does not
///                   allow
[[nodiscard]] Result<Claim> claim_in(const Response& response, const ClaimReference& reference,
                                     std::string_view node);

/// Status and message of an answer that refuses a request: "status 403: resourceclaims … is
/// forbidden …".
[[nodiscard]] std::string refusal_text(const Response& response);

}  // namespace vgpu::kubernetes
