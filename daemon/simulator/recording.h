// SPDX-License-Identifier: MIT
//
// Recording: vgpud's recording of a GPU's scheduling (daemon/service/trace), read into memory.
// replay() compares the recorded decisions with those of the scheduler in this program. The exports
// (recording_export.h) are made from a Recording and the events of its replay.
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

/// A part of a recording that can be replayed on its own: a schedule, and the events after it.
struct RecordedChunk {
    std::uint64_t number = 0;
    /// True if the chunk continues the chunk with the preceding number. False if vgpud's recording
    /// began with this chunk, or if vgpud adopted a run table.
    bool continues = false;
    daemon::Nanoseconds at{0};           ///< start of the chunk, by vgpud's monotonic clock
    std::int64_t unix_time = 0;          ///< the time `at` in s since 1970; up to the year 9999
    daemon::GpuSchedule::Image image{};  ///< the schedule at the start of the chunk
    std::vector<daemon::trace::Event> events{};
};

/// All texts are printable (text/utf8.h).
struct Recording {
    std::string gpu;
    std::string vgpud;                           ///< version of the vgpud that recorded
    std::map<std::uint32_t, std::string> names;  ///< names of VFs, as last known
    std::vector<RecordedChunk> chunks;           ///< at least one
    bool is_cut = false;  ///< true if the recording ends within a CBOR item, which is left out
};

/// Reads a recording, which must have at least one chunk. The error has the byte offset of the
/// start or the end of the item with the first mistake.
tl::expected<Recording, std::string> read_recording(std::string_view bytes);

/// Returns the recording `bytes` with each text (such as names, annotations and the GPU's id)
/// replaced by `replaced(text)`. Omits an incomplete last item. Errors as for read_recording(), but
/// does not check the contents of items.
tl::expected<std::string, std::string> with_texts(
    std::string_view bytes, const std::function<std::string(const std::string&)>& replaced);

/// The name of a VF; "vf3" without a name.
[[nodiscard]] std::string name_in(const Recording& recording, std::uint32_t vf);

/// The time of an event; none for events without a time.
[[nodiscard]] std::optional<daemon::Nanoseconds> time_of(const daemon::trace::Event& event);

/// The result of replay().
struct Replay {
    std::uint64_t events = 0;
    std::uint64_t tables = 0;  ///< number of run tables that the recorded vgpud made
    std::uint64_t gaps = 0;    ///< number of places where chunks are missing
    /// Number of differences: run tables that the replay does not make or makes differently, and
    /// chunks (with `continues`) whose schedule differs from that of the replay at the end of the
    /// preceding chunk.
    std::uint64_t different = 0;
    std::string first_difference{};  ///< names the first difference; empty if there is none
};

/// Called after each event, with the schedule after the event.
using ReplayObserver = std::function<void(const daemon::trace::Event&, const daemon::GpuSchedule&)>;

/// Applies all events to a GpuSchedule, chunk by chunk, and compares the results with the recorded
/// results.
Replay replay(const Recording& recording, const ReplayObserver& observer = {});

}  // namespace vgpu::simulator
