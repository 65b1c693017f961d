// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/vfio_user/channel.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>

#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::softgpu::vfio_user {
namespace {

bool is_possible(const Header& header) {
    return header.size >= sizeof(Header) && header.size <= kMaxMessage;
}

}  // namespace

Channel::Channel(OwnedFd socket)
    : socket_(std::move(socket)),
      buffer_(std::make_unique_for_overwrite<std::byte[]>(kTurnBytes)) {}

std::optional<Header> Channel::header_at(std::size_t offset) const {
    if (end_ - offset < sizeof(Header)) return std::nullopt;
    return load<Header>({buffer_.get() + offset, sizeof(Header)});
}

// Rest of the incomplete message, or as much as one turn allows.
std::size_t Channel::wanted() const {
    const std::size_t have = end_ - begin_;
    if (have == 0) return kTurnBytes;
    const auto header = header_at(begin_);
    const std::size_t size = header ? header->size : sizeof(Header);
    return size > have ? size - have : 0;
}

void Channel::make_room(std::size_t bytes) {
    if (end_ + bytes <= capacity_) return;
    auto larger = std::make_unique_for_overwrite<std::byte[]>(kMaxMessage);
    std::memcpy(larger.get(), buffer_.get(), end_);
    buffer_ = std::move(larger);
    capacity_ = kMaxMessage;
}

std::size_t Channel::last_start(std::size_t from) const {
    std::size_t start = from;
    for (auto header = header_at(start); header && is_possible(*header);
         header = header_at(start)) {
        if (header->size >= end_ - start) break;
        start += header->size;
    }
    return start;
}

Channel::Input Channel::fill() {
    consume();
    if (begin_ != 0) {  // at most one incomplete message is left
        std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
        fds_owner_ -= std::min(fds_owner_, begin_);
        end_ -= begin_;
        begin_ = 0;
    }
    const std::size_t bytes = wanted();
    make_room(bytes);
    const std::size_t before = fds_.count();
    const Transfer got = receive(fd(), {buffer_.get() + end_, bytes}, fds_);
    if (got.error == std::errc::operation_would_block) return Input::Nothing;
    if (got.error != std::errc{} || got.bytes == 0) return Input::Closed;
    end_ += got.bytes;
    if (fds_.count() != before || fds_.is_truncated()) fds_owner_ = last_start(0);
    return Input::Data;
}

void Channel::consume() {
    if (consumed_ == 0) return;
    if (fds_owner_ == begin_) fds_.clear();
    begin_ += consumed_;
    consumed_ = 0;
}

std::optional<Message> Channel::next() {
    consume();
    const auto header = header_at(begin_);
    if (!header || !is_possible(*header) || end_ - begin_ < header->size) return std::nullopt;
    consumed_ = header->size;
    return Message{.header = *header,
                   .body = {buffer_.get() + begin_ + sizeof(Header), header->size - sizeof(Header)},
                   .fds = fds_owner_ == begin_ ? &fds_ : &no_fds_};
}

bool Channel::is_broken() const {
    const auto header = header_at(begin_);
    return header && !is_possible(*header);
}

Header Channel::broken_header() const {
    return header_at(begin_).value_or(Header{});
}

std::errc Channel::enqueue(std::span<const std::byte> rest, int fd) {
    if (unsent_bytes_ + rest.size() > kMaxBacklogBytes) return std::errc::no_buffer_space;
    OwnedFd copy(fd >= 0 ? ::fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1);
    if (fd >= 0 && !copy) return static_cast<std::errc>(errno);
    unsent_.push_back({{rest.begin(), rest.end()}, std::move(copy)});
    unsent_bytes_ += rest.size();
    if (unsent_.size() == 1 && backlog_changed_) backlog_changed_(Backlog::Waiting);
    return {};
}

std::errc Channel::send(std::span<const std::byte> message, int fd) {
    const std::lock_guard lock(send_mutex_);
    if (!unsent_.empty()) return enqueue(message, fd);
    const Transfer put = vfio_user::send(socket_.get(), message, fd);
    if (put.bytes == message.size()) return {};
    if (put.error != std::errc{} && put.error != std::errc::operation_would_block) return put.error;
    return enqueue(message.subspan(put.bytes), put.bytes == 0 ? fd : -1);
}

std::errc Channel::flush() {
    const std::lock_guard lock(send_mutex_);
    while (!unsent_.empty()) {
        Unsent& first = unsent_.front();
        const Transfer put = vfio_user::send(socket_.get(), first.bytes, first.fd.get());
        if (put.error == std::errc::operation_would_block) return {};
        if (put.error != std::errc{}) return put.error;
        unsent_bytes_ -= put.bytes;
        first.fd.reset();
        first.bytes.erase(first.bytes.begin(),
                          first.bytes.begin() + static_cast<std::ptrdiff_t>(put.bytes));
        if (first.bytes.empty()) unsent_.pop_front();
    }
    if (backlog_changed_) backlog_changed_(Backlog::Empty);
    return {};
}

bool Channel::has_backlog() const {
    const std::lock_guard lock(send_mutex_);
    return !unsent_.empty();
}

}  // namespace vgpu::softgpu::vfio_user
