// SPDX-License-Identifier: MIT
//
// Unix stream sockets that carry descriptors: listening, receiving, sending. All calls are
// non-blocking and report errors as errno values. These functions know no vfio-user messages. Used
// by Server and Channel.
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

/// Descriptors that came with a message; closed unless moved out. At most kMaxFds; the excess is
/// closed and sets is_truncated().
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
    /// True if more descriptors came than a message may carry; the excess is closed already.
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

/// ENAMETOOLONG, with the length and the limit, if no socket can have this path.
[[nodiscard]] Result<sockaddr_un> address_of(const std::string& path);

/// The result of one system call.
struct Transfer {
    std::size_t bytes = 0;
    std::errc error{};  ///< operation_would_block: try again when the socket is ready
};

/// Binds and listens at `path`, mode 0600. Replaces a socket that no server answers at. Errors:
/// ENAMETOOLONG; EEXIST: the file at `path` is not a socket; EADDRINUSE: a server answers at
/// `path`; or another errno.
[[nodiscard]] Result<OwnedFd> listen_at(const std::string& path);
/// Accepts a client that waits; EAGAIN if no client waits. The new socket is non-blocking and
/// close-on-exec.
[[nodiscard]] Result<OwnedFd> accept_client(int listener);

/// Receives with one recvmsg(). 0 bytes without an error: the other side has closed the connection.
[[nodiscard]] Transfer receive(int socket, std::span<std::byte> out, ReceivedFds& fds);
/// Sends with one sendmsg(), which may take only a part of `data`. `fd` (-1: none) is sent with the
/// first byte.
[[nodiscard]] Transfer send(int socket, std::span<const std::byte> data, int fd);

}  // namespace vgpu::softgpu::vfio_user
