// SPDX-License-Identifier: MIT
//
// Channel: a connected client as a stream of messages. The io thread, which serves the client's
// requests, shares the channel with threads that sent the client a request and wait for the reply
// (ClientMemory). Such a thread may hold a lock that the io thread waits for, so it reads the
// socket itself:
//
//  no thread waits  socket --> io thread, which serves requests in place
//  a thread waits   socket --> Reader --> replies to their calls
//                                    \--> requests, copied, in order --> queue --> io thread
//
// While a Reader exists, the io thread gets nothing from the socket, and its loop does not watch
// the socket for input. The queue is bounded: if it is full, the Reader must leave reading to the
// io thread.
//
// A message is always sent whole: the part that the socket does not take at once waits in a bounded
// backlog.
//
// fill() and next() are called on the io thread, everything else on any thread.
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

#include "pf-driver/softgpu/vfio_user/message_buffer.h"

namespace vgpu::softgpu::vfio_user {

/// Shared by Session and ClientMemory; the socket closes with the last of them.
class Channel {
public:
    using Input = MessageBuffer::Input;
    /// The events for which the loop watches the socket. While a client does not read its replies,
    /// the server does not read that client's requests, so Output excludes Input.
    enum class Interest : std::uint8_t { Nothing, Input, Output };
    /// The loop that watches the socket. Any thread calls these functions, with the send lock held.
    struct Loop {
        std::function<void(Interest)> watch;
        std::function<void()> serve;  ///< serves the channel although the socket reports no input
    };
    /// Receives the replies. Any thread that reads the socket calls it, with the input lock held.
    /// So when a Reader finds nothing more to read, every reply read before has been delivered.
    class ReplySink {
    public:
        virtual ~ReplySink() = default;
        virtual void handle_reply(const Message& reply) = 0;
    };
    class Reader;

    explicit Channel(OwnedFd socket) : socket_(std::move(socket)) {}

    /// When this returns, the previous loop is not called any more. Empty functions: no loop.
    void set_loop(Loop loop);
    /// While paused, the loop does not watch for input; Readers continue.
    void pause_input(bool is_paused);
    /// Shuts down both directions of the socket; the client and all threads that wait for input see
    /// the end.
    void shut_down();

    [[nodiscard]] int fd() const { return socket_.get(); }

    /// Calls recvmsg() at most once. Returns Nothing while another thread reads.
    [[nodiscard]] Input fill();
    /// The next message that is not a reply, valid until the next call. nullopt: no message is left
    /// until fill() receives one, or the stream is broken.
    [[nodiscard]] std::optional<Message> next(ReplySink& replies);
    /// True if next() has returned all good messages and the size in the following header is
    /// impossible.
    [[nodiscard]] bool is_broken() const;
    [[nodiscard]] Header broken_header() const;

    /// Sends header and body as one message. no_buffer_space: the backlog is full, and the message
    /// is not sent. Any other error: the client is gone, or softgpu is out of descriptors.
    [[nodiscard]] std::errc send(std::span<const std::byte> message, int fd = -1);
    /// Sends as much of the backlog as the socket takes. An error: the client is gone.
    [[nodiscard]] std::errc flush();
    /// True while parts of messages wait to be sent; the client is not served meanwhile.
    [[nodiscard]] bool has_backlog() const { return has_backlog_; }

private:
    /// The rest of a message; includes its descriptor if the first byte is still unsent.
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

    /// Limits of what the server keeps for a client that reads no replies or sends too fast.
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

    mutable std::mutex input_mutex_;  // guards the members below; taken before send_mutex_
    MessageBuffer buffer_;
    std::deque<Queued> queue_;
    std::size_t queued_bytes_ = 0;
    std::size_t queued_fds_ = 0;
    Queued served_;  // the message that next() returned; of a message in place, only its fds

    std::mutex send_mutex_;  // guards the members below
    std::deque<Unsent> unsent_;
    std::size_t unsent_bytes_ = 0;
    std::atomic<bool> has_backlog_{false};
    Loop loop_;
    bool is_input_paused_ = false;
    ReadBy read_by_ = ReadBy::IoThread;  // changed with both locks held
};

/// While a Reader exists, the Reader and not the io thread reads the socket. Only one Reader exists
/// at a time. Any thread may create a Reader. The io thread may do so while it serves a message,
/// which stays valid.
class Channel::Reader {
public:
    enum class Outcome : std::uint8_t {
        Data,     ///< something came; there may be more
        Nothing,  ///< nothing to read now; call wait_until()
        Full,     ///< the io thread must serve requests before more can be read
        Closed,   ///< no further reply will come
    };
    explicit Reader(Channel& channel) : channel_(channel) { channel_.set_reader(ReadBy::Reader); }
    ~Reader() { channel_.set_reader(ReadBy::IoThread); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    /// Handles what has arrived, with at most one recvmsg(). Replies go to `replies`; all other
    /// messages wait for the io thread.
    [[nodiscard]] Outcome read(ReplySink& replies);
    /// Waits, at most until `deadline`, for something to read, or for room to send the backlog.
    void wait_until(std::chrono::steady_clock::time_point deadline);

private:
    enum class Sorted : std::uint8_t { All, UntilFull };
    [[nodiscard]] Sorted sort(ReplySink& replies);

    Channel& channel_;
};

}  // namespace vgpu::softgpu::vfio_user
