// SPDX-License-Identifier: MIT
#include "daemon/adapters/listener.h"

#include "pf-driver/process/socket_path.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>

namespace vgpu::daemon::adapters {

Result<sockaddr_un> address_of(const std::string& path) {
    sockaddr_un address{};
    if (vgpu_socket_address(path.c_str(), &address) == 0) return address;
    std::array<char, 512> words{};
    vgpu_socket_path_error(path.c_str(), words.data(), words.size());
    return fail(ErrorId::ConfigInvalid, words.data());
}

void remove_socket(const std::string& path) {
    struct stat file {};
    if (::lstat(path.c_str(), &file) == 0 && S_ISSOCK(file.st_mode)) ::unlink(path.c_str());
}

Result<UniqueFd> listen_at(const std::string& path, mode_t mode, int backlog) {
    TRY(const sockaddr_un address, address_of(path));
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    remove_socket(path);
    const void* generic = &address;  // bind() takes the general type sockaddr
    if (!fd.is_open() ||
        ::bind(fd.get(), static_cast<const sockaddr*>(generic), sizeof address) != 0 ||
        ::chmod(path.c_str(), mode) != 0 || ::listen(fd.get(), backlog) != 0)
        return fail_errno(ErrorId::System, errno, path);
    return fd;
}

}  // namespace vgpu::daemon::adapters
