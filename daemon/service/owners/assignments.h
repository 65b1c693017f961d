// SPDX-License-Identifier: MIT
//
// Assignments: gives VFs to consumers that start and end, such as libvirt's VMs. assign() chooses
// (assignment.h), claims, grants and links all VFs of a consumer, or none. unassign() ends the
// consumer's claims, except persistent ones, and scrubs the VFs. A request for VFs that are being
// scrubbed waits up to its wait_ms, and delays no other request.
//
//   assign     choose -> claim each (GPU thread) -> grant -> link -> answer
//                 ^--- another request was first: choose again; VFs being scrubbed: try later
//   unassign   end each claim and require the VF's scrub (durable) -> answer; then scrub
// Runs in the main loop only.
#pragma once

#include "daemon/ports/timed_part.h"
#include "daemon/ports/vm_sockets_port.h"
#include "daemon/service/owners/assignment.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

namespace vgpu::daemon {

struct AssignedVf {
    Target target;
    std::uint64_t generation = 0;  ///< generation of the claim
    std::string path;              ///< the consumer's path of the socket; empty: none
};

/// The user and group that may open the sockets of an owner's VFs.
struct SocketUser {
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
};

/// Answers come in the main loop. Claims are durable; domain names and waiting requests are not.
class Assignments final : public TimedPart {
public:
    /// Time between two attempts of a waiting request.
    static constexpr Nanoseconds kPollInterval = std::chrono::milliseconds(5);
    /// Limit of wait_ms, because a libvirt hook waits for the answer, and libvirt for the hook.
    static constexpr std::uint64_t kMaxWaitMs = 10'000;
    static constexpr std::uint64_t kDefaultWaitMs = 5'000;
    /// Limit of attempts when other requests claim the chosen VFs first.
    static constexpr int kTries = 4;

    Assignments(Manager& manager, VmSocketsPort& sockets, const Clock& clock)
        : manager_(manager), sockets_(sockets), clock_(clock) {}

    /// Options: wait_ms, owner_name, uid and gid (as in grant()). On success, also ends the claims
    /// of all other VFs of `owner`, as unassign() does.
    void assign(const std::string& owner, const std::vector<VfSelector>& selectors,
                const Options& options, Done<std::vector<AssignedVf>> done);
    /// Lets `uid` and `gid` open the sockets of the VFs of `owner`. NoSuchVf if `owner` has no VF.
    Result<> grant(const std::string& owner, std::uint32_t uid, std::uint32_t gid,
                   const Options& options);
    /// Ends the claims of all VFs of `owner`, and cancels its waiting request. A persistent claim
    /// lasts, but the VF is scrubbed. Answers with the number of VFs, or with the last error.
    void unassign(const std::string& owner, const Options& options, Done<std::uint32_t> done);
    /// Call it after a loss of state, if `owner` runs and its paths lead to VFs without an owner.
    /// Claims these VFs again. Option: owner_name. Answers with the number of VFs that `owner` has.
    void adopt(const std::string& owner, const Options& options, Done<std::uint32_t> done);

    /// Returns true if an owner's domain is off. Used to end claims from before a boot.
    using IsOff = std::function<bool(const std::string& owner)>;
    void set_is_off(IsOff is_off) { is_off_ = std::move(is_off); }
    /// Call when answers of IsOff may have changed.
    void on_domains_changed() { std::fill(followed_.begin(), followed_.end(), 0); }

    void step() override;
    [[nodiscard]] std::optional<Nanoseconds> next_step() const override;
    /// Drops waiting requests and does not answer them.
    void end() { requests_.clear(); }

    /// Limit of kept domain names. Names of owners of VFs are kept beyond this limit.
    static constexpr std::size_t kMaxDomainNames = 5120;
    /// A readable name of the owner; empty if unknown. Not durable.
    [[nodiscard]] std::string domain_name_of(const std::string& owner) const;
    void set_domain_name(const std::string& owner, const std::string& name);
    [[nodiscard]] bool take_new_domain_names() {
        return std::exchange(has_new_domain_names_, false);
    }

private:
    /// A request of assign(). Lives until the GPU threads have answered all its claims, even when
    /// the request is over.
    struct Request {
        std::string owner;
        std::vector<VfSelector> selectors;
        std::optional<SocketUser> user;
        Nanoseconds deadline{0};
        Done<std::vector<AssignedVf>> done;
        int tries = 0;
        bool is_claiming = false;  ///< true while GPU threads claim the chosen VFs
        bool is_cancelled = false;
        bool is_over = false;
        std::vector<Target> chosen;
        std::set<Target> owned_before;     ///< VFs that the owner already had
        std::vector<AssignedVf> assigned;  ///< chosen VFs that are claimed so far
    };
    /// A consumer's VF in a snapshot.
    struct OwnedVf {
        Uuid uuid{};
        std::string owner;
        std::uint64_t generation = 0;  ///< generation of the claim
        VfSockets sockets;
        bool is_revoked = false;  ///< true if keep_or_revoke() has revoked `sockets`
    };
    using OwnedVfs = std::map<Target, OwnedVf>;

    void try_choose(const std::shared_ptr<Request>& request);
    void claim_next(const std::shared_ptr<Request>& request);
    void on_claimed(const std::shared_ptr<Request>& request, const Target& target,
                    const Result<std::uint64_t>& generation);
    void finish(const std::shared_ptr<Request>& request);
    void abandon(const std::shared_ptr<Request>& request, const Error& error);
    void undo_claims(Request& request);
    Result<> link(Request& request);
    Result<> record_domain_name(const std::string& owner, const OptionReader& options);
    void forget_unused_domain_names();
    void unassign_others(const Request& request);
    void unassign_one(const Target& target, const OwnedVf& owned, Done<> done);
    [[nodiscard]] static OwnedVf owned_vf(const VfView& view);
    [[nodiscard]] OwnedVfs vfs_of(const std::string& owner) const;
    /// Revokes the consumer's sockets when a claim ends without unassign(): by a manual release, a
    /// takeover or a destroy.
    void follow_claims();
    void follow(const GpuHost& gpu);
    /// Adds the VF to opened_ as the snapshot shows it. Calls keep_or_revoke() for an older entry.
    void record_opened(const Target& target);
    /// Ends the claim and scrubs the VF if the claim is from before the boot and not persistent,
    /// and the owner is a domain that is off. No event reported the end of that domain.
    void release_left_behind(const Target& target, const VfView& view);
    /// Revokes the sockets if the claim of `owned` has ended. True if `owned` must stay in opened_:
    /// the consumer still has the VF, or the VF has no owner, so that adopt() may need the paths.
    /// Else removes the consumer's paths to the VF.
    bool keep_or_revoke(const Target& target, OwnedVf& owned);
    /// The record of a VF, if any. Also finds VFs of a GPU that is not in service, because claims
    /// are durable.
    [[nodiscard]] std::optional<VfRecord> record_of(const Target& target) const;
    /// PfLost if `owner` has a claim on record for a VF that no snapshot shows.
    [[nodiscard]] Result<> check_all_seen(const std::string& owner) const;

    Manager& manager_;
    VmSocketsPort& sockets_;
    const Clock& clock_;
    std::deque<std::shared_ptr<Request>> requests_;  ///< oldest first
    std::set<Target> reserved_;                      ///< VFs that a request is claiming
    OwnedVfs opened_;                                ///< VFs that a consumer may open
    std::vector<std::uint64_t> followed_;  ///< by GPU: last snapshot that follow() has seen
    std::map<std::string, std::string> domain_names_;
    bool has_new_domain_names_ = false;
    IsOff is_off_;
};

}  // namespace vgpu::daemon
