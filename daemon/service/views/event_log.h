// SPDX-License-Identifier: MIT
//
// EventLog: up to kCapacity recent events with number and time, for `vgpuctl events` and the bug
// report. A full log drops the oldest event of the VF and kind with the most events. Numbers begin
// at 1 in each vgpud and count every event, so a reader sees by a gap how many events were dropped.
// Bounded in bytes. Runs in the main loop.
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
    std::uint32_t vf = 0;  ///< 0: the GPU itself
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
    std::uint64_t count_ = 0;
};

}  // namespace vgpu::daemon
