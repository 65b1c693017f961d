// SPDX-License-Identifier: MIT
//
// ProcessLauncher: ProcessPort over fork and exec. A child gets a session of its own, the default
// signal mask, /dev/null as input and LABEL.log as output, no other fd, and nothing that would let
// it speak to the service manager; nothing ties its life to vgpud's. The note LABEL.pid ("pid
// start_time") is written before the child may exec, so a vgpud that dies in between still finds
// it. Children that end are reaped by end_of(). Any thread: nothing is remembered.
#pragma once

#include "daemon/ports/process_port.h"

#include <cstdint>

namespace vgpu::daemon::adapters {

/// Runs as vgpud's user: nothing is gained or dropped.
class ProcessLauncher final : public ProcessPort {
public:
    /// Of LABEL.log, and of LABEL.log.1.
    static constexpr std::uintmax_t kMaxLogBytes = 1u << 20;

    Result<ProcessId> start(const ProcessSpec& spec) override;
    std::optional<ProcessId> find(const ProcessSpec& spec) override;
    [[nodiscard]] std::optional<std::string> end_of(const ProcessId& id) override;
    void trim_log(const ProcessSpec& spec) override;
    [[nodiscard]] bool socket_exists(const std::string& path) override;
    void remove_stale(const std::string& path) override;
};

}  // namespace vgpu::daemon::adapters
