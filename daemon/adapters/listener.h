// SPDX-License-Identifier: MIT
//
// Unix sockets by path: makes addresses, and listens at a path in vgpud's run directory. Used by
// the adapter that serves agents and by the one that connects to vgpu-pf.
#pragma once

#include "daemon/adapters/unique_fd.h"
#include "daemon/ports/result.h"

#include <sys/types.h>
#include <sys/un.h>
#include <string>

namespace vgpu::daemon::adapters {

/// ConfigInvalid, with the length and the limit, if the path is too long for a socket.
Result<sockaddr_un> address_of(const std::string& path);

/// Removes a socket that a dead vgpud has left at `path`; other files stay.
void remove_stale_socket(const std::string& path);

/// Listens at `path` in place of a stale socket; non-blocking. The file's mode is `mode`.
/// System with the path on failure. `backlog` is that of listen(2). Also replaces a socket that is
/// in use: the caller must hold the lock of the run directory.
Result<UniqueFd> listen_at(const std::string& path, mode_t mode, int backlog);

}  // namespace vgpu::daemon::adapters
