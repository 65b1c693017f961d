// SPDX-License-Identifier: MIT
//
// Functions for unix sockets with a path: they make the socket address for a path, remove a socket,
// and listen at a path. AgentSockets and SocketChannel call these functions.
#pragma once

#include "daemon/adapters/unique_fd.h"
#include "daemon/ports/result.h"

#include <sys/types.h>
#include <sys/un.h>
#include <string>

namespace vgpu::daemon::adapters {

/// ConfigInvalid, with the length and the limit, if the path is empty or too long for a socket.
Result<sockaddr_un> address_of(const std::string& path);

/// Removes the socket at `path`, whoever made it; files of other kinds stay.
void remove_socket(const std::string& path);

/// Listens at `path`, without blocking, with file mode `mode` and the `backlog` of listen(2). Fails
/// with System and the path, or as address_of(). Replaces an existing socket, even if another
/// program listens there. vgpud may do so, because it holds the lock of its run directory
/// (RunLock).
Result<UniqueFd> listen_at(const std::string& path, mode_t mode, int backlog);

}  // namespace vgpu::daemon::adapters
