// SPDX-License-Identifier: MIT
//
// EventFold: limits events that a guest can cause repeatedly. Of each VF and kind, kReported events
// pass in each window of kWindow. The others are counted, and their number is reported at the end
// of the window. So no guest can fill the log, events, bus or recording. Owned by each GpuModel and
// by Agents.
#pragma once

#include "daemon/ports/clock.h"
#include "daemon/service/views/views.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace vgpu::daemon {

class EventFold {
public:
    static constexpr std::uint32_t kReported = 8;
    static constexpr Nanoseconds kWindow = std::chrono::minutes(1);

    /// True if the event passes. If not, it is counted, and take_due() reports it.
    [[nodiscard]] bool admits(const AdminEvent& admin_event, Nanoseconds now);
    /// For each finished window with counted events: the last such event and their number.
    [[nodiscard]] std::vector<AdminEvent> take_due(Nanoseconds now);
    [[nodiscard]] std::optional<Nanoseconds> next_due() const;

private:
    struct Window {
        Nanoseconds end{0};
        std::uint32_t reported = 0;
        std::uint64_t folded = 0;
        std::string last{};
    };
    using Key = std::tuple<std::string, std::uint32_t, EventKind>;  ///< GPU, VF, kind

    std::map<Key, Window> windows_;
};

}  // namespace vgpu::daemon
