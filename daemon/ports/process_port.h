// SPDX-License-Identifier: MIT
//
// ProcessPort: starts the managed processes of a GPU (softgpu, vgpu-pf), which outlive vgpud, and
// finds them again by files in the run directory. Pid and start time identify a process.
// Implemented by adapters/process_launcher.
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

/// A managed process, for start() and find(). `directory` must exist. `command` runs without a
/// shell.
struct ProcessSpec {
    std::string label;                 ///< "softgpu", "vgpu-pf": names the pid file and the log
    std::string directory;             ///< contains LABEL.pid and LABEL.log
    std::vector<std::string> command;  ///< program and arguments
};

class ProcessPort {
public:
    virtual ~ProcessPort() = default;

    /// Starts a process in a new session. Fails with System if a file or the process cannot be
    /// made, or if the program cannot be run. start() writes the pid file before the program runs,
    /// so that a later vgpud finds the process.
    virtual Result<ProcessId> start(const ProcessSpec& spec) = 0;
    /// The process that LABEL.pid names; none if it does not run, or if the file is missing or
    /// cannot be read.
    virtual std::optional<ProcessId> find(const ProcessSpec& spec) = 0;
    /// How the process ended, such as "with exit status 1" or "by signal 9 (Killed)"; none while it
    /// runs or may run. "" if the cause is unknown, because the process was not a child of this
    /// vgpud or was reaped before. Reaps a child that has ended.
    [[nodiscard]] virtual std::optional<std::string> end_of(const ProcessId& id) = 0;
    /// Bounds the log: if LABEL.log is long, copies its end to LABEL.log.1, and empties LABEL.log.
    virtual void trim_log(const ProcessSpec& spec) = 0;
    [[nodiscard]] virtual bool socket_exists(const std::string& path) = 0;
    /// Removes the socket file at `path`, if any. Call only if no process serves the socket.
    virtual void remove_stale(const std::string& path) = 0;
};

}  // namespace vgpu::daemon
