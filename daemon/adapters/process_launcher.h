// SPDX-License-Identifier: MIT
//
// ProcessLauncher: implements ProcessPort: starts softgpu and vgpu-pf with fork and exec. A child
// gets a new session, no blocked signals, /dev/null as input, LABEL.log as output, no other
// descriptor, and an environment without NOTIFY_SOCKET, WATCHDOG_PID and WATCHDOG_USEC. vgpud
// writes the file LABEL.pid ("pid start_time") before the exec, so that the next vgpud finds the
// child. end_of() reaps children. Any thread may call a ProcessLauncher.
//
// With `vgpud --device-user`, children run as that user, and may make and remove sockets in their
// directory. The directory is sticky, so children cannot remove files of vgpud. vgpud writes
// neither a pid file nor a log through a link, nor into a file of another user.
#pragma once

#include "daemon/ports/process_port.h"

#include <sys/types.h>
#include <cstdint>
#include <optional>
#include <string>

namespace vgpu::daemon::adapters {

/// The user that softgpu and vgpu-pf run as (vgpud --device-user).
struct DeviceUser {
    uid_t uid = 0;
    gid_t gid = 0;
};

/// Looks up the user `name`. ConfigInvalid if there is no such user, or if the user is root.
Result<DeviceUser> device_user(const std::string& name);

class ProcessLauncher final : public ProcessPort {
public:
    /// Children run as `user`, which requires root. Without `user` they run as vgpud's user.
    explicit ProcessLauncher(std::optional<DeviceUser> user = {}) : user_(user) {}

    /// In bytes. trim_log() empties LABEL.log if that file is longer. LABEL.log.1 is never longer.
    static constexpr std::uintmax_t kMaxLogBytes = 1u << 20;

    Result<ProcessId> start(const ProcessSpec& spec) override;
    std::optional<ProcessId> find(const ProcessSpec& spec) override;
    [[nodiscard]] std::optional<std::string> end_of(const ProcessId& id) override;
    void trim_log(const ProcessSpec& spec) override;
    [[nodiscard]] bool socket_exists(const std::string& path) override;
    void remove_stale(const std::string& path) override;

private:
    std::optional<DeviceUser> user_;
};

}  // namespace vgpu::daemon::adapters
