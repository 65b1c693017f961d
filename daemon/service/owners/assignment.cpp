// SPDX-License-Identifier: MIT
#include "daemon/service/owners/assignment.h"

#include "daemon/service/config/configuration.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

namespace vgpu::daemon {

namespace {

bool is_usable(std::uint32_t state) {
    return state == VGPU_PF_VF_PROVISIONED || state == VGPU_PF_VF_READY ||
           state == VGPU_PF_VF_RUNNING;
}

bool is_takeable(Availability availability) {
    return availability == Availability::Free || availability == Availability::Own;
}

bool is_soon_takeable(Availability availability) {
    return availability == Availability::Scrubbing || availability == Availability::OwnOpen;
}

/// True if the VF counts as load of its GPU.
bool is_in_use(Availability availability) {
    return availability == Availability::Own || availability == Availability::OwnOpen ||
           availability == Availability::Claimed || availability == Availability::Open;
}

/// True if the VF's assignment mode 'none' forbids its use, although the VF has a socket.
bool is_withheld(const VfView& view) {
    return view.record.spec.assignment_policy.assignment_mode == AssignmentMode::None &&
           !view.socket.empty();
}

/// The availability of a VF for `owner`, and why it is not available. Apart from a destroy, checks
/// temporary causes first, so that a request waits if that may help.
std::pair<Availability, std::string> availability_for(const VfView& view, const std::string& owner,
                                                      bool is_reserved, UnixTime now) {
    const OwnerRecord& owned = view.record.owner;
    const bool is_open = view.active.is_attached;
    const bool is_own = is_same_owner(owned.name, owner);
    if (view.record.is_releasing) return {Availability::NotInService, "is being destroyed"};
    if (view.record.next || view.active.state == VGPU_PF_VF_SCRUBBING)
        return {Availability::Scrubbing, "is being scrubbed"};
    if (view.active.state == VGPU_PF_VF_RESETTING)
        return {Availability::Scrubbing, "is being reset"};
    // A domain has the same owner name at each start, so the client may belong to an earlier run. A
    // life of a job starts only once, so the client belongs to this life.
    const bool is_of_job = std::holds_alternative<EngineOwner>(form_of(owner));
    if (is_own && is_open && !is_of_job) return {Availability::OwnOpen, "is still open"};
    if (!is_own && !owned.name.empty() && (!is_expired(owned, now) || is_open))
        return {Availability::Claimed, "belongs to " + claim_text(owned)};
    if (!is_usable(view.active.state))
        return {Availability::NotInService,
                view.condition.empty() ? fmt::format("is {}", vf_state_name(view.active.state))
                                       : view.condition};
    if (is_reserved) return {Availability::Claimed, "is being given to another owner"};
    if (is_withheld(view))
        return {Availability::NotInService, "is not available (assignment mode 'none')"};
    if (is_own) return {Availability::Own, ""};
    if (is_open) return {Availability::Open, "has no owner, but a client has it open"};
    return {Availability::Free, ""};
}

/// Names the claims that look forgotten, for the end of an error; empty if there are none.
std::string orphans_text(std::span<const Target> orphans) {
    std::vector<std::string> paths;
    for (const Target& target : orphans) paths.push_back(path_of(target));
    if (paths.empty()) return "";
    return fmt::format("; claims that look forgotten: {} ('vgpuctl release --orphans' ends them)",
                       fmt::join(paths, ", "));
}

Refusal refusal(ErrorId id, std::string cause, bool waiting_may_help = false) {
    return {.error = {id, std::move(cause)}, .waiting_may_help = waiting_may_help};
}

/// Chooses one VF after another and never revises a choice. Call by_name() before by_profile().
/// Then no other order would find more VFs, because selectors of one profile are interchangeable.
class Chooser {
public:
    explicit Chooser(std::span<const Candidate> candidates) : candidates_(candidates) {
        for (const Candidate& one : candidates)
            // sums weights, because they show how much of the engine is in use
            load_[one.target.gpu] += is_in_use(one.availability) ? one.weight : 0;
    }

    tl::expected<Target, Refusal> by_name(const std::string& name) {
        const auto has_name = [&name](const Candidate& one) { return one.name == name; };
        const auto at = std::find_if(candidates_.begin(), candidates_.end(), has_name);
        if (at == candidates_.end()) return tl::make_unexpected(no_such_name(name));
        std::vector<Target> all;
        for (const Candidate& one : candidates_)
            if (has_name(one)) all.push_back(one.target);
        if (all.size() > 1)
            return tl::make_unexpected(Refusal{.error = ambiguous(name, all).value()});
        if (taken_.contains(at->target))
            return tl::make_unexpected(refusal(
                ErrorId::NoMatchingVf, fmt::format("VF '{}' is requested more than once", name)));
        if (is_takeable(at->availability)) return take(*at);
        const bool waiting_may_help = is_soon_takeable(at->availability);
        return tl::make_unexpected(refusal(
            at->availability == Availability::Claimed ? ErrorId::Claimed : ErrorId::WrongState,
            fmt::format("{} ('{}') {}{}", path_of(at->target), name, at->why,
                        orphans_text(std::vector<Target>(at->is_orphan ? 1 : 0, at->target))),
            waiting_may_help));
    }

    tl::expected<Target, Refusal> by_profile(const std::string& profile) {
        const Candidate* best = nullptr;
        for (const Candidate& one : candidates_)
            if (one.profile == profile && is_takeable(one.availability) &&
                !taken_.contains(one.target) && (best == nullptr || rank(one) < rank(*best)))
                best = &one;
        if (best != nullptr) return take(*best);
        return tl::make_unexpected(none_available(profile));
    }

private:
    Target take(const Candidate& one) {
        taken_.insert(one.target);
        if (!is_in_use(one.availability)) load_[one.target.gpu] += one.weight;
        return one.target;
    }

    /// Rank of a VF; smaller is better. The consumer's own VFs are first, the oldest claim first;
    /// then VFs of the GPU with the least load.
    [[nodiscard]] std::tuple<bool, UnixTime, std::uint64_t, Target> rank(
        const Candidate& one) const {
        const bool is_own = one.availability == Availability::Own;
        return {!is_own, is_own ? one.owned_since : UnixTime{0}, load_.at(one.target.gpu),
                one.target};
    }

    [[nodiscard]] Refusal no_such_name(const std::string& name) const {
        std::vector<std::string_view> known;
        for (const Candidate& one : candidates_) known.emplace_back(one.name);
        const std::string shown = name.substr(0, 64);
        return refusal(ErrorId::NoSuchVf,
                       fmt::format("there is no VF '{}'{}", shown, did_you_mean(shown, known)));
    }

    /// The error if no VF of `profile` is available. Counts the VFs by reason, so that an operator
    /// sees whether to wait or to define more VFs.
    [[nodiscard]] Refusal none_available(const std::string& profile) const {
        std::map<std::string, int> reasons;
        std::set<std::string> profiles;
        std::vector<Target> orphans;
        int total = 0;
        bool waiting_may_help = false;
        for (const Candidate& one : candidates_) {
            if (!one.profile.empty()) profiles.insert(one.profile);
            if (one.profile != profile) continue;
            ++total;
            if (one.is_orphan) orphans.push_back(one.target);
            waiting_may_help = waiting_may_help || is_soon_takeable(one.availability);
            ++reasons[taken_.contains(one.target) ? "already given to this owner"
                                                  : describe(one.availability)];
        }
        const std::string shown = profile.substr(0, 64);
        if (total == 0)
            return refusal(ErrorId::NoMatchingVf,
                           fmt::format("there is no VF of profile '{}'; {}", shown,
                                       profiles.empty() ? std::string("no VF has a profile")
                                                        : fmt::format("existing profiles: {}",
                                                                      fmt::join(profiles, ", "))));
        std::vector<std::string> counted;
        for (const auto& [reason, count] : reasons)
            counted.push_back(fmt::format("{} {}", count, reason));
        return refusal(ErrorId::NoMatchingVf,
                       fmt::format("none of the {} VFs of profile '{}' is free: {}{}", total, shown,
                                   fmt::join(counted, ", "), orphans_text(orphans)),
                       waiting_may_help);
    }

    static std::string describe(Availability availability) {
        switch (availability) {
            case Availability::Scrubbing:
                return "being scrubbed";
            case Availability::OwnOpen:
                return "still open";
            case Availability::Claimed:
                return "claimed";
            case Availability::Open:
                return "opened by a client without a claim";
            case Availability::NotInService:
                return "not in service";
            case Availability::Free:
            case Availability::Own:
                break;
        }
        return "free";
    }

    std::span<const Candidate> candidates_;
    std::set<Target> taken_;
    std::map<std::string, std::uint64_t> load_;  ///< by GPU: sum of the weights of VFs in use
};

}  // namespace

Result<> check_selector_count(std::size_t count) {
    if (count > 0 && count <= kMaxSelectors) return {};
    return fail(ErrorId::OutOfRange,
                fmt::format("{} VFs requested; 1 to {} are allowed", count, kMaxSelectors));
}

Result<VfSelector> selector_of(const std::string& by, const std::string& value) {
    if (by != "name" && by != "profile")
        return fail(
            ErrorId::UnknownOption,
            fmt::format("a VF is requested by 'name' or 'profile', not '{}'", by.substr(0, 64)));
    const bool is_valid = by == "name" ? is_valid_name(value) : is_valid_label(value);
    if (!is_valid)
        return fail(ErrorId::InvalidName,
                    fmt::format("'{}' is not a valid {} of a VF", value.substr(0, 64),
                                by == "name" ? "name" : "profile"));
    return VfSelector{.by = by == "name" ? VfSelector::By::Name : VfSelector::By::Profile,
                      .value = value};
}

std::vector<Candidate> candidates_of(const Manager& manager, const std::string& owner,
                                     const std::set<Target>& reserved, UnixTime now) {
    std::vector<Candidate> all;
    for (const auto& gpu : manager.gpus()) {
        const auto seen = gpu->snapshot();
        for (const auto& [vf, view] : seen->vfs) {
            const Target target{.gpu = gpu->id(), .vf = vf};
            auto [availability, why] =
                availability_for(view, owner, reserved.contains(target), now);
            if (is_takeable(availability) && seen->gpu.state != GpuState::Ok) {
                availability = Availability::NotInService;
                why = fmt::format("is on {}, which is {}", gpu->id(), name_of(seen->gpu.state));
            } else if (const auto writable = manager.store().writable(gpu->id());
                       (is_takeable(availability) || is_soon_takeable(availability)) && !writable) {
                availability = Availability::NotInService;
                why = fmt::format("is on {}, which cannot be changed: {}", gpu->id(),
                                  writable.error().cause);
            }
            all.push_back(
                {.target = target,
                 .name = view.record.spec.name,
                 .profile = view.record.spec.profile,
                 .weight = view.record.spec.weight,
                 .availability = availability,
                 .why = std::move(why),
                 .is_orphan = availability == Availability::Claimed && !view.orphan.empty(),
                 .owned_since = view.record.owner.since,
                 .owned_generation = view.record.owner.generation});
        }
    }
    return all;
}

tl::expected<std::vector<Target>, Refusal> choose(std::span<const VfSelector> selectors,
                                                  std::span<const Candidate> candidates) {
    Chooser chooser(candidates);
    std::vector<Target> chosen(selectors.size());
    // names first, because a profile must not take a VF that another selector names
    for (const VfSelector::By by : {VfSelector::By::Name, VfSelector::By::Profile})
        for (std::size_t i = 0; i < selectors.size(); ++i) {
            if (selectors[i].by != by) continue;
            auto one = by == VfSelector::By::Name ? chooser.by_name(selectors[i].value)
                                                  : chooser.by_profile(selectors[i].value);
            if (!one) return tl::make_unexpected(std::move(one).error());
            chosen[i] = *one;
        }
    return chosen;
}

}  // namespace vgpu::daemon
