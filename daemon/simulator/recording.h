// SPDX-License-Identifier: MIT
//
// Recording: vgpud's record of a GPU's scheduling (daemon/service/trace), read and replayed.
// replay() compares the decisions with those of this build's scheduler. The exports
// (recording_export.h) observe a replay.
#pragma once

#include "daemon/service/trace/event.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace vgpu::simulator {

struct RecordedChunk {
    std::uint64_t number = 0;
    /// True if the chunk continues the chunk with the preceding number. If not, the recording
    /// begins here, or vgpud adopted the schedule's state.
    bool continues = false;
    daemon::Nanoseconds at{0};
    std::int64_t unix_time = 0;  ///< s, at `at`; years 1970 to 9999
    daemon::GpuSchedule::Image image{};
    std::vector<daemon::trace::Event> events{};
};

/// All texts are printable ASCII; '?' replaces other characters.
struct Recording {
    std::string gpu;
    std::string vgpud;                           ///< version of the recorded vgpud
    std::map<std::uint32_t, std::string> names;  ///< of VFs, as last known
    std::vector<RecordedChunk> chunks;
    bool is_cut = false;  ///< true if the last item is incomplete
};

/// The error names the byte offset of the first mistake.
tl::expected<Recording, std::string> read_recording(std::string_view bytes);

/// Replaces each text (names, annotations) by `replaced(text)`. Omits an incomplete last item.
tl::expected<std::string, std::string> with_texts(
    std::string_view bytes, const std::function<std::string(const std::string&)>& replaced);

/// The name of a VF; "vf3" without a name.
[[nodiscard]] std::string name_in(const Recording& recording, std::uint32_t vf);

/// The time of an event; none for events without a time.
[[nodiscard]] std::optional<daemon::Nanoseconds> time_of(const daemon::trace::Event& event);

struct Replay {
    std::uint64_t events = 0;
    std::uint64_t tables = 0;     ///< requests for a table
    std::uint64_t gaps = 0;       ///< number of times that chunks are missing
    std::uint64_t different = 0;  ///< tables, and schedules at the beginning of chunks, that the
                                  ///< replay makes differently
    std::string first_difference{};
};

using ReplayObserver = std::function<void(const daemon::trace::Event&, const daemon::GpuSchedule&)>;

Replay replay(const Recording& recording, const ReplayObserver& observer = {});

}  // namespace vgpu::simulator
