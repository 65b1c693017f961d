// SPDX-License-Identifier: MIT
#include "daemon/service/owners/assignments.h"

#include "daemon/service/words.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>

namespace vgpu::daemon {

namespace {

constexpr std::string_view kVfSocketEnd = ".sock";
constexpr std::size_t kMaxDomainNameBytes = 128;

VfSockets sockets_of(const VfView& view) {
    if (!view.socket.ends_with(kVfSocketEnd)) return {.vfio_user = view.socket, .agent = ""};
    const std::string stem = view.socket.substr(0, view.socket.size() - kVfSocketEnd.size());
    return {.vfio_user = view.socket, .agent = stem + ".agent.sock"};
}

/// The directory of the owner's paths (VmSocketsPort); none for an owner that has no paths.
std::optional<std::string> owner_dir_of(const std::string& owner) {
    const OwnerForm form = form_of(owner);
    if (const auto* domain = std::get_if<DomainOwner>(&form)) return "vm/" + domain->uuid;
    if (std::holds_alternative<EngineOwner>(form)) return "owner/" + owner;
    return {};
}

Result<std::optional<SocketUser>> socket_user(const OptionReader& options) {
    constexpr Range kIds{0, UINT32_MAX - 1};
    TRY(const auto uid, options.number("uid", kIds));
    TRY(const auto gid, options.number("gid", kIds));
    if (uid.has_value() != gid.has_value())
        return fail(ErrorId::OutOfRange, "'uid' and 'gid' are given together or not at all");
    if (!uid) return std::nullopt;
    return SocketUser{.uid = static_cast<std::uint32_t>(*uid),
                      .gid = static_cast<std::uint32_t>(*gid)};
}

/// Shortens a domain's name and makes it printable, because the name may contain anything.
std::string printable_domain_name(const std::string& name) {
    return printable(start_of(name, kMaxDomainNameBytes));
}

}  // namespace

Assignments::OwnedVf Assignments::owned_vf(const VfView& view) {
    return {.uuid = view.record.spec.uuid,
            .owner = view.record.owner.name,
            .generation = view.record.owner.generation,
            .sockets = sockets_of(view)};
}

Assignments::OwnedVfs Assignments::vfs_of(const std::string& owner) const {
    OwnedVfs all;
    for (const auto& gpu : manager_.gpus()) {
        const auto seen = gpu->snapshot();
        for (const auto& [vf, view] : seen->vfs)
            if (is_same_owner(view.record.owner.name, owner))
                all[{.gpu = gpu->id(), .vf = vf}] = owned_vf(view);
    }
    return all;
}

/// Before vgpud has attached to a GPU, the GPU's snapshot has no VFs, but the claims on record are
/// in force.
Result<> Assignments::check_all_seen(const std::string& owner) const {
    for (const auto& gpu : manager_.gpus()) {
        const auto seen = gpu->snapshot();
        for (const auto& [vf, record] : manager_.store().gpu(gpu->id()).vfs)
            if (is_same_owner(record.owner.name, owner) && !seen->has_vf(vf))
                return fail(ErrorId::PfLost,
                            fmt::format("{}/vf{} ('{}') is claimed by '{}', but {} is not in "
                                        "service: {}; the claim stays",
                                        gpu->id(), vf, record.spec.name, owner, gpu->id(),
                                        seen->gpu.message));
    }
    return {};
}

// --- assign

void Assignments::assign(const std::string& owner, const std::vector<VfSelector>& selectors,
                         const Options& options, Done<std::vector<AssignedVf>> done) {
    or_refuse(done, [&]() -> Result<> {
        constexpr std::array<std::string_view, 4> kKnown{"wait_ms", "owner_name", "uid", "gid"};
        const OptionReader reader(options);
        TRY_VOID(reader.only(kKnown));
        TRY_VOID(check_owner_name(owner));
        TRY(const auto wait_ms, reader.number("wait_ms", {0, kMaxWaitMs}));
        TRY(const auto user, socket_user(reader));
        TRY_VOID(check_selector_count(selectors.size()));
        TRY_VOID(record_domain_name(owner, reader));
        auto request = std::make_shared<Request>();
        request->owner = owner;
        request->selectors = selectors;
        request->user = user;
        request->deadline =
            clock_.now() + std::chrono::milliseconds(wait_ms.value_or(kDefaultWaitMs));
        request->done = done;
        requests_.push_back(request);
        try_choose(request);
        return {};
    });
}

/// Reserves the chosen VFs until the request is answered, so that no other request chooses them.
void Assignments::try_choose(const std::shared_ptr<Request>& request) {
    const auto candidates =
        candidates_of(manager_, request->owner, reserved_, manager_.store().leases().now());
    const auto chosen = choose(request->selectors, candidates);
    if (!chosen) {
        const bool may_wait = chosen.error().waiting_may_help && clock_.now() < request->deadline;
        if (!may_wait) abandon(request, chosen.error().error);
        return;
    }
    request->chosen = *chosen;
    request->owned_before.clear();
    for (const Candidate& one : candidates)
        if (one.availability == Availability::Own)
            request->owned_before[one.target] = one.owned_generation;
    reserved_.insert(chosen->begin(), chosen->end());
    request->is_claiming = true;
    claim_next(request);
}

void Assignments::claim_next(const std::shared_ptr<Request>& request) {
    if (request->assigned.size() == request->chosen.size()) return finish(request);
    const Target target = request->chosen[request->assigned.size()];
    manager_.claim(target, request->owner, {},
                   [this, request, target](const Result<std::uint64_t>& generation) {
                       on_claimed(request, target, generation);
                   });
}

/// If another request has claimed or destroyed the VF meanwhile, step() chooses again (kTries).
void Assignments::on_claimed(const std::shared_ptr<Request>& request, const Target& target,
                             const Result<std::uint64_t>& generation) {
    if (generation) {
        request->assigned.push_back({.target = target, .generation = *generation, .path = ""});
        // the domain of a cancelled request is off, so it must not get another claim
        return request->is_cancelled ? abandon_cancelled(request) : claim_next(request);
    }
    undo_claims(*request);
    const ErrorId id = generation.error().id;
    const bool lost_race =
        id == ErrorId::Claimed || id == ErrorId::NoSuchVf || id == ErrorId::WrongState;
    if (!lost_race || request->is_cancelled || ++request->tries >= kTries)
        return abandon(request, generation.error());
}

void Assignments::finish(const std::shared_ptr<Request>& request) {
    // before link(), because record_opened() revokes the sockets of an earlier claim of the VF
    for (const Target& target : request->chosen) record_opened(target);
    if (const auto linked = link(*request); !linked) return abandon(request, linked.error());
    unassign_others(*request);
    for (const Target& target : request->chosen) reserved_.erase(target);
    request->is_over = true;
    request->done(request->assigned);
}

Result<> Assignments::link(Request& request) {
    std::vector<VfSockets> sockets;
    for (const AssignedVf& one : request.assigned) {
        const auto seen = manager_.find_gpu(one.target.gpu)->snapshot();
        sockets.push_back(seen->has_vf(one.target.vf) ? sockets_of(seen->vfs.at(one.target.vf))
                                                      : VfSockets{});
    }
    if (request.user)
        for (const VfSockets& one : sockets)
            TRY_VOID(sockets_.grant(one, request.user->uid, request.user->gid));
    const auto owner_dir = owner_dir_of(request.owner);
    if (!owner_dir) return {};
    TRY_VOID(sockets_.link(*owner_dir, sockets));
    for (std::size_t n = 0; n < sockets.size(); ++n)
        if (!sockets[n].vfio_user.empty())
            request.assigned[n].path = sockets_.path_of(*owner_dir, n);
    return {};
}

/// Releases the claims that the request has made. assign() has not yet answered, so no client uses
/// the VFs under these claims, and the VFs need no scrub.
void Assignments::undo_claims(Request& request) {
    for (const AssignedVf& one : request.assigned) {
        const auto before = request.owned_before.find(one.target);
        if (before == request.owned_before.end() || before->second != one.generation)
            manager_.release(one.target, request.owner, one.generation, {}, [](const Result<>&) {});
    }
    for (const Target& target : request.chosen) reserved_.erase(target);
    request.assigned.clear();
    request.chosen.clear();
    request.is_claiming = false;
}

void Assignments::abandon(const std::shared_ptr<Request>& request, const Error& error) {
    undo_claims(*request);
    request->is_over = true;
    request->done(tl::make_unexpected(error));
}

void Assignments::abandon_cancelled(const std::shared_ptr<Request>& request) {
    abandon(request, {ErrorId::Cancelled,
                      fmt::format("the VFs of '{}' were released meanwhile", request->owner)});
}

/// Ends the consumer's claims on VFs that `request` did not choose. Such claims are left from an
/// earlier run, for which nobody called unassign(). Spares VFs that a later request of the consumer
/// is claiming.
void Assignments::unassign_others(const Request& request) {
    for (const auto& [target, owned] : vfs_of(request.owner))
        if (std::find(request.chosen.begin(), request.chosen.end(), target) ==
                request.chosen.end() &&
            !reserved_.contains(target))
            unassign_one(target, owned, [](const Result<>&) {});
}

// --- grant

Result<> Assignments::grant(const std::string& owner, std::uint32_t uid, std::uint32_t gid,
                            const Options& options) {
    TRY_VOID(OptionReader(options).only({}));
    TRY_VOID(check_owner_name(owner));
    const auto owned = vfs_of(owner);
    if (owned.empty()) return fail(ErrorId::NoSuchVf, fmt::format("no VF belongs to '{}'", owner));
    for (const auto& [target, one] : owned) {
        record_opened(target);
        TRY_VOID(sockets_.grant(one.sockets, uid, gid));
    }
    return {};
}

// --- unassign

/// Revokes the sockets first, because a VM that is ending could open the VF between release and
/// scrub.
void Assignments::unassign_one(const Target& target, const OwnedVf& owned, Done<> done) {
    sockets_.revoke(owned.sockets);
    manager_.release_after_stop(target, owned.owner, owned.generation, done);
}

void Assignments::unassign(const std::string& owner, const Options& options,
                           Done<std::uint32_t> done) {
    if (const auto known = OptionReader(options).only({}); !known)
        return done(tl::make_unexpected(known.error()));
    if (const auto named = check_owner_name(owner); !named)
        return done(tl::make_unexpected(named.error()));
    for (const auto& request : requests_)
        if (is_same_owner(request->owner, owner) && !request->is_over) request->is_cancelled = true;
    if (const auto owner_dir = owner_dir_of(owner)) sockets_.unlink(*owner_dir);
    manager_.end_claims(owner);
    const auto owned = vfs_of(owner);
    struct Count {
        std::size_t left;
        std::uint32_t released = 0;
        std::optional<Error> error{};
    };
    const auto count = std::make_shared<Count>(Count{.left = owned.size()});
    if (const auto seen = check_all_seen(owner); !seen) count->error = seen.error();
    if (owned.empty())
        return done(count->error ? Result<std::uint32_t>(tl::make_unexpected(*count->error)) : 0u);
    for (const auto& [target, one] : owned)
        unassign_one(target, one, [count, done](const Result<>& result) {
            if (result)
                ++count->released;
            else
                count->error = result.error();
            if (--count->left > 0) return;
            if (count->error) return done(tl::make_unexpected(*count->error));
            done(count->released);
        });
}

// --- adopt

void Assignments::adopt(const std::string& owner, const Options& options,
                        Done<std::uint32_t> done) {
    constexpr std::array<std::string_view, 1> kKnown{"owner_name"};
    const OptionReader reader(options);
    Result<> checked = reader.only(kKnown);
    if (checked) checked = check_owner_name(owner);
    if (checked) checked = record_domain_name(owner, reader);
    if (!checked) return done(tl::make_unexpected(checked.error()));
    const auto owner_dir = owner_dir_of(owner);
    const auto linked = owner_dir ? sockets_.linked(*owner_dir) : std::vector<std::string>{};
    std::vector<Target> unowned;
    for (const auto& gpu : manager_.gpus()) {
        const auto seen = gpu->snapshot();
        for (const auto& [vf, view] : seen->vfs)
            if (view.record.owner.name.empty() && !view.socket.empty() &&
                std::find(linked.begin(), linked.end(), view.socket) != linked.end())
                unowned.push_back({.gpu = gpu->id(), .vf = vf});
    }
    const auto left = std::make_shared<std::size_t>(unowned.size());
    const auto answer = [this, owner, done] {
        done(static_cast<std::uint32_t>(vfs_of(owner).size()));
    };
    if (unowned.empty()) return answer();
    for (const Target& target : unowned)
        manager_.claim(target, owner, {}, [left, answer](const Result<std::uint64_t>&) {
            if (--*left == 0) answer();
        });
}

// --- claims that end in other ways

void Assignments::follow_claims() {
    const auto& gpus = manager_.gpus();
    followed_.resize(gpus.size());
    for (std::size_t i = 0; i < gpus.size(); ++i)
        if (gpus[i]->is_newer(followed_[i])) follow(*gpus[i]);
}

/// Adds the VFs of all owners to opened_, not only those that this vgpud has assigned: an earlier
/// vgpud may have granted sockets and made paths.
void Assignments::follow(const GpuHost& gpu) {
    auto at = opened_.lower_bound({.gpu = gpu.id(), .vf = 0});
    while (at != opened_.end() && at->first.gpu == gpu.id())
        at = keep_or_revoke(at->first, at->second) ? std::next(at) : opened_.erase(at);
    const auto seen = gpu.snapshot();
    for (const auto& [vf, view] : seen->vfs) {
        const Target target{.gpu = gpu.id(), .vf = vf};
        if (!view.record.owner.name.empty()) record_opened(target);
        if (seen->gpu.state == GpuState::Ok) release_left_behind(target, view);
    }
}

/// Never affects a domain that is starting: its VFs are reserved at first, and then claimed in this
/// boot. Waits kPause between two attempts for a VF, because a full disk makes a release fail.
void Assignments::release_left_behind(const Target& target, const VfView& view) {
    constexpr std::string_view kDomain = "libvirt:";
    const OwnerRecord& owner = view.record.owner;
    const bool is_left = owner.name.starts_with(kDomain) && !view.active.is_attached &&
                         owner.since <= manager_.store().leases().boot();
    if (!is_left || outlives_stops(owner) || reserved_.contains(target) || !is_off_ ||
        !is_off_(owner.name) || clock_.now() < left_behind_at_[target])
        return;
    constexpr std::chrono::seconds kPause{10};
    left_behind_at_[target] = clock_.now() + kPause;
    unassign_one(target, owned_vf(view), [this, target, owner](const Result<>& released) {
        if (released)
            manager_.emit(target, EventKind::ClaimEnded,
                          fmt::format("{} is from before the boot, and its domain is off; the VF "
                                      "was scrubbed and is free",
                                      claim_text(owner)));
    });
}

void Assignments::record_opened(const Target& target) {
    const auto seen = manager_.find_gpu(target.gpu)->snapshot();
    if (!seen->has_vf(target.vf)) return;
    if (const auto before = opened_.find(target); before != opened_.end())
        keep_or_revoke(target, before->second);
    opened_[target] = owned_vf(seen->vfs.at(target.vf));
}

bool Assignments::keep_or_revoke(const Target& target, OwnedVf& owned) {
    const auto record = record_of(target);
    const bool exists = record && record->spec.uuid == owned.uuid;
    if (exists && record->owner.generation == owned.generation) return true;
    if (!std::exchange(owned.is_revoked, true)) sockets_.revoke(owned.sockets);
    if (exists && (record->owner.name.empty() || is_same_owner(record->owner.name, owned.owner)))
        return true;
    if (const auto owner_dir = owner_dir_of(owned.owner))
        sockets_.unlink_vf(*owner_dir, owned.sockets);
    return false;
}

std::optional<VfRecord> Assignments::record_of(const Target& target) const {
    const auto seen = manager_.find_gpu(target.gpu)->snapshot();
    if (seen->has_vf(target.vf)) return seen->vfs.at(target.vf).record;
    const auto records = manager_.store().gpu(target.gpu).vfs;
    const auto at = records.find(target.vf);
    return at == records.end() ? std::nullopt : std::optional(at->second);
}

// --- time and names

void Assignments::step() {
    follow_claims();
    // Iterate over a copy, because a `done` may call assign().
    const auto requests = requests_;
    for (const auto& request : requests) {
        if (request->is_over || request->is_claiming) continue;
        if (request->is_cancelled)
            abandon_cancelled(request);
        else
            try_choose(request);
    }
    std::erase_if(requests_, [](const auto& request) { return request->is_over; });
}

std::optional<Nanoseconds> Assignments::next_step() const {
    if (requests_.empty()) return {};
    return clock_.now() + kPollInterval;
}

Result<> Assignments::record_domain_name(const std::string& owner, const OptionReader& options) {
    TRY(const auto domain_name, options.text("owner_name"));
    if (domain_name) set_domain_name(owner, *domain_name);
    return {};
}

void Assignments::set_domain_name(const std::string& owner, const std::string& name) {
    has_new_domain_names_ = true;
    if (name.empty()) {
        domain_names_.erase(owner);
        return;
    }
    if (domain_names_.size() >= kMaxDomainNames && !domain_names_.contains(owner))
        forget_unused_domain_names();
    domain_names_[owner] = printable_domain_name(name);
}

/// Forgets the domain names of owners without a VF, because nothing shows these names. A later
/// assign(), or libvirt, sends the name again.
void Assignments::forget_unused_domain_names() {
    std::set<std::string> owners;
    for (const auto& [id, gpu] : manager_.store().records())
        for (const auto& [vf, record] : gpu.vfs) owners.insert(record.owner.name);
    std::erase_if(domain_names_,
                  [&owners](const auto& one) { return !owners.contains(one.first); });
}

std::string Assignments::domain_name_of(const std::string& owner) const {
    const auto at = domain_names_.find(owner);
    return at == domain_names_.end() ? "" : at->second;
}

}  // namespace vgpu::daemon
