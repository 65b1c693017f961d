// SPDX-License-Identifier: MIT
//
// Session: one connected client of one device, from its VERSION to its end.
//
//   Negotiating --VERSION agreed, device free--> Attached --closed, broken, hung up--> Closed
//        |                                                                               ^
//        +-- VERSION refused (other version, device taken), or another command came first +
//
// The session checks every request against the protocol (size, descriptors, indices, ranges) before
// the device sees it, and answers it exactly once unless the client asked for no reply. A request
// that fails gets an error reply. Once the client is attached, such a request does not end the
// connection, but a broken stream does.
//
// A session serves for a time slice of about a millisecond. The remaining messages wait for its
// next slice. So other clients and posted work are served in between, however much a client sends.
// A slice ends between two messages or two writes of one message. After too many resets of its
// device, a session gets no slices until ResetRateLimiter::free_at().
//
// Everything runs on the io thread. The Server drives the session. It calls on_writable() if the
// socket has room for replies again. It calls on_readable() if the socket or the Channel's queue
// has input, if has_backlog() is true, or if blocked_until() has passed. It drops a session that is
// closed. close() detaches the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "pf-driver/softgpu/vfio_user/channel.h"
#include "pf-driver/softgpu/vfio_user/client_memory.h"
#include "pf-driver/softgpu/vfio_user/client_record.h"
#include "pf-driver/softgpu/vfio_user/counters.h"
#include "pf-driver/softgpu/vfio_user/device.h"
#include "pf-driver/softgpu/vfio_user/reset_rate_limiter.h"

namespace vgpu::softgpu::vfio_user {

class Session;

/// A served device and its client. One per listening socket; lives as long as the server.
struct Port {
    Device& device;
    Session* attached = nullptr;  ///< the session of the attached client; nullptr: none
    ResetRateLimiter limiter{};  ///< limits the device: a new connection does not reset the limiter
    std::string path{};          ///< path of the socket
};

/// Shared by all sessions of a server; one io thread serves them, so one reply buffer is enough.
struct SessionContext {
    std::shared_ptr<Counters> counters = std::make_shared<Counters>();
    std::shared_ptr<BusySince> work = std::make_shared<BusySince>();
    /// Buffer in which replies are built: kMaxMessage bytes.
    std::unique_ptr<std::byte[]> reply = std::make_unique_for_overwrite<std::byte[]>(kMaxMessage);
    DmaLimits dma_limits;
    std::chrono::nanoseconds serve_time = std::chrono::milliseconds(1);  ///< length of a slice
};

class Session {
public:
    using Time = ResetRateLimiter::Time;

    /// Closed is final; the server then drops the session.
    enum class State : std::uint8_t { Negotiating, Attached, Closed };

    Session(OwnedFd socket, Port& port, SessionContext& context);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    [[nodiscard]] Channel& channel() { return *channel_; }
    [[nodiscard]] State state() const { return state_; }

    /// True if messages wait that did not fit into the last slice.
    [[nodiscard]] bool has_backlog() const { return has_backlog_; }
    /// Until this time no message is served, and the socket is not watched for input. nullopt: the
    /// session is not blocked.
    [[nodiscard]] std::optional<Time> blocked_until() const { return blocked_until_; }

    /// Runs a slice: receives once, then serves what has arrived, including messages that a Reader
    /// on another thread has queued.
    void on_readable();
    /// Sends the backlog, then serves the messages that were received before.
    void on_writable();
    /// The client is gone or must go. Idempotent.
    void close();

private:
    /// A reply. Its payload lies in context_.reply, after room for the header.
    struct Reply {
        std::errc error{};
        std::size_t body = 0;      ///< bytes of the payload
        OwnedFd fd{};              ///< descriptor to send with the reply
        bool comes_later = false;  ///< true: write_next() sends the reply
    };
    using Handler = Reply (Session::*)(const Message&);
    /// A command of protocol.def: its handler, minimum body and maximum number of descriptors.
    struct Row {
        Handler handler = nullptr;
        std::uint32_t body_bytes = 0;
        std::uint32_t max_fds = 0;
    };
    static constexpr std::size_t kRows = 19;
    static const std::array<Row, kRows> kTable;

    /// The REGION_WRITE_MULTI being served. `rest` points into its message, which is valid until
    /// the next Channel::next().
    struct Writes {
        Header request;
        WriteMulti multi;
        std::span<const std::byte> rest;
        std::errc error{};  // of the first write that failed
    };

    void serve_received();
    /// Serves one message, or one write of a REGION_WRITE_MULTI; false if no message is left.
    bool serve_piece();
    [[nodiscard]] bool may_serve(Time now) const;
    /// Blocks or unblocks the session, as the limiter requires.
    void update_blocked(Time now);
    void serve(const Message& message);
    void write_next();
    [[nodiscard]] Reply handle(const Message& request);
    void answer(const Header& request, Reply reply);
    void close_broken(const char* what);
    /// Logs the error and returns an error reply.
    [[nodiscard]] Reply refuse(const Error& error);

    Reply not_supported(const Message& request);
    Reply negotiate(const Message& request);
    Reply dma_map(const Message& request);
    Reply dma_unmap(const Message& request);
    Reply dma_unmap_all(const Message& request);
    Reply device_info(const Message& request);
    Reply region_info(const Message& request);
    Reply irq_info(const Message& request);
    Reply set_irqs(const Message& request);
    Reply region_read(const Message& request);
    Reply region_write(const Message& request);
    Reply region_write_multi(const Message& request);
    Reply device_reset(const Message& request);

    [[nodiscard]] std::errc attach_device();
    [[nodiscard]] bool is_inside(const RegionAccess& access) const;
    [[nodiscard]] std::errc write_one(const RegionAccess& access, std::span<const std::byte> data);
    [[nodiscard]] std::errc check_map(const DmaMap& map) const;
    [[nodiscard]] std::errc check_irqs(const IrqSet& set, const Message& request) const;

    [[nodiscard]] std::span<std::byte> reply_body();
    template <typename T> Reply reply_with(const T& payload);

    Port& port_;
    SessionContext& context_;
    const std::shared_ptr<Channel> channel_;
    const std::shared_ptr<ClientMemory> memory_;
    State state_ = State::Negotiating;
    bool closes_after_reply_ = false;
    bool has_backlog_ = false;
    std::optional<Time> blocked_until_;
    std::optional<Writes> writes_;
    std::map<std::uint64_t, DmaRange> maps_;  // by address; never overlapping
    std::optional<ClientRecord> record_;      // while attached
};

}  // namespace vgpu::softgpu::vfio_user
