// SPDX-License-Identifier: MIT
//
// vgpud's configuration file: GPUs and how to reach them. JSON with comments
// (schemas/vgpud-config.schema.json), read once at start. ConfigInvalid names the path of an
// unknown key, wrong type or value.
#pragma once

#include "daemon/ports/result.h"
#include "daemon/service/scheduler/planner.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace vgpu::daemon {

/// A software GPU that vgpud starts. The members are arguments of softgpu; the schema has their
/// ranges.
struct SoftgpuConfig {
    std::uint32_t vfs = 16;
    std::uint32_t vram_mb = 2048;
    std::uint32_t aperture_mb = 256;
    std::uint32_t cus = 8;
    std::uint32_t threads = 2;
    bool is_true_copy = false;
    std::string doorbell_mode = "trap";
    std::string isa_tier = "interpreter";
    std::vector<std::string> args;     ///< additional arguments for softgpu
    std::vector<std::string> pf_args;  ///< additional arguments for vgpu-pf
};

/// A PF core that vgpud does not start: a vgpu-pf that another program started, or vgpu_pf.ko.
struct AttachConfig {
    std::string uapi_socket;    ///< path of the socket, or of the character device of vgpu_pf.ko
    std::string vf_socket_dir;  ///< may be empty: then sockets are not shown
};

/// A PF of a vendor's driver on this host (docs/backends.md).
struct PciConfig {
    std::string address;  ///< "0000:03:00.0"
    /// PCI vendor and device IDs that the card at `address` must have; none: any card.
    std::optional<std::pair<std::uint16_t, std::uint16_t>> model{};
    bool is_observing = true;             ///< true for "manage": "observe"
    bool accepts_approximations = false;  ///< true for "contracts": "approximate"
    std::uint32_t vfs = 0;                ///< minimum number of VFs to enable
    std::uint32_t vram_mb = 0;            ///< VRAM for all VFs; 0: the size of the VRAM's BAR
    std::uint32_t pf_quantum_ms = 1;      ///< the PF's own quantum
    bool counts_busy_time = false;        ///< true if vgpud opens counters of the driver's PMU
};

/// quantum_us and max_gap_ms apply to a GPU without a record. Later the values in its record apply.
struct GpuConfig {
    std::string id;
    std::uint32_t quantum_us = scheduler::kDefaultQuantumUs;
    std::uint32_t max_gap_ms = scheduler::kDefaultMaxGapMs;
    std::optional<SoftgpuConfig> softgpu;  ///< exactly one of softgpu, attach and pci is set
    std::optional<AttachConfig> attach;
    std::optional<PciConfig> pci{};
};

/// main.cpp makes the directories. A program name without a slash is searched for in PATH.
struct Config {
    std::string state_dir = "/var/lib/vgpu";
    std::string run_dir = "/run/vgpu";
    std::string softgpu_program = "softgpu";
    std::string pf_program = "vgpu-pf";
    std::string libvirt_program = "vgpu-libvirt";
    std::string libvirt_uri;  ///< source of domain names; empty: none
    std::vector<GpuConfig> gpus;
};

/// Reads vgpud's configuration. `name`: the file's name, for messages. "gpus": "auto" means all
/// `pf_devices` (/dev/vgpu-pfN becomes gpuN), or one software GPU if there are none.
Result<Config> parse_config(const std::string& text, const std::string& name,
                            const std::vector<std::string>& pf_devices = {});

/// Minimum of max_gap_ms, for GPUs and contracts.
inline constexpr std::uint32_t kMinGapMs = 1;
/// Maximum of max_gap_ms, for GPUs and contracts.
inline constexpr std::uint32_t kMaxGapMs = 60'000;

}  // namespace vgpu::daemon
