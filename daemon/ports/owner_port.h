// SPDX-License-Identifier: MIT
//
// OwnerPort: finds out whether owners of VFs (processes, VMs) exist, and which process has a VF
// open. GpuModel (service/gpu/gpu.h) reports claims of owners that no longer exist, but does not
// end these claims. GpuModel also refuses some changes while a VM that owns a VF runs. Any thread
// may call an OwnerPort. Implemented by adapters/owner_probe.
#pragma once

#include "daemon/ports/process_port.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace vgpu::daemon {

class OwnerPort {
public:
    virtual ~OwnerPort() = default;

    /// True if a process with this pid and start time exists; start time 0 matches any start time.
    /// False for a zombie. None if the system hides the process.
    [[nodiscard]] virtual std::optional<bool> process_exists(const ProcessId& id) const = 0;
    /// Start time as in ProcessId; none if there is no such process, or only its zombie, or if the
    /// system hides the process.
    [[nodiscard]] virtual std::optional<std::uint64_t> start_time_of(int pid) const = 0;
    /// UUIDs (lower case) of the VMs that run on this host; none if the system hides processes.
    /// Reads the command lines of all processes.
    [[nodiscard]] virtual std::optional<std::set<std::string>> running_domains() const = 0;
    /// The process that is connected to the VF's socket `path`, such as "qemu-system-x86 (pid 71)";
    /// empty if unknown.
    [[nodiscard]] virtual std::string client_of(const std::string& path) const = 0;
};

}  // namespace vgpu::daemon
