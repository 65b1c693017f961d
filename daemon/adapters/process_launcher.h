// SPDX-License-Identifier: MIT
//
// ProcessLauncher implements ProcessPort with fork and exec. A child gets a new session, the
// default signal mask, /dev/null as input and LABEL.log as output, no other fd, and no environment
// variables of the service manager; it may outlive vgpud. The note LABEL.pid ("pid start_time") is
// written before the child may exec, so the next vgpud finds a child even if this one dies in
// between. end_of() reaps children. Any thread: it keeps no state.
#pragma once

#include "daemon/ports/process_port.h"

#include <cstdint>

namespace vgpu::daemon::adapters {

/// A child runs as vgpud's user with the same rights.
class ProcessLauncher final : public ProcessPort {
public:
    /// Limit of LABEL.log, and of LABEL.log.1.
    static constexpr std::uintmax_t kMaxLogBytes = 1u << 20;

    Result<ProcessId> start(const ProcessSpec& spec) override;
    std::optional<ProcessId> find(const ProcessSpec& spec) override;
    [[nodiscard]] std::optional<std::string> end_of(const ProcessId& id) override;
    void trim_log(const ProcessSpec& spec) override;
    [[nodiscard]] bool socket_exists(const std::string& path) override;
    void remove_stale(const std::string& path) override;
};

}  // namespace vgpu::daemon::adapters
