// SPDX-License-Identifier: MIT
//
// NoticeFold: what a guest can cause again and again is told kTold times within kWindow, and from
// then on counted and told as a number when the window is over. So no guest fills the log, the list
// of events, the bus or a recording, whatever it repeats. What operators and vgpud itself cause is
// always told. Each GpuModel and Agents have one; one thread each.
#pragma once

#include "daemon/ports/clock.h"
#include "daemon/service/views/views.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace vgpu::daemon {

class NoticeFold {
public:
    static constexpr std::uint32_t kTold = 8;
    static constexpr Nanoseconds kWindow = std::chrono::minutes(1);

    /// False: it is counted, and take_due() will tell.
    [[nodiscard]] bool admits(const Notice& notice, Nanoseconds now);
    /// Of each window that is over and held something back: its last notice, with their number.
    [[nodiscard]] std::vector<Notice> take_due(Nanoseconds now);
    [[nodiscard]] std::optional<Nanoseconds> next_due() const;

private:
    struct Window {
        Nanoseconds end{0};
        std::uint32_t told = 0;
        std::uint64_t folded = 0;
        std::string last{};  ///< text
    };
    using Key = std::tuple<std::string, std::uint32_t, std::string_view>;  ///< GPU, VF, kind

    std::map<Key, Window> windows_;
};

}  // namespace vgpu::daemon
