// SPDX-License-Identifier: MIT
//
// GpuModel: owners of VFs. Applies the rules of ownership.h and makes the results durable. Begins
// the scrubs that ends of claims require. Finds claims whose owner no longer exists (orphans).
#include "daemon/service/gpu/gpu.h"

#include <fmt/format.h>
#include <algorithm>

namespace vgpu::daemon {

namespace {

/// Finds out which owners exist. Reading /proc to find VMs is expensive, so has() does so at most
/// once, and only for an owner that is a VM.
class ExistingOwners {
public:
    explicit ExistingOwners(const OwnerPort* owners) : owners_(owners) {}

    /// Whether the owner exists; none if unknown, as for an owner that is neither process nor VM.
    std::optional<bool> has(std::string_view owner) {
        if (owners_ == nullptr) return {};
        const OwnerForm form = form_of(owner);
        if (const auto* process = std::get_if<ProcessId>(&form))
            return owners_->process_exists(*process);
        const auto* domain = std::get_if<DomainOwner>(&form);
        if (domain == nullptr) return {};
        if (!domains_) domains_.emplace(owners_->running_domains());
        if (!*domains_) return {};
        return (*domains_)->contains(domain->uuid);
    }

private:
    const OwnerPort* owners_;
    /// The running domains, once asked for; none in it: unknown.
    std::optional<std::optional<std::set<std::string>>> domains_;
};

/// Adds the start time to an owner "pid:N", because a later process with that id is not the owner.
std::string with_start_time(const std::string& owner, const OwnerPort* owners) {
    const OwnerForm form = form_of(owner);
    const auto* process = std::get_if<ProcessId>(&form);
    if (owners == nullptr || process == nullptr || process->start_time != 0) return owner;
    const auto start_time = owners->start_time_of(process->pid);
    return start_time ? fmt::format("pid:{}:{}", process->pid, *start_time) : owner;
}

}  // namespace

std::string GpuModel::describe_name(std::uint32_t vf) const {
    return fmt::format("{}/vf{} ('{}')", id_, vf, vfs_.at(vf).defined.spec.name);
}

Result<std::uint64_t> GpuModel::claim(std::uint32_t vf, const ClaimRequest& request) {
    TRY_VOID(ports_.store.writable(id_));
    TRY_VOID(check_known(vf));
    TRY_VOID(check_in_service(vf));
    TRY_VOID(check_defined(vf));
    GpuRecord record = record_.get();
    VfRecord& one = record_in(record, vf);
    if (one.is_releasing)
        return fail(ErrorId::WrongState, fmt::format("{} is being destroyed", describe_name(vf)));
    if (one.next)
        return fail(
            ErrorId::WrongState,
            fmt::format("{} is being scrubbed and is available afterwards", describe_name(vf)));
    const OwnerRecord before = one.owner;
    ClaimRequest full = request;
    full.owner = with_start_time(request.owner, ports_.owners);
    TRY(one.owner, daemon::claim(one.owner, full,
                                 {.target = describe_name(vf),
                                  .now = ports_.store.leases().now(),
                                  .is_attached = vfs_.at(vf).active.is_attached,
                                  .next_generation = record.claims + 1,
                                  .boot = ports_.store.leases().boot()}));
    const bool is_taken_over = !before.name.empty() && before.name != one.owner.name;
    if (is_taken_over && one.spec.assignment_policy.scrubs_on_release)
        return scrub_before_claim(vf, record, before);
    // No generation is used twice on this GPU, so that a late release cannot end a newer claim.
    record.claims = std::max(record.claims, one.owner.generation);
    Vf& shown = vfs_.at(vf);
    const bool is_new = shown.defined.owner.generation != one.owner.generation;
    TRY_VOID(commit(record));
    if (is_new) shown.unattached_since.reset();
    probe_owner(shown, {}, ports_.clock.now());
    return one.owner.generation;
}

/// Ends the claim `before`, whose lease is over, and requires a scrub, because the VRAM has the
/// data of the former owner. Returns the error for the new claim, which is possible only after the
/// scrub.
tl::unexpected<Error> GpuModel::scrub_before_claim(std::uint32_t vf, GpuRecord record,
                                                   const OwnerRecord& before) {
    VfRecord& one = record.vfs.at(vf);
    one.owner = {};
    require_scrub(one);
    if (const auto kept = commit(record); !kept) return tl::make_unexpected(kept.error());
    probe_owner(vfs_.at(vf), {}, ports_.clock.now());
    return fail(ErrorId::WrongState, fmt::format("{}/vf{}: the lease of {} is over; the VF is "
                                                 "being scrubbed and is available afterwards",
                                                 id_, vf, claim_text(before)));
}

Result<> GpuModel::release(std::uint32_t vf, const std::string& owner, std::uint64_t generation,
                           AfterRelease after) {
    TRY_VOID(ports_.store.writable(id_));
    TRY_VOID(check_known(vf));
    TRY_VOID(check_owner_name(owner));
    GpuRecord record = record_.get();
    const auto one = record.vfs.find(vf);
    if (one == record.vfs.end()) return {};
    TRY_VOID(check_release(one->second.owner, owner, generation, describe_name(vf)));
    const bool scrubs =
        after != AfterRelease::Keep || one->second.spec.assignment_policy.scrubs_on_release;
    const bool was_owned = !one->second.owner.name.empty();
    Vf& shown = vfs_.at(vf);
    const bool is_same_vf = shown.defined.spec.uuid == one->second.spec.uuid;
    if (after != AfterRelease::OwnerStopped || !outlives_stops(one->second.owner))
        one->second.owner = {};
    if (scrubs && was_owned && is_same_vf) require_scrub(one->second);
    TRY_VOID(commit(record));
    probe_owner(shown, {}, ports_.clock.now());
    return {};
}

/// Adds a required scrub to `record`, in the form of a resize to the same resources. While the
/// scrub is on record, no vgpud gives the VF to a new owner. After a loss of the PF core, vgpud
/// drops the recorded resize of a VF that was not released (reconcile.h), but keeps a required
/// scrub. Does nothing for a VF that is ABSENT or already SCRUBBING.
void GpuModel::require_scrub(VfRecord& record) const {
    const VfFacts& active = vfs_.at(record.vf).active;
    const bool has_vram = active.state != VGPU_PF_VF_ABSENT && active.state != VGPU_PF_VF_SCRUBBING;
    if (!has_vram) return;
    if (!record.next)
        record.next = VfNext{.resources = record.spec.resources, .replaces = active.generation};
    record.next->needs_scrub = true;
}

/// Begins required scrubs once the device reports that the client is gone, or after kDetachTimeout.
void GpuModel::scrub_released(Nanoseconds now) {
    if (state_ != GpuState::Ok || now < scrub_begin_at_ || ports_.store.is_read_only(id_)) return;
    const auto is_required = [](const Vf& one) {
        return action_for(&one.defined, one.active) == VfAction::Recreate;
    };
    for (auto& [vf, one] : vfs_)
        if (!is_required(one)) one.released_at.reset();
    for (const std::uint32_t vf : numbers_where(vfs_, is_required)) {
        Vf& one = vfs_.at(vf);
        if (!one.released_at) one.released_at = now;
        const bool is_open = one.active.is_attached;
        if (is_open && now - *one.released_at < kDetachTimeout) continue;
        if (is_open)
            emit(vf, EventKind::Revoked,
                 fmt::format("{} was released {} s ago and a client still has it open; that client "
                             "loses the VF",
                             describe_name(vf), kDetachTimeout.count() / 1'000'000'000));
        if (const auto begun = begin_scrub(vf); !begun) {
            scrub_begin_at_ = now + kRefresh;
            emit(vf, EventKind::NotScrubbed, begun.error().cause);
        }
        if (!pf_.is_connected()) return;
    }
}

/// Sends RELEASE, which begins the scrub. After a failure, scrub_released() tries again later.
Result<> GpuModel::begin_scrub(std::uint32_t vf) {
    Vf& one = vfs_.at(vf);
    const auto released = pf_.ask(&Backend::release, vf, one.active.generation);
    if (!released)
        return fail(released.error().id, fmt::format("{} could not be scrubbed: {}",
                                                     describe_name(vf), released.error().cause));
    one.released_at.reset();
    refresh(vf);
    refresh_members(ports_.clock.now());
    return {};
}

/// Restarts scrubs that the PF core has abandoned after three failures: the VF is then SCRUBBING
/// with a last_error, and RELEASE restarts the scrub (docs/vf-lifecycle.md). The VF stays out of
/// use until the scrub succeeds.
void GpuModel::retry_scrubs(Nanoseconds now) {
    if (state_ != GpuState::Ok || now < rescrub_at_ || ports_.store.is_read_only(id_)) return;
    const auto has_failed = [](const Vf& one) {
        return one.active.state == VGPU_PF_VF_SCRUBBING &&
               one.active.last_error != VGPU_PF_REASON_NONE;
    };
    for (const std::uint32_t vf : numbers_where(vfs_, has_failed)) {
        const VfFacts one = vfs_.at(vf).active;
        rescrub_at_ = now + kRestoreRetry;
        std::string why = fmt::format("its VRAM could not be scrubbed ({}); vgpud tries again",
                                      reason_name(one.last_error));
        const auto begun = pf_.ask(&Backend::release, vf, one.generation);
        if (!begun) why += ", but the attempt was refused: " + begun.error().cause;
        emit(vf, EventKind::NotScrubbed, fmt::format("{}: {}", describe_name(vf), why));
        record_refusal(vf, std::move(why));
        if (!pf_.is_connected()) return;
        refresh(vf);
    }
}

/// Checks a request that ends an owner's work: Claimed if the VF has an owner other than `by` whose
/// lease is not over, unless the request uses force.
Result<> GpuModel::check_owner(std::uint32_t vf, std::string_view verb, Force force,
                               const std::string& by) const {
    const OwnerRecord& owner = vfs_.at(vf).defined.owner;
    if (owner.name.empty() || is_same_owner(owner.name, by) || force == Force::Yes) return {};
    if (is_expired(owner, ports_.store.leases().now())) return {};
    return fail(ErrorId::Claimed, fmt::format("{} belongs to {}; {} it on behalf of the owner "
                                              "(option 'owner') or with option 'force'",
                                              describe_name(vf), claim_text(owner), verb));
}

/// Returns an empty set for drivers for which the result does not matter, because reading /proc is
/// expensive.
std::set<std::uint32_t> GpuModel::vfs_of_running_domains() const {
    std::set<std::uint32_t> vfs;
    if ((*abilities_)[Change::Vfs].needs != Needs::AllIdle) return vfs;
    ExistingOwners existing(ports_.owners);
    const UnixTime now = ports_.store.leases().now();
    for (const auto& [vf, one] : vfs_) {
        const OwnerRecord& owner = one.defined.owner;
        if (runs_domain(owner, existing.has(owner.name), now)) vfs.insert(vf);
    }
    return vfs;
}

bool GpuModel::has_running_domain(const OwnerRecord& owner) const {
    return runs_domain(owner, ExistingOwners(ports_.owners).has(owner.name),
                       ports_.store.leases().now());
}

void GpuModel::find_orphans(Nanoseconds now) {
    if (now < owners_at_) return;
    owners_at_ = now + kOwnerCheck;
    const bool has_lease = std::any_of(vfs_.begin(), vfs_.end(), [](const auto& entry) {
        return entry.second.defined.owner.lease_s > 0;
    });
    if (has_lease) ports_.store.record_time(id_);
    ExistingOwners existing(ports_.owners);
    for (auto& [vf, one] : vfs_) probe_owner(one, existing.has(one.defined.owner.name), now);
}

void GpuModel::probe_owner(Vf& one, std::optional<bool> exists, Nanoseconds now) {
    const OwnerRecord& owner = one.defined.owner;
    const bool is_attached = one.active.is_attached;
    if (is_attached || owner.name.empty())
        one.unattached_since.reset();
    else if (!one.unattached_since)
        one.unattached_since = now;
    const Nanoseconds since = one.unattached_since.value_or(now);
    const std::string cause = orphan_cause(
        owner, {.now = ports_.store.leases().now(),
                .is_attached = is_attached,
                .unattached_for = std::chrono::duration_cast<std::chrono::seconds>(now - since),
                .exists = exists});
    if (cause == one.orphan) return;
    one.orphan = cause;
    if (!cause.empty()) emit(one.defined.vf, EventKind::Orphan, cause);
}

}  // namespace vgpu::daemon
