// SPDX-License-Identifier: MIT
#include "daemon/adapters/event_loop.h"

#include <algorithm>
#include <ctime>

namespace vgpu::daemon::adapters {

void Wanted::watch(int fd, short events) {
    if (fd >= 0) fds.push_back({.fd = fd, .events = events, .revents = 0});
}

void Wanted::wake_by(Nanoseconds at) {
    wake_at = wake_at ? std::min(*wake_at, at) : at;
}

bool Wanted::has_come(int fd) const {
    return std::ranges::any_of(
        fds, [fd](const pollfd& each) { return each.fd == fd && each.revents != 0; });
}

bool is_ready(Wanted& wanted) {
    return ::poll(wanted.fds.data(), wanted.fds.size(), 0) > 0;
}

void wait_for(Wanted& wanted, const Clock& clock) {
    timespec limit{};
    if (wanted.wake_at) {
        const auto left = std::max(Nanoseconds{0}, *wanted.wake_at - clock.now());
        limit.tv_sec = static_cast<time_t>(left.count() / 1'000'000'000);
        limit.tv_nsec = static_cast<long>(left.count() % 1'000'000'000);
    }
    ::ppoll(wanted.fds.data(), wanted.fds.size(), wanted.wake_at ? &limit : nullptr, nullptr);
}

}  // namespace vgpu::daemon::adapters
