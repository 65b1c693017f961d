// SPDX-License-Identifier: MIT
//
// Channel: a connected client as a stream of messages. The io thread, which serves the client's
// requests, shares it with threads that sent the client a request themselves and wait for the reply
// (ClientMemory). Such a thread may hold a lock that the io thread waits for, so it reads the
// socket itself:
//
//  no thread waits  socket --> io thread, which serves requests in place
//  a thread waits   socket --> Reader --> replies to their calls
//                                    \--> requests, copied, in order --> queue --> io thread
//
// While a Reader exists, the io thread gets nothing from the socket and its loop does not watch it
// for input. The queue is bounded: if it is full, the Reader must leave reading to the io thread.
//
// Writing sends each message whole; the part that the socket does not take at once waits in a
// bounded backlog.
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
    /// The events to watch the socket for. While a client does not read its replies, the server
    /// does not read its requests.
    enum class Interest : std::uint8_t { Nothing, Input, Output };
    /// The loop that watches the socket. Called on any thread, with the send lock held.
    struct Loop {
        std::function<void(Interest)> watch;
        std::function<void()> serve;  ///< messages wait for the io thread, not in the socket
    };
    /// Receives the replies, whichever thread reads them. Called on any thread, with the input lock
    /// held: when a Reader finds nothing more to read, every reply read before has been delivered.
    class ReplySink {
    public:
        virtual ~ReplySink() = default;
        virtual void take_reply(const Message& reply) = 0;
    };
    class Reader;

    explicit Channel(OwnedFd socket) : socket_(std::move(socket)) {}

    /// When this returns, the previous loop is not called any more. Empty functions: no loop.
    void set_loop(Loop loop);
    /// While held, the loop does not watch for input; Readers continue.
    void hold_input(bool is_held);
    /// Ends both directions: for the client, and for every thread that waits for input.
    void shut_down();

    [[nodiscard]] int fd() const { return socket_.get(); }

    /// Calls recvmsg() once; does nothing while another thread reads.
    [[nodiscard]] Input fill();
    /// The next message that is not a reply, valid until the next call. None: call fill() again, or
    /// the stream is broken.
    [[nodiscard]] std::optional<Message> next(ReplySink& replies);
    /// The size in the next message's header is impossible.
    [[nodiscard]] bool is_broken() const;
    [[nodiscard]] Header broken_header() const;

    /// Sends header and body as one message. no_buffer_space: the backlog is full, nothing was
    /// queued; any other error: the client is gone.
    [[nodiscard]] std::errc send(std::span<const std::byte> message, int fd = -1);
    [[nodiscard]] std::errc flush();
    /// Any thread. While true, the client is not served.
    [[nodiscard]] bool has_backlog() const { return has_backlog_; }

private:
    /// The rest of a message; includes its descriptor if the first byte is still unsent.
    struct Unsent {
        std::vector<std::byte> bytes;
        OwnedFd fd;
    };
    /// A message for another thread than its reader.
    struct Queued {
        Header header;
        std::vector<std::byte> body;
        ReceivedFds fds;
    };
    enum class ReadBy : std::uint8_t { IoThread, Reader };

    /// Limits of the data that the server keeps for a client that does not read or wait.
    static constexpr std::size_t kMaxBacklogBytes = 4 * kMaxMessage;
    static constexpr std::size_t kMaxQueuedBytes = 4 * kMaxMessage;
    static constexpr std::size_t kMaxQueuedFds = 4 * kMaxFds;

    void hand_reading_to(ReadBy reader);
    [[nodiscard]] std::optional<Message> next_in_place(ReplySink& replies);
    [[nodiscard]] bool is_queue_full() const;
    void enqueue(const Message& message);
    void call_io_thread();
    [[nodiscard]] std::errc put_off(std::span<const std::byte> rest, int fd);
    void backlog_changed();
    void update_interest();

    const OwnedFd socket_;

    mutable std::mutex input_mutex_;  // guards the members below; taken before send_mutex_
    MessageBuffer buffer_;
    std::deque<Queued> queue_;
    std::size_t queued_bytes_ = 0;
    std::size_t queued_fds_ = 0;
    Queued served_;  // the message that next() gave out; if in place, only its descriptors

    std::mutex send_mutex_;  // guards the members below
    std::deque<Unsent> unsent_;
    std::size_t unsent_bytes_ = 0;
    std::atomic<bool> has_backlog_{false};
    Loop loop_;
    bool is_held_ = false;
    ReadBy read_by_ = ReadBy::IoThread;  // changed with both locks held
};

/// While a Reader exists, it reads the socket instead of the io thread. Only one exists at a time.
/// Any thread may make one, also the io thread in a device call: its current message stays valid.
class Channel::Reader {
public:
    enum class Outcome : std::uint8_t {
        Data,     ///< something came; there may be more
        Nothing,  ///< wait()
        Full,     ///< the io thread must serve requests before more can be read
        Closed,   ///< no further reply will come
    };
    explicit Reader(Channel& channel) : channel_(channel) {
        channel_.hand_reading_to(ReadBy::Reader);
    }
    ~Reader() { channel_.hand_reading_to(ReadBy::IoThread); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    /// Handles everything that has arrived, and does one recvmsg. Replies go to `replies`; all
    /// other messages wait for the io thread.
    [[nodiscard]] Outcome read(ReplySink& replies);
    /// Waits until there is something to read. Sends the backlog meanwhile.
    void wait_until(std::chrono::steady_clock::time_point deadline);

private:
    enum class Sorted : std::uint8_t { All, UntilFull };
    [[nodiscard]] Sorted sort(ReplySink& replies);

    Channel& channel_;
};

}  // namespace vgpu::softgpu::vfio_user
