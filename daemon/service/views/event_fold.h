// SPDX-License-Identifier: MIT
//
// EventFold: limits events that a guest can cause repeatedly (EventCause::Guest), so that no guest
// can flood the log, the bus or the recording. At most kReported events of one VF and one kind pass
// in a window of kWindow. EventFold counts the further events, and reports their number at the end
// of the window. Each GpuModel has an EventFold, and so has Agents.
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

    /// True if the event passes. Otherwise EventFold counts the event for take_due().
    [[nodiscard]] bool admits(const AdminEvent& admin_event, Nanoseconds now);
    /// Ends all windows whose time is over. Returns one event for each such window with counted
    /// events: the last counted event, with the number of counted events added to its text.
    [[nodiscard]] std::vector<AdminEvent> take_due(Nanoseconds now);
    /// When to call take_due() next; none if no event is counted.
    [[nodiscard]] std::optional<Nanoseconds> next_due() const;

private:
    struct Window {
        Nanoseconds end{0};          ///< kWindow after the first event of the window
        std::uint32_t reported = 0;  ///< number of events that have passed
        std::uint64_t folded = 0;    ///< number of events that have not passed
        std::string last_text{};     ///< text of the last event that has not passed
    };
    using Key = std::tuple<std::string, std::uint32_t, EventKind>;  ///< GPU, VF, kind

    std::map<Key, Window> windows_;
};

}  // namespace vgpu::daemon
