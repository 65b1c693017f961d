// SPDX-License-Identifier: MIT
//
// The helper processes of a GPU (softgpu, vgpu-pf): started so that they outlive vgpud, found again
// by the note left in the run directory. A process is identified by pid and start time, so a reused
// pid is never taken for it. Implemented by adapters/process_launcher; tests fake it.
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

/// `directory` must be there; `command` is not given to a shell.
struct ProcessSpec {
    std::string label;                 ///< "softgpu", "vgpu-pf": names the note and the log
    std::string directory;             ///< where LABEL.pid and LABEL.log are kept
    std::vector<std::string> command;  ///< program and arguments
};

class ProcessPort {
public:
    virtual ~ProcessPort() = default;

    /// Starts it in a session of its own and leaves the note.
    /// System if the log, the note or the process cannot be made, or the program not be executed.
    /// The note is on disk before the program runs, so a vgpud that dies meanwhile is followed by
    /// one that finds the process.
    virtual Result<ProcessId> start(const ProcessSpec& spec) = 0;
    /// The running process that the note of `spec` names, if it is still the same one.
    virtual std::optional<ProcessId> find(const ProcessSpec& spec) = 0;
    /// Nothing: it runs. Else how it ended: "with exit status 1", "by signal 9 (Killed)"; empty for
    /// one that was not this vgpud's child. Also reaps it. A zombie has ended, and so has one whose
    /// pid is another process's now.
    [[nodiscard]] virtual std::optional<std::string> end_of(const ProcessId& id) = 0;
    /// Keeps the log of `spec` below a bound: what is old moves to LABEL.log.1 and is dropped
    /// later.
    virtual void trim_log(const ProcessSpec& spec) = 0;
    /// True if `path` is a socket file.
    [[nodiscard]] virtual bool socket_exists(const std::string& path) = 0;
    /// Removes a socket file that a dead process left behind.
    virtual void remove_stale(const std::string& path) = 0;
};

}  // namespace vgpu::daemon
