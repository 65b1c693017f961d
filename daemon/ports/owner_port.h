// SPDX-License-Identifier: MIT
//
// What the host knows of those who own VFs or have them open: is that process, that virtual machine
// still there, and who is it? Asked by GpuModel when it looks for claims that were forgotten, and
// to name a VF's client; nothing is done to anybody because of the answer. Callable from any
// thread. Implemented by adapters/owner_watch; tests fake it.
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
    /// A process that has ended and was not reaped yet does not exist.
    [[nodiscard]] virtual bool process_exists(const ProcessId& id) const = 0;
    /// When that process began, as ProcessId has it; nothing if there is none.
    [[nodiscard]] virtual std::optional<std::uint64_t> start_time_of(int pid) const = 0;
    /// UUIDs (lower case) of the virtual machines that run on this host. Looks at every process.
    [[nodiscard]] virtual std::set<std::string> running_domains() const = 0;
    /// Which process has the VF open whose socket is at `path`, as "qemu-system-x86 (pid 71)";
    /// empty if that is not known.
    [[nodiscard]] virtual std::string client_of(const std::string& path) const = 0;
};

}  // namespace vgpu::daemon
