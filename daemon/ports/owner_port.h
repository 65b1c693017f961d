// SPDX-License-Identifier: MIT
//
// OwnerPort asks the host about owners and clients of VFs: whether a process or a virtual machine
// still exists, and its name. GpuModel uses it to find forgotten claims and to name a VF's client;
// no owner is harmed because of an answer. Callable from any thread. Implemented by
// adapters/owner_watch; tests fake it.
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

    /// Start time 0: any process with this pid.
    /// A zombie does not exist.
    [[nodiscard]] virtual bool process_exists(const ProcessId& id) const = 0;
    /// Start time of a process, as in ProcessId; empty if there is no such process.
    [[nodiscard]] virtual std::optional<std::uint64_t> start_time_of(int pid) const = 0;
    /// UUIDs (lower case) of the virtual machines that run on this host. Examines every process.
    [[nodiscard]] virtual std::set<std::string> running_domains() const = 0;
    /// The process that has the VF with the socket `path` open, as "qemu-system-x86 (pid 71)";
    /// empty if unknown.
    [[nodiscard]] virtual std::string client_of(const std::string& path) const = 0;
};

}  // namespace vgpu::daemon
