// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/vfio_user/message_buffer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::softgpu::vfio_user {
namespace {

bool is_possible(const Header& header) {
    return header.size >= sizeof(Header) && header.size <= kMaxMessage;
}

}  // namespace

std::optional<Header> MessageBuffer::header_at(std::size_t offset) const {
    if (end_ - offset < sizeof(Header)) return std::nullopt;
    return load<Header>({storage_.data.get() + offset, sizeof(Header)});
}

std::size_t MessageBuffer::missing_bytes() const {
    const std::size_t have = end_ - begin_;
    if (have == 0) return kReadBytes;
    const auto header = header_at(begin_);
    const std::size_t size = header ? header->size : sizeof(Header);
    return size > have ? size - have : 0;
}

// If a message is pinned, swaps the two storages and moves only the unread bytes.
void MessageBuffer::make_room(std::size_t bytes) {
    const std::size_t have = end_ - begin_;
    const std::size_t needed = have + bytes;
    const std::byte* const rest = storage_.data.get() + begin_;
    if (std::exchange(is_pinned_, false)) std::swap(storage_, pinned_);
    Storage outgrown;  // keeps the memory of `rest` until the move
    if (storage_.size < needed)
        outgrown =
            std::exchange(storage_, Storage(needed <= kReadBytes ? kReadBytes : kMaxMessage));
    std::memmove(storage_.data.get(), rest, have);
    fds_owner_ -= std::min(fds_owner_, begin_);
    begin_ = 0;
    end_ = have;
}

/// Follows the headers from the front of the buffer.
std::size_t MessageBuffer::last_start() const {
    std::size_t start = 0;
    for (auto header = header_at(start); header && is_possible(*header);
         header = header_at(start)) {
        if (header->size >= end_ - start) break;
        start += header->size;
    }
    return start;
}

MessageBuffer::Input MessageBuffer::fill(int socket) {
    const std::size_t bytes = missing_bytes();
    if (bytes == 0 || is_broken()) return Input::Data;
    make_room(bytes);
    const std::size_t before = fds_.count();
    const Transfer got = receive(socket, {storage_.data.get() + end_, bytes}, fds_);
    if (got.error == std::errc::operation_would_block) return Input::Nothing;
    if (got.error != std::errc{} || got.bytes == 0) return Input::Closed;
    end_ += got.bytes;
    if (fds_.count() != before || fds_.is_truncated()) fds_owner_ = last_start();
    return Input::Data;
}

std::optional<Message> MessageBuffer::next(ReceivedFds& fds) {
    const auto header = header_at(begin_);
    if (!header || !is_possible(*header) || end_ - begin_ < header->size) return std::nullopt;
    if (fds_owner_ == begin_ && !fds_.is_empty()) fds = std::move(fds_);
    const std::span body{storage_.data.get() + begin_ + sizeof(Header),
                         header->size - sizeof(Header)};
    begin_ += header->size;
    return Message{.header = *header, .body = body, .fds = &fds};
}

bool MessageBuffer::is_broken() const {
    const auto header = header_at(begin_);
    return header && !is_possible(*header);
}

Header MessageBuffer::broken_header() const {
    return header_at(begin_).value_or(Header{});
}

}  // namespace vgpu::softgpu::vfio_user
