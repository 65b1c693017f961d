// SPDX-License-Identifier: MIT
//
// Which VFs a consumer (a virtual machine) gets: pure rules over values, no claim is made here.
// A consumer names VFs or profiles; it gets all of them or none. What it has already counts first,
// so that asking again changes nothing; else a VF of a profile comes from the GPU with the least
// weight in use. Called by Assignments.
#pragma once

#include "daemon/service/manager.h"

#include <span>
#include <string>
#include <vector>

namespace vgpu::daemon {

/// One VF: the one of a name, or any that was made from a profile.
struct Want {
    enum class By { Name, Profile };
    By by = By::Name;
    std::string value;

    bool operator==(const Want&) const = default;
};

/// Most VFs that one consumer may ask for at once.
inline constexpr std::size_t kMostWants = 16;

enum class Availability {
    Free,
    Own,           ///< the consumer has it
    OwnOpen,       ///< the same, and a client (its last life) has it open
    Scrubbing,     ///< soon free
    Claimed,       ///< another's
    Open,          ///< nobody's, but a client has it open
    NotInService,  ///< without resources, stopped, in quarantine …
};

/// One VF as one consumer may have it, from the last snapshot: a claim may still be refused, and
/// then the choice is made again.
struct Candidate {
    Target target;
    std::string name;
    std::string profile;
    /// Of its GPU's load, by which profiles are spread.
    std::uint32_t weight = 0;
    Availability availability = Availability::Free;
    std::string why;         ///< it cannot be had: "belongs to 'libvirt:…' (claim 4)"
    bool is_orphan = false;  ///< claimed, and the claim looks forgotten
    UnixTime owned_since{0};
};

/// Why nothing was chosen.
struct Refusal {
    Error error;
    bool may_pass = false;  ///< it is only a matter of time
};

/// OutOfRange if a consumer asks for so many VFs.
[[nodiscard]] Result<> check_wants(std::size_t count);

/// "name"/"profile" and a value, as they came; OutOfRange or UnknownOption if it is neither.
[[nodiscard]] Result<Want> want_of(const std::string& by, const std::string& value);

/// All VFs there are, as `owner` may have them. VFs in `reserved` are being claimed by somebody
/// else.
[[nodiscard]] std::vector<Candidate> candidates_of(const Manager& manager, const std::string& owner,
                                                   const std::set<Target>& reserved, UnixTime now);

/// One VF for each of `wants`, in their order.
/// NoMatchingVf, Claimed, WrongState or NoSuchVf, for the first of `wants` that cannot be had.
/// Names are served before profiles.
[[nodiscard]] tl::expected<std::vector<Target>, Refusal> choose(
    std::span<const Want> wants, std::span<const Candidate> candidates);

}  // namespace vgpu::daemon
