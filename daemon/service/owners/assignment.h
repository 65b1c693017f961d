// SPDX-License-Identifier: MIT
//
// Chooses the VFs that a consumer (a VM or a job) gets. Pure rules; makes no claim. A consumer
// requests VFs by name or profile and gets all of them or none. VFs that the consumer already has
// come first, so that repeating a request changes nothing. Other VFs of a profile come from the GPU
// with the least weight in use.
#pragma once

#include "daemon/service/manager.h"

#include <span>
#include <string>
#include <vector>

namespace vgpu::daemon {

struct VfSelector {
    enum class By { Name, Profile };
    By by = By::Name;
    std::string value;

    bool operator==(const VfSelector&) const = default;
};

/// Limit of VFs per request.
inline constexpr std::size_t kMaxSelectors = 16;

/// Whether one consumer may get a VF.
enum class Availability {
    Free,
    Own,           ///< the consumer has claimed the VF
    OwnOpen,       ///< the consumer has claimed the VF, but its earlier run still has it open
    Scrubbing,     ///< the VF is being scrubbed or reset; it may be available soon
    Claimed,       ///< another owner has claimed the VF, or is claiming it
    Open,          ///< the VF has no owner, but a client has it open
    NotInService,  ///< the VF is without resources, stopped, in quarantine …
};

/// A VF of the last snapshot, with its availability for one consumer. The snapshot may be old: if a
/// claim is refused, Assignments chooses again.
struct Candidate {
    Target target;
    std::string name;
    std::string profile;
    /// The load of a GPU is the sum of these weights of its VFs in use. choose() takes VFs of a
    /// profile from the GPU with the least load.
    std::uint32_t weight = 0;
    Availability availability = Availability::Free;
    std::string why;         ///< why not available: "belongs to 'libvirt:…' (claim 4)"
    bool is_orphan = false;  ///< true if the VF is claimed, but the claim looks forgotten
    UnixTime owned_since{0};
};

struct Refusal {
    Error error;
    bool waiting_may_help = false;  ///< true if a suitable VF may be available soon
};

/// OutOfRange unless `count` is 1 to kMaxSelectors.
[[nodiscard]] Result<> check_selector_count(std::size_t count);

/// `by`: "name" or "profile", else UnknownOption. InvalidName if `value` is no valid name or
/// profile.
[[nodiscard]] Result<VfSelector> selector_of(const std::string& by, const std::string& value);

/// All VFs with their availability for `owner`. `reserved`: VFs that other requests are claiming.
[[nodiscard]] std::vector<Candidate> candidates_of(const Manager& manager, const std::string& owner,
                                                   const std::set<Target>& reserved, UnixTime now);

/// One VF for each element of `selectors`. NoMatchingVf, Claimed, WrongState, NoSuchVf or
/// AmbiguousName for the first element without an available VF. Names are served before profiles.
[[nodiscard]] tl::expected<std::vector<Target>, Refusal> choose(
    std::span<const VfSelector> selectors, std::span<const Candidate> candidates);

}  // namespace vgpu::daemon
