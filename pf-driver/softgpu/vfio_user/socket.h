// SPDX-License-Identifier: MIT
//
// Functions to listen, accept, receive and send on Unix stream sockets that carry descriptors. All
// calls are non-blocking and report errors as errno values. They do not depend on the format of
// vfio-user messages. Server, Channel and MessageBuffer use them.
#pragma once

#include <sys/un.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "pf-driver/softgpu/base/owned_fd.h"
#include "pf-driver/softgpu/base/result.h"
#include "pf-driver/softgpu/vfio_user/protocol.h"

namespace vgpu::softgpu::vfio_user {

/// Descriptors that arrived with a message; closed unless moved out. Holds at most kMaxFds.
class ReceivedFds {
public:
    ReceivedFds() = default;
    ReceivedFds(ReceivedFds&& other) noexcept
        : fds_(std::move(other.fds_)),
          count_(std::exchange(other.count_, 0)),
          is_truncated_(std::exchange(other.is_truncated_, false)) {}
    ReceivedFds& operator=(ReceivedFds&& other) noexcept {
        fds_ = std::move(other.fds_);
        count_ = std::exchange(other.count_, 0);
        is_truncated_ = std::exchange(other.is_truncated_, false);
        return *this;
    }

    [[nodiscard]] std::span<OwnedFd> all() { return {fds_.data(), count_}; }
    [[nodiscard]] std::size_t count() const { return count_; }
    [[nodiscard]] bool is_empty() const { return count_ == 0 && !is_truncated_; }
    /// True if descriptors were lost, because more than kMaxFds arrived or softgpu had reached its
    /// limit of descriptors. Lost descriptors are closed.
    [[nodiscard]] bool is_truncated() const { return is_truncated_; }
    void add(OwnedFd fd);
    void mark_truncated() { is_truncated_ = true; }
    void clear() {
        if (!is_empty()) close_all();
    }

private:
    void close_all();

    std::array<OwnedFd, kMaxFds> fds_;
    std::size_t count_ = 0;
    bool is_truncated_ = false;
};

/// The socket address of `path`. ENAMETOOLONG if `path` is too long for a socket; the message has
/// the length and the limit.
[[nodiscard]] Result<sockaddr_un> address_of(const std::string& path);

/// The result of one recvmsg() or sendmsg().
struct Transfer {
    std::size_t bytes = 0;
    std::errc error{};  ///< operation_would_block: try again when the socket is ready
};

/// Makes a listening socket at `path`, mode 0600. Replaces a stale socket file: one at which no
/// server answers, or to which softgpu may not connect (EACCES). Errors: ENAMETOOLONG; EEXIST: the
/// file at `path` is not a socket; EADDRINUSE: the socket at `path` is not stale; or another errno.
[[nodiscard]] Result<OwnedFd> listen_at(const std::string& path);
/// Accepts a pending connection. EAGAIN if none is pending, or another errno of accept4(). The new
/// socket is non-blocking and close-on-exec.
[[nodiscard]] Result<OwnedFd> accept_client(int listener);

/// Receives with one recvmsg(), and adds descriptors to `fds`. 0 bytes without an error: the other
/// side has closed the connection.
[[nodiscard]] Transfer receive(int socket, std::span<std::byte> out, ReceivedFds& fds);
/// Sends with one sendmsg(), which may send only a part of `data`. `fd` (-1: none) is sent with the
/// first byte.
[[nodiscard]] Transfer send(int socket, std::span<const std::byte> data, int fd);

}  // namespace vgpu::softgpu::vfio_user
