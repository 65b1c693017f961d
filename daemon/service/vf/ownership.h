// SPDX-License-Identifier: MIT
//
// Owners of VFs. A claim gives a VF to an owner. Any word can be the name of an owner, such as a
// VM, a job or a person. The generation of a claim is unique on its GPU, so that a late release
// cannot end the next claim. Pure rules; time and facts are arguments. Called by GpuModel.
#pragma once

#include "daemon/ports/process_port.h"
#include "daemon/ports/result.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace vgpu::daemon {

/// Seconds since 1970, by the LeaseClock.
using UnixTime = std::chrono::seconds;

/// The claim in force, if any.
struct OwnerRecord {
    std::string name{};            ///< empty: no owner
    std::uint64_t generation = 0;  ///< 0: no claim
    std::uint32_t lease_s = 0;     ///< 0: without limit
    UnixTime since{0};             ///< time of the claim, or of its first renewal after a boot
    UnixTime expires{0};           ///< 0: never
    bool is_persistent = false;    ///< true if the claim lasts when the owner stops, except for a
                                   ///< process (outlives_stops())

    bool operator==(const OwnerRecord&) const = default;
};

/// A request for a claim or its renewal. The lease of lease_s begins now; 0: without limit.
struct ClaimRequest {
    std::string owner;
    /// The generation that the claim in force must have, else StaleClaim; 0: there must be no
    /// claim; none: not checked.
    std::optional<std::uint64_t> generation{};
    std::uint32_t lease_s = 0;
    std::optional<bool> is_persistent{};  ///< none: unchanged; false for a new claim
};

/// All other input of claim(). The facts are of one moment, read in the GPU's thread.
struct ClaimFacts {
    std::string target;  ///< "gpu0/vf3 ('train')", for messages
    UnixTime now{0};
    bool is_attached = false;
    std::uint64_t next_generation = 0;  ///< generation of a new claim
    UnixTime boot{0};                   ///< start of this boot, as LeaseClock::boot()
};

/// Longest lease: a year. A lease of 0 has no limit.
inline constexpr std::uint32_t kMaxLeaseS = 366 * 24 * 3600;
/// For this long after a claim, an owner without a process does not count as gone, because VFs are
/// claimed for a VM before its process exists.
inline constexpr std::chrono::seconds kOwnerGrace{60};
/// A claimed VF looks forgotten if no client opens it for this long.
inline constexpr std::chrono::hours kLongUnattached{1};

/// InvalidOwner unless `owner` is 1 to 128 printable ASCII characters without blanks, quotes and
/// backslashes.
[[nodiscard]] Result<> check_owner_name(std::string_view owner);

/// True if the claim outlives stops of its owner.
[[nodiscard]] bool outlives_stops(const OwnerRecord& owner);

/// True if the lease is over. The claim still stays in force until another owner claims the VF, so
/// a late renewal loses nothing.
[[nodiscard]] bool is_expired(const OwnerRecord& owner, UnixTime now);

/// "'libvirt:…' (claim 5)"
[[nodiscard]] std::string claim_text(const OwnerRecord& owner);

/// Makes or renews a claim; returns the claim in force afterwards. A renewal keeps the generation.
/// Another owner gets Claimed, unless the lease is over and no client has the VF open. InvalidOwner
/// as check_owner_name(), StaleClaim as in ClaimRequest.
[[nodiscard]] Result<OwnerRecord> claim(const OwnerRecord& before, const ClaimRequest& request,
                                        const ClaimFacts& facts);

/// Success if the claim may end, or if there is no claim; else Claimed or StaleClaim.
[[nodiscard]] Result<> check_release(const OwnerRecord& before, std::string_view owner,
                                     std::uint64_t generation, std::string_view target);

/// A domain of libvirt.
struct DomainOwner {
    std::string uuid;  ///< in lower case
};
/// One life of a job. The engine is a scheduler of many hosts, such as Slurm. A job that the engine
/// starts again has the next life, so that a late end of an earlier life ends no claim of this
/// life. Only the engine knows whether a life is over.
struct EngineOwner {
    std::string engine;
    std::string cluster;
    std::string id;
    std::uint32_t life = 0;
};
struct OtherOwner {};
using OwnerForm = std::variant<OtherOwner, ProcessId, DomainOwner, EngineOwner>;

/// Longest EngineOwner: the paths of its sockets must fit in a socket's address (107 bytes).
inline constexpr std::size_t kMaxEngineOwner = 72;

/// The kind of an owner. "pid:N" or "pid:N:START" (clock ticks since boot) is a process; GpuModel
/// adds the start time. A UUID, alone or after "domain:" or "libvirt:", is a VM.
/// "ENGINE:CLUSTER:ID.LIFE", such as "slurm:lab:17.0", is a life of a job: ENGINE of a-z and 0-9,
/// CLUSTER and ID of A-Z a-z 0-9 _ -, LIFE a number, together at most kMaxEngineOwner bytes.
/// Any other text is an OtherOwner.
[[nodiscard]] OwnerForm form_of(std::string_view owner);

/// True if both are the same text, or if both are the same process id and at least one has no start
/// time.
[[nodiscard]] bool is_same_owner(std::string_view one, std::string_view other);

/// True if the owner is a domain that runs, may run, or has claimed so recently that it may be
/// about to start. False if the owner's lease is over. `exists`: whether the domain runs; none:
/// unknown.
[[nodiscard]] bool runs_domain(const OwnerRecord& owner, std::optional<bool> exists, UnixTime now);

struct OrphanFacts {
    UnixTime now{0};
    bool is_attached = false;
    std::chrono::seconds unattached_for{0};  ///< measured from the start of this vgpud at the
                                             ///< earliest
    std::optional<bool> exists{};            ///< whether the owner exists; none: unknown
};

/// Why the claim looks forgotten (lease over, owner gone, VF not open for long); empty if it does
/// not. An unopened VF matters only for a claim without a lease, and only if the owner is not known
/// to exist. If outlives_stops() is true, a claim looks forgotten only when its lease is over. The
/// same holds for a claim of an EngineOwner, because only the engine knows whether that owner is
/// gone.
[[nodiscard]] std::string orphan_cause(const OwnerRecord& owner, const OrphanFacts& facts);

}  // namespace vgpu::daemon
