// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/vfio_user/channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <ctime>
#include <utility>

namespace vgpu::softgpu::vfio_user {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

// Waits for `events`, at most until `deadline`. Returns the events that happened; 0: none.
short poll_until(int fd, short events, std::chrono::steady_clock::time_point deadline) {
    const nanoseconds left = deadline - std::chrono::steady_clock::now();
    if (left <= nanoseconds::zero()) return 0;
    const auto whole = std::chrono::duration_cast<seconds>(left);
    const timespec limit{.tv_sec = whole.count(), .tv_nsec = (left - whole).count()};
    pollfd one{.fd = fd, .events = events, .revents = 0};
    return ::ppoll(&one, 1, &limit, nullptr) > 0 ? one.revents : short{0};
}

bool is_reply(const Message& message) {
    return (message.header.flags & kTypeMask) == kTypeReply;
}

}  // namespace

// --- input ---

MessageBuffer::Input Channel::fill() {
    const std::lock_guard lock(input_mutex_);
    return read_by_ == ReadBy::IoThread ? buffer_.fill(fd()) : Input::Nothing;
}

std::optional<Message> Channel::next(ReplySink& replies) {
    const std::lock_guard lock(input_mutex_);
    buffer_.unpin();
    served_.fds.clear();
    if (queue_.empty()) return next_in_place(replies);
    served_ = std::move(queue_.front());
    queue_.pop_front();
    queued_bytes_ -= sizeof(Queued) + served_.body.size();
    queued_fds_ -= served_.fds.count();
    return Message{.header = served_.header, .body = served_.body, .fds = &served_.fds};
}

/// Passes replies to the calls that wait for them; returns only other messages.
std::optional<Message> Channel::next_in_place(ReplySink& replies) {
    auto message = buffer_.next(served_.fds);
    while (message && is_reply(*message)) {
        replies.handle_reply(*message);
        served_.fds.clear();
        message = buffer_.next(served_.fds);
    }
    if (message) buffer_.pin();
    return message;
}

bool Channel::is_broken() const {
    const std::lock_guard lock(input_mutex_);
    return queue_.empty() && buffer_.is_broken();
}

Header Channel::broken_header() const {
    const std::lock_guard lock(input_mutex_);
    return buffer_.broken_header();
}

/// Takes both locks, so that either lock is enough to read read_by_.
void Channel::set_reader(ReadBy reader) {
    const std::scoped_lock lock(input_mutex_, send_mutex_);
    read_by_ = reader;
    update_interest();
}

bool Channel::is_queue_full() const {
    return queued_bytes_ >= kMaxQueuedBytes || queued_fds_ >= kMaxQueuedFds;
}

void Channel::enqueue(const Message& message) {
    queued_bytes_ += sizeof(Queued) + message.body.size();
    queued_fds_ += message.fds->count();
    queue_.push_back({.header = message.header,
                      .body = {message.body.begin(), message.body.end()},
                      .fds = std::move(*message.fds)});
    if (queue_.size() == 1) call_io_thread();
}

void Channel::call_io_thread() {
    const std::lock_guard lock(send_mutex_);
    if (loop_.serve) loop_.serve();
}

Channel::Reader::Distributed Channel::Reader::distribute(ReplySink& replies) {
    while (!channel_.is_queue_full()) {
        ReceivedFds fds;
        const auto message = channel_.buffer_.next(fds);
        if (!message) return Distributed::All;
        if (is_reply(*message))
            replies.handle_reply(*message);
        else
            channel_.enqueue(*message);
    }
    return Distributed::UntilFull;
}

Channel::Reader::Outcome Channel::Reader::read(ReplySink& replies) {
    const std::lock_guard lock(channel_.input_mutex_);
    if (distribute(replies) == Distributed::UntilFull) return Outcome::Full;
    if (channel_.buffer_.is_broken()) {
        channel_.call_io_thread();
        return Outcome::Closed;
    }
    const Input got = channel_.buffer_.fill(channel_.fd());
    if (got == Input::Closed) return Outcome::Closed;
    if (got == Input::Nothing) return Outcome::Nothing;
    return distribute(replies) == Distributed::UntilFull ? Outcome::Full : Outcome::Data;
}

/// Also sends the backlog. Otherwise client and server could each wait for ever for the other to
/// read.
void Channel::Reader::wait_until(std::chrono::steady_clock::time_point deadline) {
    const bool had_backlog = channel_.has_backlog();
    const short events = had_backlog ? POLLIN | POLLOUT : POLLIN;
    const short happened = poll_until(channel_.fd(), events, deadline);
    if ((happened & POLLOUT) == 0 || channel_.flush() != std::errc{}) return;
    // The io thread stopped serving this client because of the backlog: wake it up.
    if (had_backlog && !channel_.has_backlog()) channel_.call_io_thread();
}

// --- output ---

void Channel::set_loop(Loop loop) {
    const std::lock_guard lock(send_mutex_);
    loop_ = std::move(loop);
}

void Channel::pause_input(bool is_paused) {
    const std::lock_guard lock(send_mutex_);
    is_input_paused_ = is_paused;
    update_interest();
}

void Channel::shut_down() {
    ::shutdown(fd(), SHUT_RDWR);
}

void Channel::update_interest() {
    if (!loop_.watch) return;
    if (has_backlog_) return loop_.watch(Interest::Output);
    const bool io_thread_reads = read_by_ == ReadBy::IoThread && !is_input_paused_;
    loop_.watch(io_thread_reads ? Interest::Input : Interest::Nothing);
}

void Channel::backlog_changed() {
    if (has_backlog_ == !unsent_.empty()) return;
    has_backlog_ = !unsent_.empty();
    update_interest();
}

/// Duplicates the descriptor, because the caller may close it after send().
std::errc Channel::add_backlog(std::span<const std::byte> rest, int fd) {
    if (unsent_bytes_ + rest.size() > kMaxBacklogBytes) return std::errc::no_buffer_space;
    OwnedFd copy(fd >= 0 ? ::fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1);
    if (fd >= 0 && !copy) return static_cast<std::errc>(errno);
    unsent_.push_back({{rest.begin(), rest.end()}, std::move(copy)});
    unsent_bytes_ += rest.size();
    backlog_changed();
    return {};
}

/// If there is a backlog, the message goes to its end, because messages must stay in order.
std::errc Channel::send(std::span<const std::byte> message, int fd) {
    const std::lock_guard lock(send_mutex_);
    if (!unsent_.empty()) return add_backlog(message, fd);
    const Transfer put = vfio_user::send(socket_.get(), message, fd);
    if (put.bytes == message.size()) return {};
    if (put.error != std::errc{} && put.error != std::errc::operation_would_block) return put.error;
    return add_backlog(message.subspan(put.bytes), put.bytes == 0 ? fd : -1);
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
    backlog_changed();
    return {};
}

}  // namespace vgpu::softgpu::vfio_user
