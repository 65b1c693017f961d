// SPDX-License-Identifier: MIT
//
// Channel: the connection to one client, as a stream of messages. The io thread serves the client's
// requests. Any thread may send a request to the client and wait for the reply (ClientMemory). A
// waiting thread may hold a lock for which the io thread waits, so the waiting thread reads the
// socket itself, with a Reader:
//
//  no thread waits  socket --> io thread, which serves requests without a copy
//  a thread waits   socket --> Reader --> replies, to the calls that wait for them
//                                    \--> requests, copied, in order --> queue --> io thread
//
// While a Reader exists, the io thread does not read the socket, and its event loop does not watch
// the socket for input. The queue is bounded: if it is full, the waiting thread must destroy its
// Reader, so that the io thread reads again.
//
// send() never blocks. The part of a message that the socket does not accept at once goes to a
// bounded backlog and is sent later. If the backlog is full, send() fails.
//
// fill() and next() are called on the io thread; any thread may call all other functions.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "pf-driver/softgpu/base/pi_mutex.h"
#include "pf-driver/softgpu/vfio_user/message_buffer.h"

namespace vgpu::softgpu::vfio_user {

/// Session and ClientMemory share a Channel. The socket is closed when both have released it.
class Channel {
public:
    using Input = MessageBuffer::Input;
    /// The events for which the event loop watches the socket. Output excludes Input, because the
    /// server does not read requests of a client that does not read its replies.
    enum class Interest : std::uint8_t { Nothing, Input, Output };
    /// The event loop that watches the socket. Both functions are called on any thread, with the
    /// send lock held.
    struct Loop {
        std::function<void(Interest)> watch;  ///< changes the watched events
        std::function<void()> serve;          ///< makes the io thread serve this client
    };
    /// Receives the replies. The thread that reads the socket calls handle_reply() before it
    /// releases the input lock. So when Reader::read() returns, handle_reply() has been called for
    /// every reply that any thread has received. Exception: if read() returns Full, received
    /// messages may be left in the buffer.
    class ReplySink {
    public:
        virtual ~ReplySink() = default;
        virtual void handle_reply(const Message& reply) = 0;
    };
    class Reader;

    explicit Channel(OwnedFd socket) : socket_(std::move(socket)) {}

    /// Replaces the event loop; after the return, the previous loop is not called any more. Empty
    /// functions: no loop.
    void set_loop(Loop loop);
    /// While paused, the event loop does not watch for input. A Reader still reads.
    void pause_input(bool is_paused);
    /// Shuts down both directions of the socket. The client, and all threads that wait for input,
    /// see the end of the stream.
    void shut_down();

    [[nodiscard]] int fd() const { return socket_.get(); }

    /// Reads the socket with at most one recvmsg(). Returns Nothing while a Reader exists.
    [[nodiscard]] Input fill();
    /// The next message that is not a reply; valid until the next call of next(). Passes replies to
    /// `replies`. nullopt: no whole message is left, or the stream is broken.
    [[nodiscard]] std::optional<Message> next(ReplySink& replies);
    /// True if the header after all messages that next() has returned has an impossible size.
    [[nodiscard]] bool is_broken() const;
    /// The header with the impossible size. Call only if is_broken().
    [[nodiscard]] Header broken_header() const;

    /// Sends `message` (header and body), with descriptor `fd` (-1: none), which stays the
    /// caller's. no_buffer_space: the backlog is full, and no byte of the message was sent.
    /// Another error: for example, the client is gone, or softgpu is out of descriptors.
    [[nodiscard]] std::errc send(std::span<const std::byte> message, int fd = -1);
    /// Sends as much of the backlog as the socket accepts. An error means that the client is gone.
    [[nodiscard]] std::errc flush();
    /// True while the backlog is not empty. Meanwhile the client's requests are not served.
    [[nodiscard]] bool has_backlog() const { return has_backlog_; }

private:
    /// The unsent rest of a message, with its descriptor if even the first byte is unsent.
    struct Unsent {
        std::vector<std::byte> bytes;
        OwnedFd fd;
    };
    /// A message that a Reader has read for the io thread.
    struct Queued {
        Header header;
        std::vector<std::byte> body;
        ReceivedFds fds;
    };
    enum class ReadBy : std::uint8_t { IoThread, Reader };

    /// Limits of the backlog (for a client that reads no replies) and of the queue (for a client
    /// that sends too fast).
    static constexpr std::size_t kMaxBacklogBytes = 4 * kMaxMessage;
    static constexpr std::size_t kMaxQueuedBytes = 4 * kMaxMessage;
    static constexpr std::size_t kMaxQueuedFds = 4 * kMaxFds;

    void set_reader(ReadBy reader);
    [[nodiscard]] std::optional<Message> next_in_place(ReplySink& replies);
    [[nodiscard]] bool is_queue_full() const;
    void enqueue(const Message& message);
    void call_io_thread();
    [[nodiscard]] std::errc add_backlog(std::span<const std::byte> rest, int fd);
    void backlog_changed();
    void update_interest();

    const OwnedFd socket_;

    mutable PiMutex input_mutex_;  // guards the members below; taken before send_mutex_
    MessageBuffer buffer_;
    std::deque<Queued> queue_;
    std::size_t queued_bytes_ = 0;
    std::size_t queued_fds_ = 0;
    Queued served_;  // the message that next() returned; if it was not queued, only its fds

    PiMutex send_mutex_;  // guards the members below
    std::deque<Unsent> unsent_;
    std::size_t unsent_bytes_ = 0;
    std::atomic<bool> has_backlog_{false};
    Loop loop_;
    bool is_input_paused_ = false;
    ReadBy read_by_ = ReadBy::IoThread;  // writers hold both locks; readers hold either
};

/// Reads the socket in place of the io thread, as long as the Reader exists. Only one Reader may
/// exist at a time. Any thread may create it, even the io thread while it serves a message; that
/// message stays valid.
class Channel::Reader {
public:
    /// Closed: the client is gone or the stream is broken, so no reply will come.
    enum class Outcome : std::uint8_t {
        Data,     ///< data arrived; there may be more
        Nothing,  ///< no data now; call wait_until()
        Full,     ///< the queue is full: the io thread must serve requests first
        Closed,
    };
    explicit Reader(Channel& channel) : channel_(channel) { channel_.set_reader(ReadBy::Reader); }
    ~Reader() { channel_.set_reader(ReadBy::IoThread); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    /// Handles the messages that have arrived, with at most one recvmsg(). Passes replies to
    /// `replies`; queues all other messages for the io thread.
    [[nodiscard]] Outcome read(ReplySink& replies);
    /// Waits, at most until `deadline`, for data to read. Sends the backlog when the socket accepts
    /// it.
    void wait_until(std::chrono::steady_clock::time_point deadline);

private:
    enum class Distributed : std::uint8_t { All, UntilFull };
    /// Passes replies to `replies` and queues all other messages, until the queue is full or no
    /// whole message is left.
    [[nodiscard]] Distributed distribute(ReplySink& replies);

    Channel& channel_;
};

}  // namespace vgpu::softgpu::vfio_user
