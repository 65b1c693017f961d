// SPDX-License-Identifier: MIT
//
// Views: the state of GPUs and VFs that callers may see, as plain values. GpuModel makes them, and
// D-Bus shows them. Names of states and reasons are defined here.
#pragma once

#include "daemon/backend/facts.h"
#include "daemon/service/state/records.h"
#include "daemon/service/views/event_kind.h"
#include "pf-driver/uapi/vgpu_pf.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::daemon {

/// State of a GPU. Run tables are planned only in Ok; views and records exist in all states.
/// Failed: softgpu or vgpu-pf cannot be started.
enum class GpuState { Starting, Ok, PfLost, DeviceLost, VersionMismatch, Failed };

std::string_view name_of(GpuState state);
/// "ready", "paused" …; "unknown" for other numbers.
std::string_view vf_state_name(std::uint32_t state);
/// "none", "idle-timeout" …; "unknown" for other numbers.
std::string_view reason_name(std::uint32_t reason);
/// All names, in the order of their numbers.
std::span<const std::string_view> gpu_state_names();
std::span<const std::string_view> vf_state_names();
/// The name of the sysfs file of an enum vgpu_pf_policy; "unknown" for other numbers.
std::string_view policy_name(std::uint32_t policy);

/// The plan of the run table in force. Tables that other programs made and vgpud replaced at once
/// are not shown.
struct TableView {
    std::size_t entries = 0;
    std::uint64_t cycle_us = 0;
    std::uint64_t worst_gap_us = 0;
    bool is_exact = true;

    bool operator==(const TableView&) const = default;
};

/// One GPU. A pid of 0: the process does not run, or vgpud does not manage it.
struct GpuView {
    std::string id;
    GpuState state = GpuState::Starting;
    /// Why the GPU is in this state, as text; may be empty.
    std::string message;
    std::string uapi_socket;
    std::string vf_socket_dir;
    int softgpu_pid = 0;
    int pf_pid = 0;
    std::uint32_t quantum_us = 0;
    std::uint32_t max_gap_ms = 0;
    GpuFacts info{};                   ///< as last read, without device_time_ns
    std::optional<TableView> table{};  ///< absent if the driver has no run tables
    /// Number of events that were overwritten before vgpud read them, since this vgpud first
    /// attached; absent if the driver reports no events.
    std::optional<std::uint64_t> events_lost{};

    bool operator==(const GpuView&) const = default;
};

/// Statements of the agent in the VF's guest: unreliable.
struct AgentView {
    std::string socket;  ///< socket for QEMU; empty if there is none
    bool is_connected = false;
    std::uint64_t misbehaved = 0;  ///< number of disconnects for misbehaviour
    // these stay after a disconnect
    std::string version, kernel, driver, rocr, pci_address, unique_id;
    std::uint64_t last_seen_ms = 0;
    // these are set only while the agent is connected
    std::string health, last_error;
    std::uint64_t resets = 0, errors = 0;
    std::uint64_t vram_total_bytes = 0, vram_used_bytes = 0;
    std::uint32_t processes = 0;
    std::vector<std::string> process_list;  ///< "PID VRAM-BYTES QUEUES COMM"
    bool is_quiesced = false;

    bool operator==(const AgentView&) const = default;
};

/// The agent's result of a request. Unreliable: `is_ok` proves nothing.
struct AgentReport {
    bool is_ok = false;
    std::string text;
    std::uint64_t duration_ms = 0;
};

/// Measurements of a VF that a run table schedules. Shares are 0..1.
struct VfTiming {
    double share_window = 0;  ///< share of the service of all VFs, in ServiceAccount's window
    double share_total = 0;   ///< share of the service of all VFs, since vgpud first attached
    double share_ideal = 0;   ///< part of the engine by contract and weight
    std::int64_t lag_ns = 0;
    double lag_quanta = 0;          ///< lag in quanta of the table in force
    double worst_lag_quanta = 0;    ///< largest |lag| in quanta, since the VF joined
    std::uint64_t wait_ns = 0;      ///< time with work and tokens, but not in the engine
    std::uint64_t wait_p50_ns = 0;  ///< median of recent waits
    std::uint64_t wait_p99_ns = 0;  ///< 99th percentile of recent waits
    bool is_throttled = false;      ///< true if the VF has work, but no tokens

    bool operator==(const VfTiming&) const = default;
};

/// One VF.
struct VfView {
    std::string gpu;
    VfRecord record;
    VfFacts active{};    ///< as last read
    std::string socket;  ///< socket for vfio-user clients; empty if unknown
    /// The abilities of the GPU; null: all settings are shown.
    std::shared_ptr<const Abilities> abilities{};
    /// Time in the engine: active.service_ns. With run tables, plus the time of newer RUN events.
    std::optional<std::uint64_t> service_ns{};
    std::optional<VfTiming> timing{};  ///< absent if the driver has no run tables
    AssignmentMode assignment_mode =
        AssignmentMode::Default;      ///< which driver has the VF's function; Default: unknown
    std::string condition{};          ///< why the VF is not as defined; or empty
    UnixTime lease_expires{0};        ///< wall clock; 0: never
    std::string orphan{};             ///< why the VF's claim looks forgotten; or empty
    std::string client{};             ///< process that has `socket` open; empty: unknown
    AgentView agent{};                ///< filled in by the main loop
    std::string owner_domain_name{};  ///< readable name; filled in by the main loop

    bool operator==(const VfView&) const = default;
};

/// An event for administrators, sent as the signal Manager.Event.
struct AdminEvent {
    std::string gpu;       ///< "vgpud": the event is about vgpud itself
    std::uint32_t vf = 0;  ///< 0: the GPU itself, or vgpud itself
    EventKind kind{};
    std::string text;
};

}  // namespace vgpu::daemon
