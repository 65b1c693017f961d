// SPDX-License-Identifier: MIT
//
// Config: vgpud's configuration file, which names the GPUs, how to reach them, and vgpud's
// directories and programs. The file is JSON with comments (schemas/vgpud-config.schema.json).
// vgpud reads the file once, at start. parse_config() fails with ConfigInvalid, which names the
// place of a mistake, such as the JSON path of an unknown key or of a wrong value.
#pragma once

#include "daemon/ports/result.h"
#include "daemon/service/scheduler/planner.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace vgpu::daemon {

/// A software GPU that vgpud starts. The members are arguments of softgpu, except `pf_args`; the
/// schema has their ranges.
struct SoftgpuConfig {
    std::uint32_t vfs = 16;                ///< number of VFs
    std::uint32_t vram_mb = 2048;          ///< VRAM of the device, in MiB
    std::uint32_t aperture_mb = 256;       ///< size of each VF's BAR0, in MiB; a power of two
    std::uint32_t cus = 8;                 ///< number of compute units
    std::uint32_t threads = 2;             ///< worker threads that execute packets and waves
    bool is_true_copy = false;             ///< true: world switches copy and poison all state
    std::string doorbell_mode = "trap";    ///< "trap" each write, or "poll" mapped pages
    std::string isa_tier = "interpreter";  ///< "interpreter" or "translator"
    std::vector<std::string> args;         ///< additional arguments for softgpu
    std::vector<std::string> pf_args;      ///< additional arguments for vgpu-pf
};

/// A PF core that vgpud does not start: a vgpu-pf that another program started, or vgpu_pf.ko.
struct AttachConfig {
    std::string uapi_socket;    ///< path of the socket, or of the character device of vgpu_pf.ko
    std::string vf_socket_dir;  ///< directory of the sockets vfN.sock; empty: unknown
};

/// An SR-IOV PF of this host that a vendor's driver manages (docs/backends.md).
struct PciConfig {
    std::string address;  ///< PCI address of the PF: "0000:03:00.0"
    /// PCI vendor and device IDs that the card at `address` must have; none: any card.
    std::optional<std::pair<std::uint16_t, std::uint16_t>> model{};
    bool is_observing = true;             ///< true: vgpud writes nothing to the GPU
    bool accepts_approximations = false;  ///< true: offer settings that the driver approximates
    std::uint32_t vfs = 0;                ///< if vgpud enables VFs: the minimum number of VFs
    std::uint32_t vram_mb = 0;            ///< xe: MiB for all VFs; 0: the largest VRAM BAR
    std::uint32_t pf_quantum_ms = 1;      ///< xe: the PF's quantum, for work of the host
    bool counts_busy_time = false;        ///< xe: true if vgpud reads busy times from the perf PMU
};

/// One GPU. `quantum_us` and `max_gap_ms` apply until the GPU has a state file. Then the values in
/// the state file apply.
struct GpuConfig {
    std::string id;
    std::uint32_t quantum_us = scheduler::kDefaultQuantumUs;
    std::uint32_t max_gap_ms = scheduler::kDefaultMaxGapMs;
    // exactly one of the next three is set
    std::optional<SoftgpuConfig> softgpu;
    std::optional<AttachConfig> attach;
    std::optional<PciConfig> pci{};
};

/// The whole file. vgpud makes the directories at start. It looks up programs in PATH if their
/// names have no slash.
struct Config {
    std::string state_dir = "/var/lib/vgpu";  ///< state files
    std::string run_dir = "/run/vgpu";        ///< sockets, and logs of managed processes
    std::string softgpu_program = "softgpu";
    std::string pf_program = "vgpu-pf";
    std::string libvirt_program = "vgpu-libvirt";
    std::string libvirt_uri;  ///< URI for vgpu-libvirt; empty: vgpu-libvirt is not started
    std::vector<GpuConfig> gpus;
};

/// Reads vgpud's configuration. `text`: the content of the file. `name`: the file's name, for error
/// texts. "gpus": "auto" stands for all `pf_devices` (/dev/vgpu-pfN becomes gpuN), or for one
/// software GPU, gpu0, if there are none.
Result<Config> parse_config(const std::string& text, const std::string& name,
                            const std::vector<std::string>& pf_devices = {});

/// Minimum of a GPU's max_gap_ms; contracts have the same minimum.
inline constexpr std::uint32_t kMinGapMs = 1;
/// Maximum of a GPU's max_gap_ms; contracts have the same maximum.
inline constexpr std::uint32_t kMaxGapMs = 60'000;

}  // namespace vgpu::daemon
