// SPDX-License-Identifier: MIT
//
// Assignments: gives VFs to consumers that start and end, such as libvirt's VMs. assign() chooses
// VFs (assignment.h), claims them, grants access to their sockets and links the sockets into the
// consumer's directory; it does so for all requested VFs or for none. unassign() ends the
// consumer's claims, except persistent ones, and scrubs the VFs. If a suitable VF may be
// available soon, such as after a scrub, a request waits for up to its wait_ms, and delays no other
// request.
//
//   assign     choose -> claim each (GPU thread) -> grant -> link -> answer
//                 ^--- if another request was first, or waiting may help: choose again later
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
    std::string path;              ///< where the consumer opens the socket; empty: no path
};

/// The user and group that may open the sockets of an owner's VFs.
struct SocketUser {
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
};

/// Calls `done` in the main loop. Claims are durable; domain names and waiting requests are not. A
/// function whose comment lists no options accepts none.
class Assignments final : public TimedPart {
public:
    /// Time between two attempts of a waiting request.
    static constexpr Nanoseconds kPollInterval = std::chrono::milliseconds(5);
    /// Limit of wait_ms, because a libvirt hook waits for the answer, and libvirt for the hook.
    static constexpr std::uint64_t kMaxWaitMs = 10'000;
    static constexpr std::uint64_t kDefaultWaitMs = 5'000;
    /// A request fails when it has lost a chosen VF this many times, for example because another
    /// request claimed or destroyed the VF first.
    static constexpr int kTries = 4;

    Assignments(Manager& manager, VmSocketsPort& sockets, const Clock& clock)
        : manager_(manager), sockets_(sockets), clock_(clock) {}

    /// Options: wait_ms, owner_name, uid and gid (as in grant()). On success, also ends the owner's
    /// claims on other VFs, as unassign() does. Fails as choose(), Manager::claim() or
    /// VmSocketsPort, or with Cancelled if unassign() is called meanwhile.
    void assign(const std::string& owner, const std::vector<VfSelector>& selectors,
                const Options& options, Done<std::vector<AssignedVf>> done);
    /// Lets `uid` and `gid` open the sockets of the VFs of `owner`. NoSuchVf if `owner` has no VF;
    /// System if a socket cannot be changed.
    Result<> grant(const std::string& owner, std::uint32_t uid, std::uint32_t gid,
                   const Options& options);
    /// Ends the claims of `owner`, except persistent ones, scrubs all VFs of `owner`, and cancels
    /// the owner's requests. Answers with the number of VFs, or with the last error.
    void unassign(const std::string& owner, const Options& options, Done<std::uint32_t> done);
    /// Call it for an owner that runs. Claims the VFs that have no owner and to which the paths of
    /// `owner` lead, as after a loss of vgpud's state. Option: owner_name. Answers with the number
    /// of VFs that `owner` has.
    void adopt(const std::string& owner, const Options& options, Done<std::uint32_t> done);

    /// Returns true if the owner is a domain that is known to be off. Assignments then ends the
    /// owner's claims from before the host's boot.
    using IsOff = std::function<bool(const std::string& owner)>;
    void set_is_off(IsOff is_off) { is_off_ = std::move(is_off); }
    /// Call it when the results of IsOff may have changed. The next step() checks all VFs again.
    void on_domains_changed() { std::fill(followed_.begin(), followed_.end(), 0); }

    void step() override;
    [[nodiscard]] std::optional<Nanoseconds> next_step() const override;
    /// Drops waiting requests and does not answer them.
    void end() { requests_.clear(); }

    /// At this number of domain names, a new name makes Assignments forget the names of owners
    /// without a VF.
    static constexpr std::size_t kMaxDomainNames = 5120;
    /// A readable name of the owner, such as the domain's; empty if unknown. Not durable.
    [[nodiscard]] std::string domain_name_of(const std::string& owner) const;
    /// `name`: empty to forget the name.
    void set_domain_name(const std::string& owner, const std::string& name);
    /// True if set_domain_name() was called since the last call.
    [[nodiscard]] bool take_new_domain_names() {
        return std::exchange(has_new_domain_names_, false);
    }

private:
    /// A request of assign(). The callbacks of its claims share it.
    struct Request {
        std::string owner;
        std::vector<VfSelector> selectors;
        std::optional<SocketUser> user;
        Nanoseconds deadline{0};  ///< end of the wait for VFs that may be available soon
        Done<std::vector<AssignedVf>> done;
        int tries = 0;              ///< how often the request has lost a chosen VF (kTries)
        bool is_claiming = false;   ///< true while GPU threads claim the chosen VFs
        bool is_cancelled = false;  ///< true if unassign() has cancelled the request
        bool is_over = false;       ///< true if `done` was called; step() removes the request
        std::vector<Target> chosen;
        /// VFs that the owner already had, and the generations of their claims.
        std::map<Target, std::uint64_t> owned_before;
        std::vector<AssignedVf> assigned;  ///< chosen VFs that are claimed so far
    };
    /// A VF of a consumer, as a snapshot showed it.
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
    void abandon_cancelled(const std::shared_ptr<Request>& request);
    void undo_claims(Request& request);
    Result<> link(Request& request);
    Result<> record_domain_name(const std::string& owner, const OptionReader& options);
    void forget_unused_domain_names();
    void unassign_others(const Request& request);
    void unassign_one(const Target& target, const OwnedVf& owned, Done<> done);
    [[nodiscard]] static OwnedVf owned_vf(const VfView& view);
    [[nodiscard]] OwnedVfs vfs_of(const std::string& owner) const;
    /// Revokes a VF's sockets when its claim ends without unassign(), such as by release(), by a
    /// claim of another owner, or by destroy().
    void follow_claims();
    void follow(const GpuHost& gpu);
    /// Adds the VF to opened_ as the snapshot shows it. First calls keep_or_revoke() for an entry
    /// that the VF already has.
    void record_opened(const Target& target);
    /// Ends a claim from before the boot, and scrubs the VF, if the owner is a domain that is off,
    /// the claim is not persistent and no client has the VF open. When the host went down, nobody
    /// called unassign() for the domain.
    void release_left_behind(const Target& target, const VfView& view);
    /// Revokes the sockets if the claim of `owned` has ended. Returns true if `owned` must stay in
    /// opened_: the consumer still has the VF, or the VF has no owner, so that adopt() may need the
    /// consumer's paths. Otherwise removes the consumer's paths to the VF and returns false.
    bool keep_or_revoke(const Target& target, OwnedVf& owned);
    /// The record of a VF, if any. Takes it from the state file if the snapshot has no such VF,
    /// because the claims of a GPU that is not in service stay in force.
    [[nodiscard]] std::optional<VfRecord> record_of(const Target& target) const;
    /// Fails with PfLost if `owner` has a claim on record for a VF that no snapshot shows.
    [[nodiscard]] Result<> check_all_seen(const std::string& owner) const;

    Manager& manager_;
    VmSocketsPort& sockets_;
    const Clock& clock_;
    std::deque<std::shared_ptr<Request>> requests_;  ///< oldest first
    std::set<Target> reserved_;                      ///< VFs that a request is claiming
    OwnedVfs opened_;                                ///< VFs to which an owner may have access
    std::vector<std::uint64_t> followed_;  ///< by GPU: last snapshot that follow() has seen
    std::map<std::string, std::string> domain_names_;
    bool has_new_domain_names_ = false;
    IsOff is_off_;
    /// By VF: the earliest time of the next attempt of release_left_behind().
    std::map<Target, Nanoseconds> left_behind_at_;
};

}  // namespace vgpu::daemon
