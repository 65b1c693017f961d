// SPDX-License-Identifier: MIT
#include "vf-agent/port.h"

#include "pf-driver/process/socket_path.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>

namespace vgpu::agent {

namespace {

int connect_to(const std::string& path) {
    sockaddr_un address{};
    if (vgpu_socket_address(path.c_str(), &address) != 0) {
        errno = ENAMETOOLONG;
        return -1;
    }
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const void* generic = &address;
    if (fd < 0 || ::connect(fd, static_cast<const sockaddr*>(generic), sizeof address) == 0)
        return fd;
    const int code = errno;
    ::close(fd);
    errno = code;
    return -1;
}

}  // namespace

std::string find_port(const std::filesystem::path& root) {
    std::error_code error;
    const auto link = root / "dev/virtio-ports" / kPortName;
    if (std::filesystem::exists(link, error)) return link.string();
    const auto ports = root / "sys/class/virtio-ports";
    for (const std::string& name : names_in(ports))
        if (line_of(ports / name / "name") == kPortName) return (root / "dev" / name).string();
    return "";
}

bool Port::open(const std::string& path) {
    close();
    struct stat file {};
    if (::stat(path.c_str(), &file) != 0) return false;
    is_socket_ = S_ISSOCK(file.st_mode);
    fd_ = is_socket_ ? connect_to(path) : ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    return is_open();
}

void Port::close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

Port::ReadResult Port::read(std::string& to) {
    pollfd state{.fd = fd_, .events = POLLIN, .revents = 0};
    if (::poll(&state, 1, 0) < 0) return ReadResult::Nothing;
    if ((state.revents & (POLLERR | POLLNVAL)) != 0) return ReadResult::Lost;
    std::array<char, 16384> buffer{};
    const ssize_t got = ::read(fd_, buffer.data(), buffer.size());
    if (got > 0) {
        to.append(buffer.data(), static_cast<std::size_t>(got));
        return ReadResult::Bytes;
    }
    // 0 bytes: on a port, the host is not connected; on a socket, the connection is lost
    if (got == 0) return is_socket_ ? ReadResult::Lost : ReadResult::HungUp;
    if (errno != EAGAIN && errno != EINTR) return ReadResult::Lost;
    return (state.revents & POLLHUP) != 0 ? ReadResult::HungUp : ReadResult::Nothing;
}

std::size_t Port::write(std::string_view bytes) {
    if (!is_open()) return 0;
    const ssize_t done = is_socket_ ? ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL)
                                    : ::write(fd_, bytes.data(), bytes.size());
    return done > 0 ? static_cast<std::size_t>(done) : 0;
}

}  // namespace vgpu::agent
