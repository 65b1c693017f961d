// SPDX-License-Identifier: MIT
//
// Event: one call of a function of GpuSchedule with its arguments, or an annotation, as a plain
// value. Recorder writes events, and a replay makes the same calls again. In all events, times are
// those of vgpud's monotonic clock, and `ns` and `reserved_ns` are service. The order of the kinds
// in Event and of the members in event.cpp is the file format (docs/scheduling.md). Add new kinds
// and members at the end, and increase kTraceVersion.
#pragma once

#include "daemon/service/slicing/gpu_schedule.h"
#include "daemon/service/trace/archive.h"

#include <map>
#include <string>
#include <variant>
#include <vector>

namespace vgpu::daemon::trace {

/// Version of the file format. A replay refuses recordings of other versions.
inline constexpr std::uint32_t kTraceVersion = 4;

/// A call of GpuSchedule::set_members().
struct MembersSet {
    Nanoseconds at{0};
    std::vector<GpuSchedule::Member> members;
    std::uint32_t max_gap_ms = 0;
    std::map<std::uint32_t, std::string> names;  ///< names of VFs, for display
};

/// A call of GpuSchedule::on_run().
struct Ran {
    Nanoseconds end{0};
    std::uint32_t vf = 0;
    std::int64_t ns = 0;
    std::int64_t reserved_ns = 0;
};

/// A call of GpuSchedule::on_wake().
struct Woke {
    Nanoseconds at{0};
    std::uint32_t vf = 0;
};

/// A call of GpuSchedule::on_idle() or on_inactive_idle().
struct WentIdle {
    Nanoseconds at{0};
    std::uint32_t vf = 0;
    bool is_inactive = false;  ///< true if the VF was not in the engine
};

/// A call of GpuSchedule::on_throttled().
struct Throttled {
    Nanoseconds at{0};
    std::uint32_t vf = 0;
};

/// A call of GpuSchedule::on_missed(), which takes no time as argument.
struct Missed {
    std::uint32_t vf = 0;
    std::int64_t ns = 0;
    std::int64_t reserved_ns = 0;
};

/// A call of GpuSchedule::restart(), which takes no arguments.
struct Restarted {};

/// A call of GpuSchedule::make_table().
struct TableMade {
    Nanoseconds at{0};
    std::uint64_t generation = 0;
    bool is_made = false;      ///< false: make_table() failed
    std::uint32_t digest = 0;  ///< digest_of() the table; 0 if make_table() failed
};

/// A call of GpuSchedule::installed(): the PF core accepted the table of the last TableMade.
struct TableInstalled {
    Nanoseconds at{0};
};

/// A call of GpuSchedule::refused(): the PF core refused the table or did not answer, or
/// make_table() failed.
struct TableRefused {
    Nanoseconds at{0};
};

/// An annotation: an event for administrators. For display only; apply() ignores it.
struct Annotated {
    Nanoseconds at{0};
    std::uint32_t vf = 0;  ///< 0: the GPU
    std::string kind;      ///< name of an EventKind
    std::string text;
};

/// The index of an alternative in the variant is the number of its kind in the file.
using Event = std::variant<MembersSet, Ran, Woke, WentIdle, Throttled, Missed, Restarted, TableMade,
                           TableInstalled, TableRefused, Annotated>;

/// CRC32C of all bytes of a table, by which a replay finds differences.
[[nodiscard]] std::uint32_t digest_of(const vgpu_pf_run_table& table);

/// Makes the recorded call on `schedule`. Returns false only for a TableMade: no table was due, or
/// the result differs from the recorded result.
bool apply(const Event& event, GpuSchedule& schedule);

/// The event as the array [kind, members…]. Each time in it is the difference from the preceding
/// time. `last`: before the call, the time of the preceding event; after it, the last time in this
/// event.
[[nodiscard]] Json json_of(const Event& event, Nanoseconds& last);
/// Reads an event. `last`: as in json_of(). Throws BadTrace if the JSON is not a valid event.
[[nodiscard]] Event event_of(const Json& json, Nanoseconds& last);

/// The state from which a replay starts, as an array. An image lacks a table that is made but not
/// yet installed or refused, so no chunk (recorder.h) may begin between a TableMade and the PF
/// core's answer.
[[nodiscard]] Json json_of(const GpuSchedule::Image& image, Nanoseconds& last);
/// Reads an image. Throws BadTrace if the JSON is not a valid image.
[[nodiscard]] GpuSchedule::Image image_of(const Json& json, Nanoseconds& last);

}  // namespace vgpu::daemon::trace
