// SPDX-License-Identifier: MIT
//
// Who a VF belongs to. A claim gives a VF to an owner (a VM, a job, a person: any word) and has a
// generation that no other claim of that GPU ever has, so that a release that comes late cannot
// touch the next owner. Pure rules over values: the record is part of VfRecord and durable, the
// time and the facts about the world are handed in. Called by GpuModel.
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

/// Seconds of the LeaseClock, which are about those since 1970.
using UnixTime = std::chrono::seconds;

/// A claim that is in force, or nobody's.
struct OwnerRecord {
    std::string name{};            ///< empty: nobody
    std::uint64_t generation = 0;  ///< 0: nobody
    std::uint32_t lease_s = 0;     ///< 0: until it is released
    UnixTime since{0};             ///< or when its owner first came back after a boot
    UnixTime expires{0};           ///< 0: never
    bool is_kept = false;  ///< a reservation: ends by a release by hand alone, not with a domain

    bool operator==(const OwnerRecord&) const = default;
};

/// lease_s counts from now, also when a claim is renewed; 0: without an end.
struct ClaimRequest {
    std::string owner;
    /// Only if this is the claim in force; 0: only if there is none.
    std::optional<std::uint64_t> generation{};
    std::uint32_t lease_s = 0;
    std::optional<bool> is_kept{};  ///< nothing: as it is, and a new claim is not
};

/// What a claim is decided by besides the one in force.
/// Of one moment, seen by the GPU's thread; claim() looks at nothing else.
struct ClaimFacts {
    std::string target;  ///< "gpu0/vf3 ('train')", for messages
    UnixTime now{0};
    bool is_attached = false;
    std::uint64_t next_generation = 0;  ///< for a claim that begins
    UnixTime boot{0};                   ///< LeaseClock::boot()
};

/// A year; a claim without an end has lease 0.
inline constexpr std::uint32_t kMaxLeaseS = 366 * 24 * 3600;
/// Before that a consumer may still be on its way.
inline constexpr std::chrono::seconds kOwnerGrace{60};
/// A claimed VF that nobody has open for that long is looked at.
inline constexpr std::chrono::hours kLongUnattached{1};

/// 1 to 128 printable ASCII characters without blanks, quotes and backslashes.
/// InvalidOwner otherwise, with what is not printable replaced in the message.
[[nodiscard]] Result<> check_owner_name(std::string_view owner);

/// A claim that outlives the stops of its owner.
[[nodiscard]] bool is_reservation(const OwnerRecord& owner);

/// An expired claim stays in force until somebody else claims the VF, so that a consumer that is
/// late loses nothing by it.
[[nodiscard]] bool is_expired(const OwnerRecord& owner, UnixTime now);

/// "'libvirt:…' (claim 5)"
[[nodiscard]] std::string claim_text(const OwnerRecord& owner);

/// The claim in force afterwards. The owner itself renews its lease and keeps its generation;
/// another one is refused (Claimed) unless the lease is over and nobody has the VF open.
[[nodiscard]] Result<OwnerRecord> claim(const OwnerRecord& before, const ClaimRequest& request,
                                        const ClaimFacts& facts);

/// Success if the claim may end or there is none; Claimed or StaleClaim if it is another's.
[[nodiscard]] Result<> check_release(const OwnerRecord& before, std::string_view owner,
                                     std::uint64_t generation, std::string_view target);

/// What stands behind an owner's name, where that can be told.
/// A virtual machine of libvirt, by its UUID in lower case.
struct DomainOwner {
    std::string uuid;
};
struct OtherOwner {};
using OwnerForm = std::variant<OtherOwner, ProcessId, DomainOwner>;

/// "pid:N" or "pid:N:START" (clock ticks since boot): a process; GpuModel adds the start. A UUID,
/// alone or after "domain:" or "libvirt:": a virtual machine.
[[nodiscard]] OwnerForm form_of(std::string_view owner);

/// True for the same words, and for one process that is named with its start and without.
[[nodiscard]] bool is_same_owner(std::string_view one, std::string_view other);

/// unattached_for begins anew with each vgpud.
struct OrphanFacts {
    UnixTime now{0};
    bool is_attached = false;
    std::chrono::seconds unattached_for{0};  ///< as far as this vgpud knows
    std::optional<bool> exists{};            ///< nothing: that cannot be told
};

/// Why the claim looks forgotten; empty if it does not. Nothing is done about it here. One that is
/// kept is not, while its owner is away or does not use it; a process that has ended does not come
/// back.
/// Leases that are over, owners that are gone, VFs nobody opens: a person decides what that means.
[[nodiscard]] std::string orphan_cause(const OwnerRecord& owner, const OrphanFacts& facts);

}  // namespace vgpu::daemon
