// SPDX-License-Identifier: MIT
//
// MessageBuffer: splits a client's stream into messages. fill() receives bytes with one recvmsg(),
// often several posted writes at once. Each next() returns one message, without a copy. Descriptors
// belong to the message that they were sent with.
//
// To find that message: a client sends descriptors with the start of their message, and the kernel
// ends a recvmsg() after data with descriptors. So descriptors belong to the last message that
// starts in the received bytes. While a message is incomplete, fill() requests only the rest of
// this message or of its header, so at most one message at a time has stored descriptors.
//
// MessageBuffer has no lock: Channel calls it with the channel's input lock held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "pf-driver/softgpu/vfio_user/socket.h"

namespace vgpu::softgpu::vfio_user {

/// One message. Body and descriptors are not copied; the function that returns a Message defines
/// how long they are valid.
struct Message {
    Header header;
    std::span<const std::byte> body;
    ReceivedFds* fds = nullptr;  ///< never null
};

class MessageBuffer {
public:
    /// Result of fill(). Data: call next(). Nothing: the socket has no data now. Closed: the client
    /// has closed the connection, or an error occurred.
    enum class Input : std::uint8_t { Data, Nothing, Closed };

    MessageBuffer() : storage_(kReadBytes) {}

    /// Calls recvmsg() once. If a whole message waits for next() or the stream is broken, returns
    /// Data without calling recvmsg().
    [[nodiscard]] Input fill(int socket);
    /// The next whole message. Moves its descriptors to `fds`, which must be empty. The body is
    /// valid until the next fill(). nullopt: call fill() again, or the stream is broken.
    [[nodiscard]] std::optional<Message> next(ReceivedFds& fds);
    /// True if the next header has an impossible size.
    [[nodiscard]] bool is_broken() const;
    /// The next header, which has the impossible size if is_broken(); all 0 if it is incomplete.
    [[nodiscard]] Header broken_header() const;

    /// Until unpin(), the body of the message that next() returned last stays valid. Only one
    /// message may be pinned at a time.
    void pin() { is_pinned_ = true; }
    void unpin() { is_pinned_ = false; }

private:
    struct Storage {
        Storage() = default;
        explicit Storage(std::size_t bytes)
            : data(std::make_unique_for_overwrite<std::byte[]>(bytes)), size(bytes) {}
        std::unique_ptr<std::byte[]> data;
        std::size_t size = 0;
    };
    static constexpr std::size_t kReadBytes = 64 * 1024;

    /// Number of bytes that complete the next message or its header; 0 if the message is complete,
    /// kReadBytes if none has begun.
    [[nodiscard]] std::size_t missing_bytes() const;
    /// Moves the unread bytes to the front, with room for `bytes` more. A pinned message stays
    /// where it is.
    void make_room(std::size_t bytes);
    [[nodiscard]] std::optional<Header> header_at(std::size_t offset) const;
    /// Offset of the last message that starts in the buffer. Call after make_room().
    [[nodiscard]] std::size_t last_start() const;

    Storage storage_;         // size: kReadBytes; kMaxMessage after a long message
    Storage pinned_;          // holds a pinned message after make_room(); otherwise spare
    std::size_t begin_ = 0;   // first byte of the next message
    std::size_t end_ = 0;     // one after the last byte received
    bool is_pinned_ = false;  // true: a message in storage_ is pinned
    ReceivedFds fds_;
    std::size_t fds_owner_ = 0;  // start of the message to which fds_ belong
};

}  // namespace vgpu::softgpu::vfio_user
