// SPDX-License-Identifier: MIT
#include "daemon/adapters/listener.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace vgpu::daemon::adapters {

void remove_stale_socket(const std::string& path) {
    struct stat file {};
    if (::lstat(path.c_str(), &file) == 0 && S_ISSOCK(file.st_mode)) ::unlink(path.c_str());
}

Result<UniqueFd> listen_at(const std::string& path, mode_t mode, int backlog) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path)
        return fail(ErrorId::System, fmt::format("{}: the path is too long for a socket", path));
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    remove_stale_socket(path);
    const void* generic = &address;
    if (!fd.is_open() ||
        ::bind(fd.get(), static_cast<const sockaddr*>(generic), sizeof address) != 0 ||
        ::chmod(path.c_str(), mode) != 0 || ::listen(fd.get(), backlog) != 0)
        return fail_errno(ErrorId::System, errno, path);
    return fd;
}

}  // namespace vgpu::daemon::adapters
