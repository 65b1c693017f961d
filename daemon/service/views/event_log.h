// SPDX-License-Identifier: MIT
//
// EventLog: up to kCapacity recent events, each with a number and a time, for `vgpuctl events` and
// bug reports. Events with the same GPU, VF and kind form a group. If the log is full, a new event
// replaces the oldest event of the largest group, so that a frequent event does not push out rare
// ones. Numbers begin at 1 at each start of vgpud and count every event, so a gap in the numbers
// shows a reader how many events were dropped. Runs in the main loop.
#pragma once

#include "daemon/service/views/views.h"

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace vgpu::daemon {

/// `text` has at most EventLog::kMaxText bytes; add() cuts longer texts.
struct LoggedEvent {
    std::uint64_t seq = 0;      ///< number of the event, from 1
    std::uint64_t time_us = 0;  ///< microseconds since 1970, CLOCK_REALTIME
    std::string gpu;
    std::uint32_t vf = 0;  ///< 0: the GPU itself, or vgpud itself if `gpu` is "vgpud"
    EventKind kind{};
    std::string text;

    bool operator==(const LoggedEvent&) const = default;
};

class EventLog {
public:
    static constexpr std::size_t kCapacity = 512;
    static constexpr std::size_t kMaxText = 1024;

    /// `time_us`: as LoggedEvent::time_us.
    void add(const AdminEvent& admin_event, std::uint64_t time_us);
    /// Events with numbers above `after`, oldest first. If there are more than `max`, only the
    /// newest `max` of them.
    [[nodiscard]] std::vector<LoggedEvent> since(std::uint64_t after, std::size_t max) const;

private:
    void drop_one();

    std::deque<LoggedEvent> events_;
    std::uint64_t count_ = 0;  ///< number of all events that were added
};

}  // namespace vgpu::daemon
