// SPDX-License-Identifier: MIT
#include "daemon/adapters/event_loop.h"

#include <algorithm>
#include <ctime>

namespace vgpu::daemon::adapters {

void PollSet::watch(int fd, short events) {
    if (fd >= 0) fds.push_back({.fd = fd, .events = events, .revents = 0});
}

void PollSet::wake_by(Nanoseconds at) {
    wake_at = wake_at ? std::min(*wake_at, at) : at;
}

bool PollSet::is_ready(int fd) const {
    return std::ranges::any_of(
        fds, [fd](const pollfd& each) { return each.fd == fd && each.revents != 0; });
}

bool is_ready(PollSet& poll_set) {
    return ::poll(poll_set.fds.data(), poll_set.fds.size(), 0) > 0;
}

void wait_for(PollSet& poll_set, const Clock& clock) {
    timespec limit{};
    if (poll_set.wake_at) {
        const auto left = std::max(Nanoseconds{0}, *poll_set.wake_at - clock.now());
        limit.tv_sec = static_cast<time_t>(left.count() / 1'000'000'000);
        limit.tv_nsec = static_cast<long>(left.count() % 1'000'000'000);
    }
    ::ppoll(poll_set.fds.data(), poll_set.fds.size(), poll_set.wake_at ? &limit : nullptr, nullptr);
}

}  // namespace vgpu::daemon::adapters
