// SPDX-License-Identifier: MIT
//
// The rules of claims. A claim gives a VF to an owner. The owner is a name: of a VM, a job, a
// person or anything else. Each claim has a generation that no other claim of its GPU has, so that
// a late release of one claim cannot end the next claim. Pure; time and facts are arguments. Called
// by GpuModel.
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

/// A reading of the LeaseClock (state/lease_clock.h) in seconds; roughly the time since 1970.
using UnixTime = std::chrono::seconds;

/// The claim in force of a VF, if any.
struct OwnerRecord {
    std::string name{};            ///< name of the owner; empty: there is no claim
    std::uint64_t generation = 0;  ///< 0: there is no claim
    std::uint32_t lease_s = 0;     ///< length of the lease; 0: no limit
    UnixTime since{0};             ///< time of the claim; the first renewal after a reboot
                                   ///< updates it
    UnixTime expires{0};           ///< end of the lease; 0: never
    bool is_persistent = false;    ///< true if the claim stays when its owner stops; has no effect
                                   ///< if the owner is a process (outlives_stops())

    bool operator==(const OwnerRecord&) const = default;
};

/// A request for a claim or for its renewal.
struct ClaimRequest {
    std::string owner;
    /// The generation that the claim in force must have, else StaleClaim; 0: there must be no
    /// claim; none: not checked.
    std::optional<std::uint64_t> generation{};
    std::uint32_t lease_s = 0;            ///< length of the lease from now on; 0: no limit
    std::optional<bool> is_persistent{};  ///< none: unchanged, and false for a new claim
};

/// The other input of claim(), read in the GPU's thread at one moment.
struct ClaimFacts {
    std::string target;  ///< "gpu0/vf3 ('train')", for messages
    UnixTime now{0};
    bool is_attached = false;           ///< true if a client has the VF open
    std::uint64_t next_generation = 0;  ///< generation of a new claim
    UnixTime boot{0};                   ///< start of this boot, as LeaseClock::boot()
};

/// Longest lease, 366 days. A lease_s of 0 means no limit.
inline constexpr std::uint32_t kMaxLeaseS = 366 * 24 * 3600;
/// For this long after its claim, an owner does not count as gone, because the VFs of a VM are
/// claimed before the process of the VM exists.
inline constexpr std::chrono::seconds kOwnerGrace{60};
/// A claimed VF may look forgotten if no client opens it for this long (orphan_cause()).
inline constexpr std::chrono::hours kLongUnattached{1};

/// InvalidOwner unless `owner` has 1 to 128 printable ASCII characters, none of them a blank, a
/// quote or a backslash.
[[nodiscard]] Result<> check_owner_name(std::string_view owner);

/// True if the claim stays in force when its owner stops: a persistent claim, unless the owner is a
/// process.
[[nodiscard]] bool outlives_stops(const OwnerRecord& owner);

/// True if the lease is over. The claim then stays in force until a release or the claim of another
/// owner, so its owner may still renew it.
[[nodiscard]] bool is_expired(const OwnerRecord& owner, UnixTime now);

/// The owner and the generation for messages: "'libvirt:…' (claim 5)".
[[nodiscard]] std::string claim_text(const OwnerRecord& owner);

/// Makes or renews a claim; returns the claim that is then in force. A renewal keeps the
/// generation. Fails with Claimed if `before` is a claim of another owner, unless its lease is over
/// and no client has the VF open. InvalidOwner as check_owner_name(), StaleClaim as in
/// ClaimRequest.
[[nodiscard]] Result<OwnerRecord> claim(const OwnerRecord& before, const ClaimRequest& request,
                                        const ClaimFacts& facts);

/// Success if `owner` may end the claim `before`, or if there is no claim. StaleClaim if
/// `generation` is not that of `before`; Claimed if `before` belongs to another owner. `target`:
/// the VF, for messages.
[[nodiscard]] Result<> check_release(const OwnerRecord& before, std::string_view owner,
                                     std::uint64_t generation, std::string_view target);

/// A domain of libvirt.
struct DomainOwner {
    std::string uuid;  ///< in lower case
};
/// One life of a job of an engine (here a scheduler of many hosts, such as Slurm). Each start of
/// the job is a life with its own number, so that the late end of one life does not end the claims
/// of the next life. Only the engine knows whether a life is over.
struct EngineOwner {
    std::string engine;   ///< "slurm"
    std::string cluster;  ///< "lab"
    std::string id;       ///< of the job: "17"
    std::uint32_t life = 0;
};
struct OtherOwner {};
using OwnerForm = std::variant<OtherOwner, ProcessId, DomainOwner, EngineOwner>;

/// Longest name of an EngineOwner in bytes: the path of a socket contains the name, and must fit in
/// a socket address (107 bytes).
inline constexpr std::size_t kMaxEngineOwner = 72;

/// The kind of an owner, by the form of its name:
///   pid:N, pid:N:START                 a process; START: clock ticks since boot, added by GpuModel
///   UUID, domain:UUID, libvirt:UUID    a VM
///   ENGINE:CLUSTER:ID.LIFE             a life of a job, such as "slurm:lab:17.0"
///   any other text                     OtherOwner
/// ENGINE consists of a-z 0-9, CLUSTER and ID of A-Z a-z 0-9 _ -, LIFE is a number, and the whole
/// name has at most kMaxEngineOwner bytes.
[[nodiscard]] OwnerForm form_of(std::string_view owner);

/// True if both names are equal, or if both name the same process id and at least one of them has
/// no start time.
[[nodiscard]] bool is_same_owner(std::string_view one, std::string_view other);

/// True if the owner is a domain that runs or may run (`exists` is true or none), or that may be
/// about to start, because its claim is newer than kOwnerGrace. False if the lease is over.
/// `exists`: whether the domain runs; none: unknown.
[[nodiscard]] bool runs_domain(const OwnerRecord& owner, std::optional<bool> exists, UnixTime now);

/// The other input of orphan_cause().
struct OrphanFacts {
    UnixTime now{0};
    bool is_attached = false;                ///< true if a client has the VF open
    std::chrono::seconds unattached_for{0};  ///< how long no client has had the VF open, as far as
                                             ///< this vgpud has seen
    std::optional<bool> exists{};            ///< whether the owner exists; none: unknown
};

/// Why the claim looks forgotten; empty if it does not. There are three reasons: the lease is over;
/// the owner is gone (after kOwnerGrace); no client has had the VF open for kLongUnattached. The
/// third reason does not apply to a claim with a lease or to an owner that is known to exist. Only
/// the first reason applies if outlives_stops(), or if the owner is an EngineOwner, because only
/// the engine knows whether that owner is gone.
[[nodiscard]] std::string orphan_cause(const OwnerRecord& owner, const OrphanFacts& facts);

}  // namespace vgpu::daemon
