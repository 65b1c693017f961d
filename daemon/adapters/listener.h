// SPDX-License-Identifier: MIT
//
// Unix sockets by their path: addresses, and listening at a path of vgpud's run directory. Used by
// the adapters that serve local clients (agents, metrics) and by the one that connects.
#pragma once

#include "daemon/adapters/unique_fd.h"
#include "daemon/ports/result.h"

#include <sys/types.h>
#include <sys/un.h>
#include <string>

namespace vgpu::daemon::adapters {

/// ConfigInvalid, with the length and the limit, if no socket can have this path.
Result<sockaddr_un> address_of(const std::string& path);

/// Removes what a vgpud that died has left at `path`; anything but a socket stays.
void remove_stale_socket(const std::string& path);

/// Listens at `path` in place of a stale socket; non-blocking. The file's mode is `mode`.
/// System with the path if that fails. `backlog` is listen(2)'s. Takes a socket away from whoever
/// serves it: the caller holds the lock of the run directory.
Result<UniqueFd> listen_at(const std::string& path, mode_t mode, int backlog);

}  // namespace vgpu::daemon::adapters
