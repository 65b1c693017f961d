// SPDX-License-Identifier: MIT
#include "daemon/service/vf/ownership.h"

#include "daemon/service/words.h"
#include "text/number.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>

namespace vgpu::daemon {

namespace {

constexpr std::size_t kMaxOwner = 128;

bool is_owner_letter(char letter) {
    constexpr std::string_view kRefused = "'\"\\";
    return letter > ' ' && letter <= '~' && kRefused.find(letter) == std::string_view::npos;
}

/// Parses "N" or "N:START"; none if `text` has another form.
std::optional<ProcessId> parse_process(std::string_view text) {
    const std::size_t colon = text.find(':');
    const auto pid = text::number_in<int>(text.substr(0, colon));
    if (pid.value_or(0) <= 0) return {};
    if (colon == std::string_view::npos) return ProcessId{.pid = *pid};
    const auto start_time = text::number_in<std::uint64_t>(text.substr(colon + 1));
    if (!start_time) return {};
    return ProcessId{.pid = *pid, .start_time = *start_time};
}

bool consists_of(std::string_view text, std::string_view marks, bool allows_capitals) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [&](char letter) {
        return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') ||
               (allows_capitals && letter >= 'A' && letter <= 'Z') ||
               marks.find(letter) != std::string_view::npos;
    });
}

std::optional<EngineOwner> parse_engine_owner(std::string_view text) {
    constexpr std::string_view kMarks = "_-";
    const std::size_t first = text.find(':');
    const std::size_t second = text.find(':', first + 1);
    const std::size_t dot = text.rfind('.');
    if (text.size() > kMaxEngineOwner || second == std::string_view::npos ||
        first == std::string_view::npos || dot == std::string_view::npos || dot < second)
        return {};
    const std::string_view engine = text.substr(0, first);
    const std::string_view cluster = text.substr(first + 1, second - first - 1);
    const std::string_view id = text.substr(second + 1, dot - second - 1);
    const auto life = text::number_in<std::uint32_t>(text.substr(dot + 1));
    if (!life || !consists_of(engine, "", false) || !consists_of(cluster, kMarks, true) ||
        !consists_of(id, kMarks, true))
        return {};
    return EngineOwner{.engine = std::string(engine),
                       .cluster = std::string(cluster),
                       .id = std::string(id),
                       .life = *life};
}

OwnerRecord renew(OwnerRecord owner, const ClaimRequest& request, UnixTime now) {
    owner.lease_s = request.lease_s;
    owner.expires = request.lease_s == 0 ? UnixTime{0} : now + UnixTime{request.lease_s};
    owner.is_persistent = request.is_persistent.value_or(owner.is_persistent);
    return owner;
}

tl::unexpected<Error> claimed_error(const OwnerRecord& owner, std::string_view target,
                                    std::string_view but) {
    return fail(ErrorId::Claimed,
                fmt::format("{} belongs to {}{}", target, claim_text(owner), but));
}

}  // namespace

Result<> check_owner_name(std::string_view owner) {
    if (!owner.empty() && owner.size() <= kMaxOwner &&
        std::all_of(owner.begin(), owner.end(), is_owner_letter))
        return {};
    std::string shown;
    for (const char letter : owner.substr(0, 40)) shown += is_owner_letter(letter) ? letter : '?';
    return fail(
        ErrorId::InvalidOwner,
        fmt::format("'{}' ({} bytes) is not a valid name for an owner", shown, owner.size()));
}

bool outlives_stops(const OwnerRecord& owner) {
    return owner.is_persistent && !std::holds_alternative<ProcessId>(form_of(owner.name));
}

bool is_expired(const OwnerRecord& owner, UnixTime now) {
    return !owner.name.empty() && owner.expires != UnixTime{0} && now >= owner.expires;
}

std::string claim_text(const OwnerRecord& owner) {
    return fmt::format("'{}' (claim {})", owner.name, owner.generation);
}

Result<OwnerRecord> claim(const OwnerRecord& before, const ClaimRequest& request,
                          const ClaimFacts& facts) {
    TRY_VOID(check_owner_name(request.owner));
    const bool is_own = is_same_owner(before.name, request.owner);
    const bool is_free = before.name.empty();
    if (!is_own && !is_free && !is_expired(before, facts.now))
        return claimed_error(before, facts.target, "");
    if (!is_own && !is_free && facts.is_attached)
        return claimed_error(before, facts.target,
                             ", whose lease is over, but a client still has the VF open");
    // Compare and swap: fails if the claim has changed since the caller read it.
    if (request.generation && *request.generation != before.generation)
        return fail(
            ErrorId::StaleClaim,
            fmt::format("{}: the request names claim {}, but {}", facts.target, *request.generation,
                        is_free ? "there is no claim" : claim_text(before) + " is in force"));
    if (is_own) {
        OwnerRecord owner = renew(before, request, facts.now);
        // Sets `since`, so that `since` <= boot means: neither made nor renewed in this boot.
        if (owner.since <= facts.boot) owner.since = facts.now;
        return owner;
    }
    return renew({.name = request.owner,
                  .generation = facts.next_generation,
                  .lease_s = 0,
                  .since = facts.now,
                  .expires = UnixTime{0}},
                 request, facts.now);
}

Result<> check_release(const OwnerRecord& before, std::string_view owner, std::uint64_t generation,
                       std::string_view target) {
    if (before.name.empty()) return {};
    // A late release must not end a newer claim by the same owner.
    if (generation != before.generation)
        return fail(ErrorId::StaleClaim,
                    fmt::format("{}: claim {} is not in force: the VF belongs to {}", target,
                                generation, claim_text(before)));
    if (!is_same_owner(before.name, owner))
        return claimed_error(before, target,
                             fmt::format(", not to '{}'", owner.substr(0, kMaxOwner)));
    return {};
}

OwnerForm form_of(std::string_view owner) {
    constexpr std::string_view kProcess = "pid:";
    constexpr std::array<std::string_view, 2> kDomains{"domain:", "libvirt:"};
    if (owner.starts_with(kProcess)) {
        const auto process = parse_process(owner.substr(kProcess.size()));
        return process ? OwnerForm(*process) : OwnerForm(OtherOwner{});
    }
    for (const std::string_view prefix : kDomains)
        if (owner.starts_with(prefix)) owner.remove_prefix(prefix.size());
    if (const auto uuid = parse_uuid(owner)) return DomainOwner{uuid_text(*uuid)};
    if (auto engine_owner = parse_engine_owner(owner)) return *std::move(engine_owner);
    return OtherOwner{};
}

bool is_same_owner(std::string_view one, std::string_view other) {
    if (one == other) return true;
    const OwnerForm form = form_of(one), other_form = form_of(other);
    const auto* process = std::get_if<ProcessId>(&form);
    const auto* other_process = std::get_if<ProcessId>(&other_form);
    if (process == nullptr || other_process == nullptr) return false;
    const bool is_start_unknown = process->start_time == 0 || other_process->start_time == 0;
    return process->pid == other_process->pid && is_start_unknown;
}

bool runs_domain(const OwnerRecord& owner, std::optional<bool> exists, UnixTime now) {
    if (!std::holds_alternative<DomainOwner>(form_of(owner.name)) || is_expired(owner, now))
        return false;
    return exists.value_or(true) || now - owner.since < kOwnerGrace;
}

std::string orphan_cause(const OwnerRecord& owner, const OrphanFacts& facts) {
    if (owner.name.empty()) return "";
    if (is_expired(owner, facts.now))  // ocf:vgpu:capacity expects the last word
        return fmt::format("the lease of {} is over", claim_text(owner));
    // A VM's VFs are claimed before the process of the VM exists.
    const bool is_new = facts.now - owner.since < kOwnerGrace;
    if (facts.exists && !*facts.exists && !is_new && !outlives_stops(owner))
        return fmt::format("{} no longer exists", claim_text(owner));
    const bool may_stay_unopened = (facts.exists && *facts.exists) || outlives_stops(owner) ||
                                   std::holds_alternative<EngineOwner>(form_of(owner.name));
    if (!facts.is_attached && !may_stay_unopened && owner.lease_s == 0 &&
        facts.unattached_for >= kLongUnattached)
        return fmt::format("{} has not opened the VF in the last {} h", claim_text(owner),
                           kLongUnattached.count());
    return "";
}

}  // namespace vgpu::daemon
