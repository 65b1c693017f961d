// SPDX-License-Identifier: MIT
//
// What the outside may see of a GPU and of a VF: plain values, made on demand by GpuModel, shown by
// the D-Bus layer. Names of states and reasons are made here, once.
#pragma once

#include "daemon/service/state/records.h"
#include "pf-driver/uapi/vgpu_pf.h"

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

// Structures of C have no comparison; none of these has padding, so their bytes can be compared.
inline bool operator==(const vgpu_pf_info& a, const vgpu_pf_info& b) {
    static_assert(std::has_unique_object_representations_v<vgpu_pf_info>);
    return std::memcmp(&a, &b, sizeof a) == 0;
}
inline bool operator==(const vgpu_pf_vf& a, const vgpu_pf_vf& b) {
    static_assert(std::has_unique_object_representations_v<vgpu_pf_vf>);
    return std::memcmp(&a, &b, sizeof a) == 0;
}

namespace vgpu::daemon {

/// Only in Ok are run tables planned; views and records are there in all of them.
/// Failed: softgpu or vgpu-pf cannot be started.
enum class GpuState { Starting, Ok, PfLost, DeviceLost, VersionMismatch, Failed };

std::string_view name_of(GpuState state);
/// "ready", "paused" …; "unknown" for a number that is no state.
std::string_view vf_state_name(std::uint32_t state);
/// "none", "idle-timeout" …
std::string_view reason_name(std::uint32_t reason);
/// All there are, in the order of their numbers.
std::span<const std::string_view> gpu_state_names();
std::span<const std::string_view> vf_state_names();
/// The sysfs file of an enum vgpu_pf_policy.
std::string_view policy_name(std::uint32_t policy);

/// Numbers as in vgpu_pf_info and in the run table in force; a pid of 0: not ours, or not running.
struct GpuView {
    std::string id;
    GpuState state = GpuState::Starting;
    /// Why it is in this state, for people; empty while there is nothing to say.
    std::string message;
    std::string uapi_socket;
    std::string vf_socket_dir;
    int softgpu_pid = 0;
    int pf_pid = 0;
    std::uint32_t quantum_us = 0;
    std::uint32_t max_gap_ms = 0;
    vgpu_pf_info info{};  ///< as last heard, without device_time_ns, which is past when it is read
    /// Of the plan of the run table in force; a table that was made by somebody else and replaced
    /// at once is never in here.
    std::size_t table_entries = 0;
    std::uint64_t table_cycle_us = 0;
    std::uint64_t table_worst_gap_us = 0;
    bool is_table_exact = true;
    /// Since vgpud attached first: events that were overwritten before they could be read.
    std::uint64_t events_lost = 0;

    bool operator==(const GpuView&) const = default;
};

/// What the agent in the VF's guest says: nothing of it can be relied on.
struct AgentView {
    std::string socket;  ///< for QEMU; empty if there is none
    bool is_connected = false;
    std::uint64_t misbehaved = 0;  ///< times it was disconnected
    // kept from the last one seen
    std::string version, kernel, driver, rocr, pci_address, unique_id;
    std::uint64_t last_seen_ms = 0;
    // only while it is connected
    std::string health, last_error;
    std::uint64_t resets = 0, errors = 0;
    std::uint64_t vram_total_bytes = 0, vram_used_bytes = 0;
    std::uint32_t processes = 0;
    std::vector<std::string> process_list;  ///< "PID VRAM-BYTES QUEUES COMM"
    bool is_quiesced = false;

    bool operator==(const AgentView&) const = default;
};

/// How something an agent was asked for ended.
/// Of the agent's own telling: `is_ok` proves nothing.
struct AgentReport {
    bool is_ok = false;
    std::string text;
    std::uint64_t duration_ms = 0;
};

/// Shares are 0..1: of the last ten seconds, since vgpud began to watch, and what contract and
/// weight entitle the VF to now. Lags in ns, or in quanta of the table in force.
struct VfView {
    std::string gpu;
    VfRecord record;
    vgpu_pf_vf live{};  ///< as last heard
    std::string socket;
    /// Counted from events; runs ahead of live.service_ns, which is as old as the last look.
    std::uint64_t service_ns = 0;
    double share_window = 0, share_total = 0, share_ideal = 0;
    std::int64_t lag_ns = 0;
    double lag_quanta = 0, worst_lag_quanta = 0;
    Handover handover = Handover::Default;  ///< who gets its function; Default: not known
    std::string trouble{};                  ///< why it is not as it is defined; empty: it is
    UnixTime lease_expires{0};              ///< by the wall clock; 0: never
    std::string orphan{};                   ///< why its claim looks forgotten; empty: it does not
    std::string client{};                   ///< who has its socket open; empty: not known
    std::uint64_t wait_ns = 0;              ///< had work and tokens, but not the engine
    std::uint64_t wait_p50_ns = 0, wait_p99_ns = 0;  ///< of single waits, of late
    bool is_capped = false;                          ///< has work and no tokens now
    AgentView agent{};                               ///< filled in by the main loop
    std::string owner_title{};  ///< what people call the owner; filled in by the main loop

    bool operator==(const VfView&) const = default;
};

/// Something an administrator may want to know; becomes the signal Manager.Event.
/// `kind` is a word that scripts may match; the view is of a literal.
struct Notice {
    std::string gpu;
    std::uint32_t vf = 0;  ///< 0: the GPU itself
    std::string_view kind;
    std::string text;
};

}  // namespace vgpu::daemon
