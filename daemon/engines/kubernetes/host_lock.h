// SPDX-License-Identifier: MIT
//
// HostLock: ensures that at most one vgpu-dra runs on a host, even if several containers run one.
// Uses flock(2), so the lock ends with the process. main.cpp takes the lock before vgpu-dra serves
// or claims anything.
#pragma once

#include "daemon/adapters/unique_fd.h"
#include "daemon/engines/kubernetes/ports.h"

#include <string>

namespace vgpu::kubernetes {

class HostLock {
public:
    /// The lock lasts as long as the HostLock. If another vgpu-dra has the lock, AlreadyRunning
    /// with the node and pid of that vgpu-dra. System if the file cannot be used.
    static Result<HostLock> take(const std::string& directory, const std::string& node);

private:
    explicit HostLock(daemon::adapters::UniqueFd fd) : fd_(std::move(fd)) {}

    daemon::adapters::UniqueFd fd_;
};

}  // namespace vgpu::kubernetes
