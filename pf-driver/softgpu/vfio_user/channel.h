// SPDX-License-Identifier: MIT
//
// Channel: a connected client as a stream of messages. Reading takes what one recvmsg brings, often
// several posted writes at once, and cuts it into messages; descriptors belong to the message whose
// first byte they arrived with. Writing sends each message whole; what the socket does not take at
// once waits in a bounded backlog.
//
// How descriptors find their message: the kernel ends a recvmsg after the piece of the stream that
// carried descriptors, and a client sends a message and its descriptors together, so they belong to
// the last message that starts in what was received. While a message is incomplete only its rest
// is asked for, so at most one message has descriptors waiting.
//
// fill() and next() are called on the io thread, send() and flush() on any.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "pf-driver/softgpu/vfio_user/socket.h"

namespace vgpu::softgpu::vfio_user {

/// Valid until the next call of next() or fill().
struct Message {
    Header header;
    std::span<const std::byte> body;
    ReceivedFds* fds = nullptr;  ///< never null
};

class Channel {
public:
    enum class Input : std::uint8_t { Data, Nothing, Closed };
    enum class Backlog : std::uint8_t { Empty, Waiting };

    explicit Channel(OwnedFd socket);

    /// Called with the send lock held whenever the backlog starts or ends.
    void on_backlog(std::function<void(Backlog)> changed) { backlog_changed_ = std::move(changed); }

    [[nodiscard]] int fd() const { return socket_.get(); }

    /// One recvmsg.
    [[nodiscard]] Input fill();
    /// The next whole message; nothing: fill() again, or the stream is broken.
    [[nodiscard]] std::optional<Message> next();
    /// The next message's header says it is no message: its size is impossible.
    [[nodiscard]] bool is_broken() const;
    [[nodiscard]] Header broken_header() const;

    /// Header and body as one message. no_buffer_space: the backlog is full, nothing was queued;
    /// anything else: the client is gone.
    [[nodiscard]] std::errc send(std::span<const std::byte> message, int fd = -1);
    [[nodiscard]] std::errc flush();
    [[nodiscard]] bool has_backlog() const;

private:
    struct Unsent {
        std::vector<std::byte> bytes;
        OwnedFd fd;
    };
    static constexpr std::size_t kTurnBytes = 64 * 1024;
    static constexpr std::size_t kMaxBacklogBytes = 4 * kMaxMessage;

    [[nodiscard]] std::size_t wanted() const;
    void make_room(std::size_t bytes);
    [[nodiscard]] std::optional<Header> header_at(std::size_t offset) const;
    [[nodiscard]] std::size_t last_start(std::size_t from) const;
    void consume();
    [[nodiscard]] std::errc enqueue(std::span<const std::byte> rest, int fd);

    const OwnedFd socket_;
    std::unique_ptr<std::byte[]> buffer_;
    std::size_t capacity_ = kTurnBytes;  // kMaxMessage once a client has sent a long message
    std::size_t begin_ = 0;              // first byte of the next message
    std::size_t end_ = 0;                // one behind the last byte received
    std::size_t consumed_ = 0;           // size of the message next() gave out
    ReceivedFds fds_;
    std::size_t fds_owner_ = 0;  // start of the message fds_ belong to
    ReceivedFds no_fds_;

    mutable std::mutex send_mutex_;  // guards what follows
    std::deque<Unsent> unsent_;
    std::size_t unsent_bytes_ = 0;
    std::function<void(Backlog)> backlog_changed_;
};

}  // namespace vgpu::softgpu::vfio_user
