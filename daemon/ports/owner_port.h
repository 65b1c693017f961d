// SPDX-License-Identifier: MIT
//
// OwnerPort finds out whether owners of VFs (processes, VMs) exist, and names clients. GpuModel
// reports forgotten claims by it; no claim ends. Any thread. Implemented by adapters/owner_watch.
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

    /// Start time 0: any process with this pid. False for a zombie.
    [[nodiscard]] virtual bool process_exists(const ProcessId& id) const = 0;
    /// As in ProcessId; none without such a process.
    [[nodiscard]] virtual std::optional<std::uint64_t> start_time_of(int pid) const = 0;
    /// UUIDs (lower case) of VMs on this host. Reads all processes.
    [[nodiscard]] virtual std::set<std::string> running_domains() const = 0;
    /// Process with the VF socket `path` open: "qemu-system-x86 (pid 71)"; empty if unknown.
    [[nodiscard]] virtual std::string client_of(const std::string& path) const = 0;
};

}  // namespace vgpu::daemon
