// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/vfio_user/socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "pf-driver/confine/sealed.h"
#include "pf-driver/process/passed_fds.h"
#include "pf-driver/process/socket_path.h"

namespace vgpu::softgpu::vfio_user {
namespace {

constexpr int kListenBacklog = 8;
constexpr mode_t kSocketMode = 0600;

// The socket API takes every address as sockaddr.
const sockaddr* generic(const sockaddr_un& address) {
    return static_cast<const sockaddr*>(static_cast<const void*>(&address));
}

OwnedFd new_socket() {
    return OwnedFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// False if the socket at the address counts as stale. A full backlog (EAGAIN) does not mean that it
// is stale. EACCES does: vgpud gives softgpu's sockets to QEMU's user, so the new softgpu, which is
// another user without capabilities, may not connect to a socket that an earlier softgpu left.
bool is_answered(const sockaddr_un& address) {
    const OwnedFd probe = new_socket();
    if (!probe) return true;
    if (::connect(probe.get(), generic(*vgpu_sealed_address(&address)), sizeof(address)) == 0)
        return true;
    return errno != ECONNREFUSED && errno != ENOENT && errno != EACCES;
}

/// Removes a stale socket file (is_answered()); never removes another kind of file.
Result<> remove_stale(const std::string& path, const sockaddr_un& address) {
    struct stat found {};
    if (::lstat(vgpu_sealed(path.c_str()), &found) != 0) return {};
    if (!S_ISSOCK(found.st_mode))
        return fail(EEXIST, fmt::format("{} exists and is not a socket; remove it", path));
    if (is_answered(address))
        return fail(EADDRINUSE, fmt::format("another server answers at {}", path));
    if (::unlink(vgpu_sealed(path.c_str())) != 0 && errno != ENOENT)
        return fail_errno(errno, fmt::format("cannot remove the stale socket {}", path));
    return {};
}

void collect_fds(msghdr& message, ReceivedFds& fds) {
    std::array<int, kMaxFds> taken{};
    const int count = vgpu_take_passed_fds(&message, taken.data(), taken.size());
    if (count < 0) fds.mark_truncated();
    for (int i = 0; i < count; i++) fds.add(OwnedFd(taken[static_cast<std::size_t>(i)]));
}

Transfer transfer_error(int error) {
    const int code = error == EAGAIN ? EWOULDBLOCK : error;
    return {.bytes = 0, .error = static_cast<std::errc>(code)};
}

}  // namespace

Result<sockaddr_un> address_of(const std::string& path) {
    sockaddr_un address{};
    if (vgpu_socket_address(path.c_str(), &address) == 0) return address;
    std::array<char, 512> words{};
    vgpu_socket_path_error(path.c_str(), words.data(), words.size());
    return fail(ENAMETOOLONG, words.data());
}

void ReceivedFds::add(OwnedFd fd) {
    if (count_ == fds_.size()) {
        is_truncated_ = true;
        return;
    }
    fds_[count_++] = std::move(fd);
}

void ReceivedFds::close_all() {
    for (OwnedFd& fd : all()) fd.reset();
    count_ = 0;
    is_truncated_ = false;
}

Result<OwnedFd> listen_at(const std::string& path) {
    TRY(const sockaddr_un address, address_of(path));
    TRY_VOID(remove_stale(path, address));
    OwnedFd listener = new_socket();
    if (!listener) return fail_errno(errno, "cannot create a socket");
    // fchmod() precedes bind(), so that the file never has a wider mode, whatever the umask is.
    if (::fchmod(listener.get(), kSocketMode) != 0 ||
        ::bind(listener.get(), generic(*vgpu_sealed_address(&address)), sizeof(address)) != 0 ||
        ::listen(listener.get(), kListenBacklog) != 0)
        return fail_errno(errno, fmt::format("cannot listen at {}", path));
    return listener;
}

Result<OwnedFd> accept_client(int listener) {
    OwnedFd client(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!client) return fail_errno(errno, "cannot accept a client");
    return client;
}

/// MSG_CMSG_CLOEXEC makes the received fds close-on-exec at once, so that no program that another
/// thread starts can inherit them.
Transfer receive(int socket, std::span<std::byte> out, ReceivedFds& fds) {
    iovec data{.iov_base = out.data(), .iov_len = out.size()};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMaxFds * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ssize_t got = 0;
    do {
        got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got < 0) return transfer_error(errno);
    collect_fds(message, fds);
    return {.bytes = static_cast<std::size_t>(got)};
}

/// sendmsg() only reads the data, so the const_cast is safe.
Transfer send(int socket, std::span<const std::byte> data, int fd) {
    iovec part{.iov_base = const_cast<std::byte*>(data.data()), .iov_len = data.size()};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (fd >= 0) {
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        cmsghdr* rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(rights), &fd, sizeof(int));
    }
    ssize_t put = 0;
    do {
        put = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (put < 0 && errno == EINTR);
    if (put < 0) return transfer_error(errno);
    return {.bytes = static_cast<std::size_t>(put)};
}

}  // namespace vgpu::softgpu::vfio_user
