// SPDX-License-Identifier: MIT
#include "tests/support/unix_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <cerrno>

namespace vgpu::test {

int connect_unix(int socket, const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) return ENAMETOOLONG;
    path.copy(address.sun_path, path.size());
    const void* generic = &address;
    const auto* at = static_cast<const sockaddr*>(generic);
    return ::connect(socket, at, sizeof address) == 0 ? 0 : errno;
}

}  // namespace vgpu::test
