// SPDX-License-Identifier: MIT
//
// EventKind: what an event for administrators is about. Each kind has a row in schemas/events.def
// with its name, its severity (log level, and colour of its line) and its cause. The service uses
// kinds; the D-Bus layer and the log print the names of kinds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vgpu::daemon {

enum class EventKind : std::uint8_t {
#define EVENT(name, kind, severity, cause, meaning) name,
#include "schemas/events.def"
#undef EVENT
};

enum class EventSeverity : std::uint8_t { Info, Warning, Error };
/// Guest: a guest can repeat the event, so EventFold limits it. Host: all other events.
enum class EventCause : std::uint8_t { Host, Guest };

struct EventKindRow {
    std::string_view name;  ///< on D-Bus and in the log: "pf-lost"
    EventSeverity severity;
    EventCause cause;
};

inline constexpr std::array kEventKinds{
#define EVENT(name, kind, severity, cause, meaning) \
    EventKindRow{kind, EventSeverity::severity, EventCause::cause},
#include "schemas/events.def"
#undef EVENT
};

constexpr const EventKindRow& row_of(EventKind kind) {
    return kEventKinds[static_cast<std::size_t>(kind)];
}

constexpr std::string_view name_of(EventKind kind) {
    return row_of(kind).name;
}

}  // namespace vgpu::daemon
