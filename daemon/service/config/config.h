// SPDX-License-Identifier: MIT
//
// vgpud's configuration: which GPUs there are and how to reach them. JSON with comments
// (schemas/vgpud-config.schema.json); read once at start. Unknown keys, wrong types and values out
// of range are ConfigInvalid with the path of the key. Called by main.cpp.
#pragma once

#include "daemon/ports/result.h"
#include "daemon/service/scheduler/planner.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::daemon {

/// A software GPU that vgpud starts, with its vgpu-pf.
/// Arguments of softgpu by name; ranges are in schemas/vgpud-config.schema.json.
struct SoftgpuConfig {
    std::uint32_t vfs = 16;
    std::uint32_t vram_mb = 2048;
    std::uint32_t aperture_mb = 256;
    std::uint32_t cus = 8;
    std::uint32_t threads = 2;
    bool is_true_copy = false;
    std::string doorbell_mode = "trap";
    std::vector<std::string> args;     ///< more arguments for softgpu
    std::vector<std::string> pf_args;  ///< more arguments for vgpu-pf
};

/// A PF core that somebody else started, or one in the kernel.
struct AttachConfig {
    std::string uapi_socket;    ///< or the character device of vgpu_pf.ko
    std::string vf_socket_dir;  ///< may be empty: sockets are not shown
};

/// quantum_us and max_gap_ms count for a GPU without a record only: once an operator has set them,
/// the state says what they are.
struct GpuConfig {
    std::string id;
    std::uint32_t quantum_us = scheduler::kDefaultQuantumUs;
    std::uint32_t max_gap_ms = scheduler::kDefaultMaxGapMs;
    std::optional<SoftgpuConfig> softgpu;  ///< exactly one of these two
    std::optional<AttachConfig> attach;
};

/// Directories are made by main.cpp; programs without a slash are looked for in PATH.
struct Config {
    std::string state_dir = "/var/lib/vgpu";
    std::string run_dir = "/run/vgpu";
    std::string softgpu_program = "softgpu";
    std::string pf_program = "vgpu-pf";
    std::string libvirt_program = "vgpu-libvirt";
    std::string libvirt_uri;  ///< whose domains' names are shown; empty: nobody's
    std::vector<GpuConfig> gpus;
};

/// The configuration in `text`; `name` is the file's, for messages. "gpus": "auto" stands for all
/// `pf_devices` (/dev/vgpu-pfN becomes gpuN), or for one software GPU if there are none.
Result<Config> parse_config(const std::string& text, const std::string& name,
                            const std::vector<std::string>& pf_devices = {});

/// Range of max_gap_ms, of GPUs and of contracts.
inline constexpr std::uint32_t kMinGapMs = 1;
inline constexpr std::uint32_t kMaxGapMs = 60'000;

}  // namespace vgpu::daemon
