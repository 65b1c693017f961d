// SPDX-License-Identifier: MIT
//
// EventLog: the last notices with a number and the time at which they were said, for those who were
// not listening: `vgpuctl events`, the bug report. It keeps kKept of them; the one that goes is the
// oldest of the VF and kind that have most, so that who says much pushes out its own. Numbers begin
// at 1 with each vgpud and are given without gaps, so a reader knows what it missed. Bounded in
// events and in bytes of each. Main loop only: main.cpp adds, the D-Bus layer reads.
#pragma once

#include "daemon/service/views/views.h"

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace vgpu::daemon {

/// Text is cut to EventLog::kMaxText bytes.
struct LoggedEvent {
    std::uint64_t seq = 0;
    std::uint64_t time_us = 0;  ///< since 1970, CLOCK_REALTIME
    std::string gpu;
    std::uint32_t vf = 0;  ///< 0: the GPU itself
    std::string kind, text;

    bool operator==(const LoggedEvent&) const = default;
};

class EventLog {
public:
    static constexpr std::size_t kKept = 512;
    static constexpr std::size_t kMaxText = 1024;

    void add(const Notice& notice, std::uint64_t time_us);
    /// Those with a number above `after`, oldest first; if they are more than `most`, the newest.
    [[nodiscard]] std::vector<LoggedEvent> since(std::uint64_t after, std::size_t most) const;
    /// Events since the start.
    [[nodiscard]] std::uint64_t count() const { return count_; }

private:
    void drop_one();

    std::deque<LoggedEvent> kept_;
    std::uint64_t count_ = 0;
};

}  // namespace vgpu::daemon
