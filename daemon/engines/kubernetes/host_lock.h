// SPDX-License-Identifier: MIT
//
// HostLock: at most one vgpu-dra of a driver runs on a host. Uses flock(2), which ends with the
// process, also if it runs in another container. main.cpp takes it before it touches anything.
#pragma once

#include "daemon/adapters/unique_fd.h"
#include "daemon/engines/kubernetes/ports.h"

#include <string>

namespace vgpu::kubernetes {

class HostLock {
public:
    /// The lock lasts as long as the HostLock. AlreadyRunning if another vgpu-dra has it, with the
    /// node and pid of that one. System if the file cannot be used.
    static Result<HostLock> take(const std::string& directory, const std::string& node);

private:
    explicit HostLock(daemon::adapters::UniqueFd fd) : fd_(std::move(fd)) {}

    daemon::adapters::UniqueFd fd_;
};

}  // namespace vgpu::kubernetes
