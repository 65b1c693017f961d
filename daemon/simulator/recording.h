// SPDX-License-Identifier: MIT
//
// Recording: vgpud's recording of a GPU's scheduling (daemon/service/trace), read into memory.
// replay() compares the recorded decisions with the decisions of this build's scheduler. The
// exports (recording_export.h) observe a replay.
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
    /// True if the chunk continues the chunk with the preceding number. False if vgpud's recording
    /// began with this chunk, or if vgpud adopted a run table.
    bool continues = false;
    daemon::Nanoseconds at{0};
    std::int64_t unix_time = 0;  ///< the time `at` in s since 1970; up to the year 9999
    daemon::GpuSchedule::Image image{};
    std::vector<daemon::trace::Event> events{};
};

/// All texts are printable (text/utf8.h).
struct Recording {
    std::string gpu;
    std::string vgpud;                           ///< version of the recorded vgpud
    std::map<std::uint32_t, std::string> names;  ///< names of VFs, as last known
    std::vector<RecordedChunk> chunks;
    bool is_cut = false;  ///< true if the recording ends within an item, which is left out
};

/// Reads a recording, which must have a chunk. The error names the byte offset of the first
/// mistake.
tl::expected<Recording, std::string> read_recording(std::string_view bytes);

/// Returns the recording `bytes` with each text (names, annotations) replaced by `replaced(text)`.
/// Omits an incomplete last item. The error is as that of read_recording().
tl::expected<std::string, std::string> with_texts(
    std::string_view bytes, const std::function<std::string(const std::string&)>& replaced);

/// The name of a VF; "vf3" without a name.
[[nodiscard]] std::string name_in(const Recording& recording, std::uint32_t vf);

/// The time of an event; none for events without a time.
[[nodiscard]] std::optional<daemon::Nanoseconds> time_of(const daemon::trace::Event& event);

struct Replay {
    std::uint64_t events = 0;
    std::uint64_t tables = 0;  ///< number of run tables that the recorded vgpud made
    std::uint64_t gaps = 0;    ///< number of places where chunks are missing
    /// Number of differences: run tables that the replay makes differently, and chunks that begin
    /// with another schedule than the replay has reached.
    std::uint64_t different = 0;
    std::string first_difference{};  ///< names the first difference; empty if there is none
};

/// Called after each event, with the schedule after the event.
using ReplayObserver = std::function<void(const daemon::trace::Event&, const daemon::GpuSchedule&)>;

Replay replay(const Recording& recording, const ReplayObserver& observer = {});

}  // namespace vgpu::simulator
