// SPDX-License-Identifier: MIT
//
// ProcessPort starts the helper processes of a GPU (softgpu, vgpu-pf) so that they outlive vgpud,
// and finds them again by a note in the run directory. A process is identified by pid and start
// time, so that a reused pid is not mistaken for it. Implemented by adapters/process_launcher;
// tests fake it.
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

/// `directory` must exist; `command` is not passed to a shell.
struct ProcessSpec {
    std::string label;                 ///< "softgpu", "vgpu-pf": names the note and the log
    std::string directory;             ///< contains LABEL.pid and LABEL.log
    std::vector<std::string> command;  ///< program and arguments
};

class ProcessPort {
public:
    virtual ~ProcessPort() = default;

    /// Starts a process in a new session and writes the note.
    /// System if the log, the note or the process cannot be made, or the program cannot be
    /// executed. The note is on disk before the program runs, so that the next vgpud finds the
    /// process even if this one dies meanwhile.
    virtual Result<ProcessId> start(const ProcessSpec& spec) = 0;
    /// The process named by the note of `spec`, if it still runs.
    virtual std::optional<ProcessId> find(const ProcessSpec& spec) = 0;
    /// nullopt while the process runs. Else how it ended: "with exit status 1", "by signal 9
    /// (Killed)"; "" if it was not a child of this vgpud. Also reaps it. A zombie has ended, and so
    /// has a process whose pid was reused.
    [[nodiscard]] virtual std::optional<std::string> end_of(const ProcessId& id) = 0;
    /// Keeps the log of `spec` below a bound: moves old lines to LABEL.log.1, replacing older ones.
    virtual void trim_log(const ProcessSpec& spec) = 0;
    /// True if `path` is a socket file.
    [[nodiscard]] virtual bool socket_exists(const std::string& path) = 0;
    /// Removes a socket file that a dead process left behind.
    virtual void remove_stale(const std::string& path) = 0;
};

}  // namespace vgpu::daemon
