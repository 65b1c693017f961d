// SPDX-License-Identifier: MIT
//
// Views: the state of GPUs and VFs that callers may see, as plain values. GpuModel and Agents make
// the views, and the D-Bus layer shows them. This file also has the names of states and reasons.
#pragma once

#include "daemon/backend/facts.h"
#include "daemon/ports/clock.h"
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

/// State of a GPU. vgpud plans run tables only in Ok; views and records exist in all states.
enum class GpuState {
    Starting,         ///< vgpud starts the GPU's processes, or has not tried to attach yet
    Ok,               ///< in service
    PfLost,           ///< the PF core does not answer vgpud
    DeviceLost,       ///< the device does not answer the PF core
    VersionMismatch,  ///< the PF core has another version of the uapi
    Failed            ///< softgpu or vgpu-pf cannot be started, or ends at once
};

/// "starting", "ok" …
std::string_view name_of(GpuState state);
/// The name of an enum vgpu_pf_vf_state: "ready", "paused" …; "unknown" for other numbers.
std::string_view vf_state_name(std::uint32_t state);
/// The name of an enum vgpu_pf_reason: "none", "idle-timeout" …; "unknown" for other numbers.
std::string_view reason_name(std::uint32_t reason);
/// All names, in the order of the enum's values.
std::span<const std::string_view> gpu_state_names();
std::span<const std::string_view> vf_state_names();
/// The name of the sysfs file of an enum vgpu_pf_policy; "none" for 0, "unknown" for other numbers.
std::string_view policy_name(std::uint32_t policy);

/// The plan of the run table in force (scheduler::Plan). A table that another program has set, and
/// that vgpud replaces at once, is not shown.
struct TableView {
    std::size_t entries = 0;         ///< number of entries
    std::uint64_t cycle_us = 0;      ///< sum of all quanta
    std::uint64_t worst_gap_us = 0;  ///< longest time between successive entries of a VF
    bool is_exact = true;            ///< true if one cycle gives each VF exactly its part by weight

    bool operator==(const TableView&) const = default;
};

/// One GPU. A pid of 0: the process does not run, or vgpud does not manage it.
struct GpuView {
    std::string id;
    GpuState state = GpuState::Starting;
    /// Why the GPU is in this state, as text; may be empty.
    std::string message;
    bool is_read_only = false;  ///< true if a state file is not trusted (StateStore::writable)
    std::string uapi_socket;    ///< socket or device of the PF core; empty: a vendor's driver
    std::string vf_socket_dir;  ///< directory of the VFs' sockets; empty: unknown
    int softgpu_pid = 0;
    int pf_pid = 0;
    std::uint32_t quantum_us = 0;      ///< as in GpuSettings
    std::uint32_t max_gap_ms = 0;      ///< as in GpuSettings
    GpuFacts info{};                   ///< as last read, but device_time_ns is 0
    std::optional<TableView> table{};  ///< absent if the driver has no run tables
    /// Number of events that were overwritten before vgpud read them, since the start of this
    /// vgpud; absent if the driver has no run tables.
    std::optional<std::uint64_t> events_lost{};

    bool operator==(const GpuView&) const = default;
};

/// The agent in the VF's guest, and its reports. Do not rely on the reports: the guest may lie.
struct AgentView {
    std::string socket;         ///< socket to which QEMU connects the agent; empty: none
    bool is_connected = false;  ///< true from the AgentHello until the agent is gone or silent
    /// Time of the AgentHello since which the agent is connected without a break. Another time
    /// means another conversation, in which the agent knows nothing of earlier requests.
    Nanoseconds connected_since{0};
    std::uint64_t misbehaved = 0;  ///< number of disconnects for misbehaviour
    // From the last AgentHello (agents/message.h). These stay after a disconnect, and are empty
    // before the first AgentHello.
    std::string version, kernel, driver, rocr, pci_address, unique_id;
    std::uint64_t last_seen_ms = 0;  ///< time since the agent's last message; 0 before AgentHello
    // From the last AgentStatus; empty or 0 while the agent is not connected. `health`: "ok",
    // "no-driver" or "no-render-node". `resets` and `errors`: as the guest counts them.
    std::string health, last_error;
    std::uint64_t resets = 0, errors = 0;
    std::uint64_t vram_total_bytes = 0, vram_used_bytes = 0;
    std::uint32_t processes = 0;            ///< may exceed the length of process_list
    std::vector<std::string> process_list;  ///< "PID VRAM-BYTES QUEUES COMM"
    bool is_quiesced = false;

    bool operator==(const AgentView&) const = default;
};

/// The agent's answer to a request. `is_ok` proves nothing, because the guest may lie.
struct AgentReport {
    bool is_ok = false;
    std::string text;
    std::uint64_t duration_ms = 0;  ///< time for the request, as the agent measured it
};

/// Measurements of a VF that a run table schedules. Shares are fractions, 0 to 1.
struct VfTiming {
    double share_window = 0;  ///< service / service of all VFs, in the window of ServiceAccount
    double share_total = 0;   ///< the same since vgpud began to watch (slicing/account.h)
    double share_ideal = 0;   ///< share of the engine that contract and weight entitle the VF to
    std::int64_t lag_ns = 0;  ///< ideal service − received service
    double lag_quanta = 0;    ///< lag / largest slice of the table in force
    double worst_lag_quanta = 0;    ///< largest |lag_quanta| since the VF joined the run table
    std::uint64_t wait_ns = 0;      ///< sum of finished waits for the engine (WaitAccount)
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
    std::string socket;  ///< path of the socket for vfio-user clients; empty: unknown
    /// The abilities of the GPU; null: show all settings.
    std::shared_ptr<const Abilities> abilities{};
    /// Time in the engine: active.service_ns or, with run tables, Vf::counted_service_ns
    /// (gpu/vf_table.h), which includes newer RUN events. Absent if the driver does not report it.
    std::optional<std::uint64_t> service_ns{};
    std::optional<VfTiming> timing{};  ///< absent if the driver has no run tables
    AssignmentMode assignment_mode =
        AssignmentMode::Default;      ///< which driver has the VF's function; Default: unknown
    std::string condition{};          ///< why the VF is not as defined; empty if it is
    UnixTime lease_expires{0};        ///< by the wall clock; 0: never
    std::string orphan{};             ///< why the VF's claim looks forgotten; empty if it does not
    std::string client{};             ///< process that has `socket` open; empty: none or unknown
    AgentView agent{};                ///< filled in by the main loop
    std::string owner_domain_name{};  ///< libvirt's name of the owner; filled in by the main loop

    bool operator==(const VfView&) const = default;
};

/// Limit of the events that a GPU keeps for the main loop. Bounds memory if the main loop hangs.
inline constexpr std::size_t kMaxAdminEvents = 1024;

/// An event for administrators, sent as the signal Manager.Event.
struct AdminEvent {
    std::string gpu;       ///< id of the GPU; "vgpud": the event is about vgpud itself
    std::uint32_t vf = 0;  ///< 0: the GPU itself, or vgpud itself
    EventKind kind{};
    std::string text;
};

}  // namespace vgpu::daemon
