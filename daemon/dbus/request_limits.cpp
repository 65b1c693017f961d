// SPDX-License-Identifier: MIT
#include "daemon/dbus/request_limits.h"

#include <fmt/format.h>

namespace vgpu::daemon::dbus {

namespace {

constexpr uid_t kRoot = 0;

template <typename Key>
std::size_t count_of(const std::map<Key, std::size_t>& counts, const Key& key) {
    const auto at = counts.find(key);
    return at == counts.end() ? 0 : at->second;
}

/// Decrements a count, and erases it at 0, so that senders that have left use no memory.
template <typename Key> void count_down(std::map<Key, std::size_t>& counts, const Key& key) {
    if (--counts[key] == 0) counts.erase(key);
}

Result<> refused(std::size_t count, std::string_view whose) {
    return fail(ErrorId::TooManyRequests,
                fmt::format("{} requests of {} are pending", count, whose));
}

}  // namespace

Result<> RequestLimits::check(const std::string& sender, uid_t user) const {
    if (const auto count = count_of(counts_->by_sender, sender); count >= kMaxPerSender)
        return refused(count, "this caller");
    if (const auto count = count_of(counts_->by_user, user); user != kRoot && count >= kMaxPerUser)
        return refused(count, fmt::format("user {}", user));
    const std::size_t max = user == kRoot ? kMax : kMax - kReserve;
    if (counts_->total >= max) return refused(counts_->total, "all callers");
    return {};
}

Result<RequestLimits::Ticket> RequestLimits::admit(const std::string& sender, uid_t user) {
    TRY_VOID(check(sender, user));
    ++counts_->by_sender[sender];
    ++counts_->by_user[user];
    ++counts_->total;
    // The ticket owns no object; its deleter decrements the counts.
    const auto release = [counts = counts_, sender, user](const void*) {
        --counts->total;
        count_down(counts->by_sender, sender);
        count_down(counts->by_user, user);
    };
    return Ticket(counts_.get(), release);
}

}  // namespace vgpu::daemon::dbus
