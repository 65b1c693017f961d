// SPDX-License-Identifier: MIT
//
// Recording: vgpud's record of a GPU's scheduling (daemon/service/trace), read from bytes and
// replayed. replay() gives a scheduler of this build the recorded events and compares its
// decisions; everything derived from a recording (recording_export.h) watches a replay.
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
    /// True if it continues where chunk number - 1 ended; false if vgpud took the schedule from
    /// elsewhere.
    bool continues = false;
    daemon::Nanoseconds at{0};
    std::int64_t unix_time = 0;  ///< s, at `at`; not before 1970, not after 9999
    daemon::GpuSchedule::Image image{};
    std::vector<daemon::trace::Event> events{};
};

/// Texts, including those of notes, are printable ASCII; '?' replaces unprintable characters.
struct Recording {
    std::string gpu;
    std::string vgpud;                           ///< version that decided
    std::map<std::uint32_t, std::string> names;  ///< of VFs, as known last
    std::vector<RecordedChunk> chunks;
    bool is_cut = false;  ///< the last item is not whole
};

/// The error names the byte at which `bytes` cease to be a recording.
tl::expected<Recording, std::string> read_recording(std::string_view bytes);

/// The same recording with each text (names, and notes for people) replaced by `replaced(text)`.
/// Errors as read_recording(); a last item that is not whole is left out.
tl::expected<std::string, std::string> with_texts(
    std::string_view bytes, const std::function<std::string(const std::string&)>& replaced);

/// The name of `vf`; "vf3" if it has none.
[[nodiscard]] std::string name_in(const Recording& recording, std::uint32_t vf);

/// The time of an event; none for events without a time.
[[nodiscard]] std::optional<daemon::Nanoseconds> time_of(const daemon::trace::Event& event);

struct Replay {
    std::uint64_t events = 0;
    std::uint64_t tables = 0;     ///< asked for
    std::uint64_t gaps = 0;       ///< chunks that are missing in between
    std::uint64_t different = 0;  ///< tables, and schedules at the beginning of chunks
    std::string first_difference{};
};

/// Sees each event, and the schedule after it.
using ReplayWitness = std::function<void(const daemon::trace::Event&, const daemon::GpuSchedule&)>;

Replay replay(const Recording& recording, const ReplayWitness& witness = {});

}  // namespace vgpu::simulator
