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
    /// System if the log, the note or the process cannot be made. The note is on disk before the
    /// program runs, so a vgpud that dies meanwhile is followed by one that finds the process. A
    /// program that cannot be executed is seen by is_alive() only.
    virtual Result<ProcessId> start(const ProcessSpec& spec) = 0;
    /// The running process that the note of `spec` names, if it is still the same one.
    virtual std::optional<ProcessId> find(const ProcessSpec& spec) = 0;
    /// Also reaps it if it was this vgpud's child. False for a zombie, and for another process that
    /// has got the pid since.
    [[nodiscard]] virtual bool is_alive(const ProcessId& id) = 0;
    /// True if `path` is a socket file.
    [[nodiscard]] virtual bool socket_exists(const std::string& path) = 0;
    /// Removes a socket file that a dead process left behind.
    virtual void remove_stale(const std::string& path) = 0;
};

}  // namespace vgpu::daemon
