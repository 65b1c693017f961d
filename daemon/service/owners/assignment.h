// SPDX-License-Identifier: MIT
//
// Chooses the VFs that a consumer (a VM or a job) gets; makes no claim. A consumer requests VFs by
// name or profile and gets all of them or none. VFs that the consumer already has come first, so
// that a repeated request changes nothing. Other VFs of a profile come from the GPU with the least
// load, that is the smallest sum of the weights of its VFs in use.
#pragma once

#include "daemon/service/manager.h"

#include <span>
#include <string>
#include <vector>

namespace vgpu::daemon {

/// Requests one VF: the VF with the name `value`, or any VF of the profile `value`.
struct VfSelector {
    enum class By { Name, Profile };
    By by = By::Name;
    std::string value;

    bool operator==(const VfSelector&) const = default;
};

/// Limit of VFs per request: all VFs of four GPUs. Each VF costs a write of a state file, and the
/// bridges to schedulers wait only a few seconds.
inline constexpr std::size_t kMaxSelectors = 256;

/// Whether one consumer may get a VF.
enum class Availability {
    Free,       ///< unclaimed, or the lease of another owner's claim is over; not open
    Own,        ///< the consumer has claimed the VF
    OwnOpen,    ///< the consumer has claimed the VF, but its earlier run still has it open
    Scrubbing,  ///< the VF is being scrubbed, resized or reset; it may be available soon
    Claimed,    ///< another owner has claimed the VF, or another request is claiming it
    Open,       ///< the VF has no owner, but a client has it open
    /// The VF has no resources, is being destroyed, is paused, stopped or in quarantine, or has the
    /// assignment mode none; or its GPU is not in service, or the GPU's state file is read-only.
    NotInService,
};

/// A VF of the last snapshot, with its availability for one consumer. The snapshot may be old: if a
/// claim is refused, Assignments chooses again.
struct Candidate {
    Target target;
    std::string name;
    std::string profile;
    std::uint32_t weight = 0;  ///< part of its GPU's load if the VF is in use
    Availability availability = Availability::Free;
    std::string why;          ///< why not available: "belongs to 'libvirt:…' (claim 4)"; or empty
    bool is_orphan = false;   ///< true if the availability is Claimed and the claim looks forgotten
    UnixTime owned_since{0};  ///< as OwnerRecord::since (vf/ownership.h); 0: no claim
    std::uint64_t owned_generation = 0;  ///< as OwnerRecord::generation
};

/// Why choose() has failed.
struct Refusal {
    Error error;
    bool waiting_may_help = false;  ///< true if a suitable VF may be available soon
};

/// Fails with OutOfRange unless `count` is 1 to kMaxSelectors.
[[nodiscard]] Result<> check_selector_count(std::size_t count);

/// Makes a selector from texts. Fails with UnknownOption unless `by` is "name" or "profile", or
/// with InvalidName if `value` is not a valid name of a VF or profile.
[[nodiscard]] Result<VfSelector> selector_of(const std::string& by, const std::string& value);

/// All VFs with their availability for `owner`. `reserved`: VFs that other requests are claiming.
[[nodiscard]] std::vector<Candidate> candidates_of(const Manager& manager, const std::string& owner,
                                                   const std::set<Target>& reserved, UnixTime now);

/// Returns one VF for each element of `selectors`, in the order of `selectors`. Chooses VFs by name
/// first, then by profile. Fails for the first element without an available VF: with NoSuchVf,
/// AmbiguousName, Claimed, WrongState or NoMatchingVf.
[[nodiscard]] tl::expected<std::vector<Target>, Refusal> choose(
    std::span<const VfSelector> selectors, std::span<const Candidate> candidates);

}  // namespace vgpu::daemon
