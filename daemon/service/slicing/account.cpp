// SPDX-License-Identifier: MIT
#include "daemon/service/slicing/account.h"

#include <algorithm>

namespace vgpu::daemon {

namespace {

std::int64_t value_of(const std::map<std::uint32_t, std::int64_t>& values, std::uint32_t vf) {
    const auto at = values.find(vf);
    return at == values.end() ? 0 : at->second;
}

std::int64_t sum_of(const std::map<std::uint32_t, std::int64_t>& values) {
    std::int64_t sum = 0;
    for (const auto& [vf, ns] : values) sum += ns;
    return sum;
}

double ratio(std::int64_t part, std::int64_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

}  // namespace

void ServiceAccount::add(std::uint32_t vf, std::int64_t ns, std::int64_t end_ns) {
    totals_[vf] += ns;
    const std::int64_t number = std::max<std::int64_t>(0, end_ns) / kBucketNs;
    Bucket& bucket = buckets_[static_cast<std::size_t>(number) % kBuckets];
    // add() empties the bucket of ten seconds ago when it needs the bucket again, so no timer is
    // needed.
    if (bucket.number != number) bucket = {.number = number, .service_ns = {}};
    bucket.service_ns[vf] += ns;
    newest_ = std::max(newest_, number);
}

void ServiceAccount::forget(std::uint32_t vf) {
    totals_.erase(vf);
    for (Bucket& bucket : buckets_) bucket.service_ns.erase(vf);
}

void ServiceAccount::restart_window() {
    buckets_ = {};
    newest_ = -1;
}

std::int64_t ServiceAccount::total_ns(std::uint32_t vf) const {
    return value_of(totals_, vf);
}

double ServiceAccount::share_total(std::uint32_t vf) const {
    return ratio(total_ns(vf), sum_of(totals_));
}

double ServiceAccount::share_window(std::uint32_t vf) const {
    std::int64_t part = 0, whole = 0;
    for (const Bucket& bucket : buckets_) {
        if (bucket.number < 0 || bucket.number + static_cast<std::int64_t>(kBuckets) <= newest_)
            continue;
        part += value_of(bucket.service_ns, vf);
        whole += sum_of(bucket.service_ns);
    }
    return ratio(part, whole);
}

}  // namespace vgpu::daemon
