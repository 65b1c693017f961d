// SPDX-License-Identifier: MIT
#include "daemon/service/views/event_log.h"

#include "daemon/service/words.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

namespace vgpu::daemon {

void EventLog::add(const AdminEvent& admin_event, std::uint64_t time_us) {
    events_.push_back({.seq = ++count_,
                       .time_us = time_us,
                       .gpu = admin_event.gpu,
                       .vf = admin_event.vf,
                       .kind = admin_event.kind,
                       .text = std::string(start_of(admin_event.text, kMaxText))});
    if (events_.size() > kCapacity) drop_one();
}

/// Drops the oldest event of the largest group.
void EventLog::drop_one() {
    using Key = std::tuple<std::string_view, std::uint32_t, EventKind>;
    const auto key_of = [](const LoggedEvent& event) {
        return Key{event.gpu, event.vf, event.kind};
    };
    std::map<Key, std::size_t> counts;
    std::size_t max = 0;
    for (const LoggedEvent& event : events_) max = std::max(max, ++counts[key_of(event)]);
    events_.erase(std::find_if(events_.begin(), events_.end(), [&](const LoggedEvent& event) {
        return counts.at(key_of(event)) == max;
    }));
}

std::vector<LoggedEvent> EventLog::since(std::uint64_t after, std::size_t max) const {
    const auto is_new = [after](const LoggedEvent& event) { return event.seq > after; };
    auto first = std::find_if(events_.begin(), events_.end(), is_new);
    const auto found = static_cast<std::size_t>(events_.end() - first);
    if (found > max) first += static_cast<std::ptrdiff_t>(found - max);
    return {first, events_.end()};
}

}  // namespace vgpu::daemon
