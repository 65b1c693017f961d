// SPDX-License-Identifier: MIT
//
// Event: what a GpuSchedule is told and asked, each kind a plain value. Recorder writes them while
// they happen; whoever replays them gives them to a GpuSchedule again. The order of the kinds in
// Event and of their members in event.cpp is the file format: new ones go to the end, and
// kTraceVersion goes up. docs/scheduling.md describes the file.
#pragma once

#include "daemon/service/slicing/gpu_schedule.h"
#include "daemon/service/trace/archive.h"

#include <map>
#include <string>
#include <variant>
#include <vector>

namespace vgpu::daemon::trace {

inline constexpr std::uint32_t kTraceVersion = 4;

/// GpuSchedule::set_members(). All times are of vgpud's monotonic clock, all service is in ns.
struct MembersSet {
    Nanoseconds at{0};
    std::vector<GpuSchedule::Member> members;
    std::uint32_t max_gap_ms = 0;
    std::map<std::uint32_t, std::string> names;  ///< of VFs, for people
};

/// GpuSchedule::on_run(): told when the run is over.
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

/// GpuSchedule::on_missed(); it has no time of its own.
struct Missed {
    std::uint32_t vf = 0;
    std::int64_t ns = 0;
    std::int64_t reserved_ns = 0;
};

struct Restarted {};

/// A table was asked for; `digest` is that of the one it got.
struct TableMade {
    Nanoseconds at{0};
    std::uint64_t generation = 0;
    bool is_made = false;  ///< false: there is none for these members
    std::uint32_t digest = 0;
};

/// What the PF core answered to the last TableMade: this or TableRefused.
struct TableInstalled {
    Nanoseconds at{0};
};

struct TableRefused {
    Nanoseconds at{0};
};

/// Something for people; no part of any decision.
struct Noted {
    Nanoseconds at{0};
    std::uint32_t vf = 0;  ///< 0: the GPU
    std::string kind;
    std::string text;
};

/// A kind's number in the file is its index here.
using Event = std::variant<MembersSet, Ran, Woke, WentIdle, HeldBack, Missed, Restarted, TableMade,
                           TableInstalled, TableRefused, Noted>;

/// CRC32C of all bytes: one digit that a replay decides otherwise is seen.
[[nodiscard]] std::uint32_t digest_of(const vgpu_pf_run_table& table);

/// Tells `schedule` what happened. A TableMade asks it: true if it answers as it did.
/// True for all other kinds.
bool apply(const Event& event, GpuSchedule& schedule);

/// [kind, members…]; times count from `last`.
[[nodiscard]] Json json_of(const Event& event, Nanoseconds& last);
/// Throws BadTrace.
[[nodiscard]] Event event_of(const Json& json, Nanoseconds& last);

/// All that a replay begins with; of a table that was given out and not yet confirmed it knows
/// nothing, so no chunk begins between the two.
[[nodiscard]] Json json_of(const GpuSchedule::Image& image, Nanoseconds& last);
/// Throws BadTrace.
[[nodiscard]] GpuSchedule::Image image_of(const Json& json, Nanoseconds& last);

}  // namespace vgpu::daemon::trace
