// SPDX-License-Identifier: MIT
//
// MessageBuffer: splits a client's stream into messages. fill() takes the bytes of one recvmsg,
// often several posted writes at once; next() returns one message after the other, in place.
// Descriptors belong to the message whose first byte they arrived with.
//
// The kernel ends a recvmsg after the piece of the stream that carried descriptors, and a client
// sends a message and its descriptors together. So descriptors belong to the last message that
// starts in the received bytes. While a message is incomplete, only its rest is requested, so at
// most one message has descriptors waiting.
//
// Not locked; used by Channel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "pf-driver/softgpu/vfio_user/socket.h"

namespace vgpu::softgpu::vfio_user {

/// One message in place; its body and descriptors are not copied.
struct Message {
    Header header;
    std::span<const std::byte> body;
    ReceivedFds* fds = nullptr;  ///< never null
};

/// Reads ahead: one recvmsg may bring many messages, which makes posted writes cheap.
class MessageBuffer {
public:
    enum class Input : std::uint8_t { Data, Nothing, Closed };

    MessageBuffer() : storage_(kReadBytes) {}

    /// Calls recvmsg() once, unless a whole message waits for next() or the stream is broken.
    [[nodiscard]] Input fill(int socket);
    /// The next whole message, with its descriptors in `fds`, which must be empty before. The
    /// message's body is valid until the next fill(). nullopt: call fill() again, or the stream is
    /// broken.
    [[nodiscard]] std::optional<Message> next(ReceivedFds& fds);
    /// True if the size in the next message's header is impossible.
    [[nodiscard]] bool is_broken() const;
    [[nodiscard]] Header broken_header() const;

    /// Keeps the body of the last message valid until unpin(). One pin at a time.
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

    [[nodiscard]] std::size_t missing_bytes() const;
    void make_room(std::size_t bytes);
    [[nodiscard]] std::optional<Header> header_at(std::size_t offset) const;
    [[nodiscard]] std::size_t last_start() const;

    Storage storage_;         // kMaxMessage once a client has sent a long message
    Storage pinned_;          // the storage that a pin keeps; without a pin, spare room
    std::size_t begin_ = 0;   // first byte of the next message
    std::size_t end_ = 0;     // one after the last byte received
    bool is_pinned_ = false;  // a message in storage_ is pinned
    ReceivedFds fds_;
    std::size_t fds_owner_ = 0;  // start of the message to which fds_ belong
};

}  // namespace vgpu::softgpu::vfio_user
