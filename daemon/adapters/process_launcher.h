// SPDX-License-Identifier: MIT
//
// ProcessLauncher: implements ProcessPort with fork and exec. A child gets a new session, the
// default signal mask, /dev/null as input, LABEL.log as output, no other descriptor, and no
// variables of the service manager. The file LABEL.pid ("pid start_time") is written before the
// exec, so that the next vgpud finds the child. end_of() reaps children. Stateless; any thread.
#pragma once

#include "daemon/ports/process_port.h"

#include <cstdint>

namespace vgpu::daemon::adapters {

/// Children run as vgpud's user.
class ProcessLauncher final : public ProcessPort {
public:
    /// Largest size of LABEL.log and of LABEL.log.1.
    static constexpr std::uintmax_t kMaxLogBytes = 1u << 20;

    Result<ProcessId> start(const ProcessSpec& spec) override;
    std::optional<ProcessId> find(const ProcessSpec& spec) override;
    [[nodiscard]] std::optional<std::string> end_of(const ProcessId& id) override;
    void trim_log(const ProcessSpec& spec) override;
    [[nodiscard]] bool socket_exists(const std::string& path) override;
    void remove_stale(const std::string& path) override;
};

}  // namespace vgpu::daemon::adapters
