// SPDX-License-Identifier: MIT
//
// EventLog: up to kCapacity recent events with number and time, for `vgpuctl events` and the bug
// report. Events with the same VF and kind form a group. When the log is full, it drops the oldest
// event of the largest group. Numbers begin at 1 at each start of vgpud and count every event, so a
// gap shows a reader how many events were dropped. Runs in the main loop.
#pragma once

#include "daemon/service/views/views.h"

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace vgpu::daemon {

/// `text` is cut to EventLog::kMaxText bytes.
struct LoggedEvent {
    std::uint64_t seq = 0;
    std::uint64_t time_us = 0;  ///< since 1970, CLOCK_REALTIME
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

    void add(const AdminEvent& admin_event, std::uint64_t time_us);
    /// Events with numbers above `after`, oldest first; at most the newest `max`.
    [[nodiscard]] std::vector<LoggedEvent> since(std::uint64_t after, std::size_t max) const;

private:
    void drop_one();

    std::deque<LoggedEvent> events_;
    std::uint64_t count_ = 0;  ///< number of events added, dropped ones included
};

}  // namespace vgpu::daemon
