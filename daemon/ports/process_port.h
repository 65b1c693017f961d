// SPDX-License-Identifier: MIT
//
// ProcessPort: starts helper processes of a GPU (softgpu, vgpu-pf) that outlive vgpud, and finds
// them again by files in the run directory. Pid and start time identify a process. Implemented by
// adapters/process_launcher.
#pragma once

#include "daemon/ports/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::daemon {

struct ProcessId {
    int pid = 0;
    std::uint64_t start_time = 0;  ///< clock ticks since boot, from the kernel

    bool operator==(const ProcessId&) const = default;
};

/// `directory` must exist. `command` runs without a shell.
struct ProcessSpec {
    std::string label;                 ///< "softgpu", "vgpu-pf": names the pid file and the log
    std::string directory;             ///< contains LABEL.pid and LABEL.log
    std::vector<std::string> command;  ///< program and arguments
};

class ProcessPort {
public:
    virtual ~ProcessPort() = default;

    /// Starts a process in a new session. System if log, file or process cannot be made. The file
    /// is on disk first, so that a later vgpud finds the process.
    virtual Result<ProcessId> start(const ProcessSpec& spec) = 0;
    virtual std::optional<ProcessId> find(const ProcessSpec& spec) = 0;
    /// None while the process runs; reaps a process that ended. How it ended: "with exit status 1",
    /// "by signal 9 (Killed)". "" if that is unknown: not a child of this vgpud, a zombie, or a
    /// reused pid.
    [[nodiscard]] virtual std::optional<std::string> end_of(const ProcessId& id) = 0;
    /// Bounds the log: moves old lines to LABEL.log.1.
    virtual void trim_log(const ProcessSpec& spec) = 0;
    [[nodiscard]] virtual bool socket_exists(const std::string& path) = 0;
    /// Removes the socket file of a dead process.
    virtual void remove_stale(const std::string& path) = 0;
};

}  // namespace vgpu::daemon
