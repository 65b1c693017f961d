// SPDX-License-Identifier: MIT
//
// Event: inputs and questions of a GpuSchedule, as plain values. Recorder writes them; a replay
// gives them to a GpuSchedule again. The order of kinds in Event and of members in event.cpp is the
// file format (docs/scheduling.md): add new ones at the end and increase kTraceVersion.
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
    bool is_parked = false;  ///< off the engine
};

struct HeldBack {
    Nanoseconds at{0};
    std::uint32_t vf = 0;
};

/// GpuSchedule::on_missed(); has no time.
struct Missed {
    std::uint32_t vf = 0;
    std::int64_t ns = 0;
    std::int64_t reserved_ns = 0;
};

struct Restarted {};

/// A request for a table; `digest`: of the table made.
struct TableMade {
    Nanoseconds at{0};
    std::uint64_t generation = 0;
    bool is_made = false;  ///< false: these members have no table
    std::uint32_t digest = 0;
};

/// Accepted by the PF core (or TableRefused), after each TableMade.
struct TableInstalled {
    Nanoseconds at{0};
};

struct TableRefused {
    Nanoseconds at{0};
};

/// For display only, no part of decisions.
struct Noted {
    Nanoseconds at{0};
    std::uint32_t vf = 0;
    std::string kind;
    std::string text;
};

/// A kind's number in the file is its index.
using Event = std::variant<MembersSet, Ran, Woke, WentIdle, HeldBack, Missed, Restarted, TableMade,
                           TableInstalled, TableRefused, Noted>;

/// CRC32C of all bytes, so that any difference of a replay is found.
[[nodiscard]] std::uint32_t digest_of(const vgpu_pf_run_table& table);

/// Applies the event to `schedule`. False only for a TableMade with another result than recorded.
bool apply(const Event& event, GpuSchedule& schedule);

/// [kind, members…]; times are relative to `last`.
[[nodiscard]] Json json_of(const Event& event, Nanoseconds& last);
/// Throws BadTrace.
[[nodiscard]] Event event_of(const Json& json, Nanoseconds& last);

/// The start of a replay. Has no table that is not yet confirmed, so no chunk begins between
/// TableMade and its answer.
[[nodiscard]] Json json_of(const GpuSchedule::Image& image, Nanoseconds& last);
/// Throws BadTrace.
[[nodiscard]] GpuSchedule::Image image_of(const Json& json, Nanoseconds& last);

}  // namespace vgpu::daemon::trace
