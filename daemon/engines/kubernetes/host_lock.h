// SPDX-License-Identifier: MIT
//
// HostLock: ensures that at most one vgpu-dra serves a kubelet, even if several containers start
// vgpu-dra. Uses flock(2) on a file in the kubelet's directory, so the lock ends with the process.
// main.cpp takes the lock before vgpu-dra serves or claims anything.
#pragma once

#include "daemon/adapters/unique_fd.h"
#include "daemon/engines/kubernetes/ports.h"

#include <string>

namespace vgpu::kubernetes {

class HostLock {
public:
    /// Locks the file `directory`/lock and writes `node` and the pid of this process to it. The
    /// lock lasts as long as the HostLock. AlreadyRunning if another vgpu-dra has the lock; the
    /// error names its node and pid. System if the file cannot be opened, locked or written.
    static Result<HostLock> take(const std::string& directory, const std::string& node);

private:
    explicit HostLock(daemon::adapters::UniqueFd fd) : fd_(std::move(fd)) {}

    daemon::adapters::UniqueFd fd_;
};

}  // namespace vgpu::kubernetes
