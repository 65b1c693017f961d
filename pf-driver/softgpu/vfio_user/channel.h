// SPDX-License-Identifier: MIT
//
// Channel: a connected client as a stream of messages, shared by the io thread, which serves the
// client's requests, and by threads that sent the client a request themselves and wait for the
// reply (ClientMemory). Such a thread may hold a lock that the io thread waits for, so it reads the
// socket itself:
//
//   nobody waits     socket --> io thread, which serves requests in place
//   somebody waits   socket --> Reader --> replies to their calls
//                                     \--> requests, copied, in order --> queue --> io thread
//
// While a Reader exists the io thread gets nothing from the socket and its loop does not watch it
// for input. The queue is bounded: when it is full the Reader has to leave reading to the io
// thread.
//
// Writing sends each message whole; what the socket does not take at once waits in a bounded
// backlog.
//
// fill() and next() are called on the io thread, everything else on any.
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
    /// What the socket shall be watched for.
    /// One at a time: a client that does not read its replies is not read from.
    enum class Interest : std::uint8_t { Nothing, Input, Output };
    /// How to reach the loop that watches the socket. Called on any thread, with the send lock
    /// held.
    struct Loop {
        std::function<void(Interest)> watch;
        std::function<void()> serve;  ///< messages wait for the io thread, not in the socket
    };
    /// Where replies go, whoever reads them. Called on any thread, with the input lock held: when a
    /// Reader finds nothing more to read, nothing that was read before is on its way.
    class ReplySink {
    public:
        virtual ~ReplySink() = default;
        virtual void take_reply(const Message& reply) = 0;
    };
    class Reader;

    explicit Channel(OwnedFd socket) : socket_(std::move(socket)) {}

    /// The former one is not called any more when this returns.
    /// Empty functions: nobody is told any more.
    void set_loop(Loop loop);
    /// While it is held the loop watches for no input; Readers go on.
    void hold_input(bool is_held);
    /// Both directions end: for the client, and for whoever waits for something to read.
    void shut_down();

    [[nodiscard]] int fd() const { return socket_.get(); }

    /// One recvmsg; nothing while somebody else reads.
    [[nodiscard]] Input fill();
    /// The next whole message that is no reply, valid until the next call; nothing: fill() again,
    /// or the stream is broken.
    [[nodiscard]] std::optional<Message> next(ReplySink& replies);
    /// The next message's header says it is no message: its size is impossible.
    [[nodiscard]] bool is_broken() const;
    [[nodiscard]] Header broken_header() const;

    /// Header and body as one message. no_buffer_space: the backlog is full, nothing was queued;
    /// anything else: the client is gone.
    [[nodiscard]] std::errc send(std::span<const std::byte> message, int fd = -1);
    [[nodiscard]] std::errc flush();
    /// Any thread. While it is true the client is not served.
    [[nodiscard]] bool has_backlog() const { return has_backlog_; }

private:
    /// The rest of a message; its descriptor goes with the first byte, if that is still to be sent.
    struct Unsent {
        std::vector<std::byte> bytes;
        OwnedFd fd;
    };
    /// A message that is not for the one who read it.
    struct Queued {
        Header header;
        std::vector<std::byte> body;
        ReceivedFds fds;
    };
    enum class ReadBy : std::uint8_t { IoThread, Reader };

    /// Bounds of what a client that does not read, or does not wait, can make the server keep.
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

    mutable std::mutex input_mutex_;  // guards what follows; taken before send_mutex_
    MessageBuffer buffer_;
    std::deque<Queued> queue_;
    std::size_t queued_bytes_ = 0;
    std::size_t queued_fds_ = 0;
    Queued served_;  // what next() gave out; of a message in place only the descriptors

    std::mutex send_mutex_;  // guards what follows
    std::deque<Unsent> unsent_;
    std::size_t unsent_bytes_ = 0;
    std::atomic<bool> has_backlog_{false};
    Loop loop_;
    bool is_held_ = false;
    ReadBy read_by_ = ReadBy::IoThread;  // changed with both locks held
};

/// Reading in place of the io thread, as long as this exists; one at a time. Any thread, also the
/// io thread inside a device call: the message it serves stays valid.
class Channel::Reader {
public:
    enum class Outcome : std::uint8_t {
        Data,     ///< something came; there may be more
        Nothing,  ///< wait()
        Full,     ///< the io thread has to serve requests before more can be read
        Closed,   ///< no further reply will come
    };
    explicit Reader(Channel& channel) : channel_(channel) {
        channel_.hand_reading_to(ReadBy::Reader);
    }
    ~Reader() { channel_.hand_reading_to(ReadBy::IoThread); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    /// Deals with all that has come and does one recvmsg; what is no reply waits for the io thread.
    [[nodiscard]] Outcome read(ReplySink& replies);
    /// Until there is something to read. Sends the backlog meanwhile.
    void wait_until(std::chrono::steady_clock::time_point deadline);

private:
    enum class Sorted : std::uint8_t { All, UntilFull };
    [[nodiscard]] Sorted sort(ReplySink& replies);

    Channel& channel_;
};

}  // namespace vgpu::softgpu::vfio_user
