// SPDX-License-Identifier: MIT
//
// Event: the inputs and queries of a GpuSchedule, as plain values. Recorder writes them; a replay
// passes them to a GpuSchedule again. The order of kinds in Event and of members in event.cpp is
// the file format (docs/scheduling.md). Add new ones at the end and increase kTraceVersion.
#pragma once

#include "daemon/service/slicing/gpu_schedule.h"
#include "daemon/service/trace/archive.h"

#include <map>
#include <string>
#include <variant>
#include <vector>

namespace vgpu::daemon::trace {

inline constexpr std::uint32_t kTraceVersion = 4;

/// GpuSchedule::set_members(). Times: vgpud's monotonic clock; service: ns.
struct MembersSet {
    Nanoseconds at{0};
    std::vector<GpuSchedule::Member> members;
    std::uint32_t max_gap_ms = 0;
    std::map<std::uint32_t, std::string> names;  ///< of VFs, for display
};

struct Ran {
    Nanoseconds end{0};
    std::uint32_t vf = 0;
    std::int64_t ns = 0;
    std::int64_t reserved_ns = 0;
};

struct Woke {
    Nanoseconds at{0};
    std::uint32_t vf = 0;
};

struct WentIdle {
    Nanoseconds at{0};
    std::uint32_t vf = 0;
    bool is_inactive = false;  ///< true if the VF was not in the engine
};

struct Throttled {
    Nanoseconds at{0};
    std::uint32_t vf = 0;
};

/// GpuSchedule::on_missed(). Has no time.
struct Missed {
    std::uint32_t vf = 0;
    std::int64_t ns = 0;
    std::int64_t reserved_ns = 0;
};

struct Restarted {};

/// GpuSchedule::make_table(). `digest`: of the table that was made.
struct TableMade {
    Nanoseconds at{0};
    std::uint64_t generation = 0;
    bool is_made = false;  ///< false: make_table() found no table for these members
    std::uint32_t digest = 0;
};

/// The PF core's answer to a TableMade, if it accepted the table; else TableRefused.
struct TableInstalled {
    Nanoseconds at{0};
};

struct TableRefused {
    Nanoseconds at{0};
};

/// For display only; decisions do not depend on it.
struct Annotated {
    Nanoseconds at{0};
    std::uint32_t vf = 0;
    std::string kind;
    std::string text;
};

/// The index of an alternative is the number of its kind in the file.
using Event = std::variant<MembersSet, Ran, Woke, WentIdle, Throttled, Missed, Restarted, TableMade,
                           TableInstalled, TableRefused, Annotated>;

/// CRC32C of all bytes, so that a replay finds any difference.
[[nodiscard]] std::uint32_t digest_of(const vgpu_pf_run_table& table);

/// Applies the event to `schedule`. Returns false only if a TableMade has another result than the
/// recorded one.
bool apply(const Event& event, GpuSchedule& schedule);

/// [kind, members…]; times are relative to `last`.
[[nodiscard]] Json json_of(const Event& event, Nanoseconds& last);
/// Throws BadTrace.
[[nodiscard]] Event event_of(const Json& json, Nanoseconds& last);

/// The state from which a replay starts. It does not contain a table that is not yet confirmed, so
/// no chunk begins between a TableMade and its answer.
[[nodiscard]] Json json_of(const GpuSchedule::Image& image, Nanoseconds& last);
/// Throws BadTrace.
[[nodiscard]] GpuSchedule::Image image_of(const Json& json, Nanoseconds& last);

}  // namespace vgpu::daemon::trace
