// SPDX-License-Identifier: MIT
//
// Session: one client connection of one device, from its acceptance to its end.
//
//   Negotiating --VERSION agreed, device free--> Attached --closed, broken, hung up--> Closed
//        |                                                                               ^
//        +-- VERSION or client refused, another command first, closed, broken, hung up
//
// The session checks every request against the protocol (size, descriptors, indices, ranges) before
// it calls the device. It answers a request once, unless the request has kNoReply or the session
// closes before the answer. A request that fails gets an error reply. After the attachment, a
// failed request does not end the connection, but a broken stream does.
//
// In this file, a slice is a piece of the io thread's time, about a millisecond, in which a session
// serves messages. Messages that remain wait for the next slice, so that the io thread can serve
// other clients and posted work in between. A slice ends only between two messages, or between two
// writes of one REGION_WRITE_MULTI. After too many resets of the device, the session serves no
// message until ResetRateLimiter::free_at().
//
// Everything runs on the io thread. The Server calls on_writable() if the socket has room for
// replies again. The Server calls on_readable() if the client has hung up or if there may be
// messages to serve, for example if the socket has input, if has_unserved() is true, or if
// blocked_until() has passed. The Server destroys a session whose state is Closed. close() also
// detaches the client from the device, if the client is attached.
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

/// A device that the server serves, and its client. One per listening socket; exists as long as the
/// server.
struct ServedDevice {
    Device& device;
    Session* attached = nullptr;  ///< the session of the attached client; nullptr: none
    ResetRateLimiter limiter{};   ///< per device, so that its count survives a disconnection
    std::string path{};           ///< path of the socket; empty: no ClientRecord is written
};

/// State that all sessions of a server share. One reply buffer is enough, because one io thread
/// serves all sessions.
struct SessionContext {
    std::shared_ptr<Counters> counters = std::make_shared<Counters>();
    std::shared_ptr<BusySince> work = std::make_shared<BusySince>();
    /// See Server::create().
    std::shared_ptr<const BusySince> park = std::make_shared<BusySince>();
    /// Buffer of kMaxMessage bytes, in which replies are built.
    std::unique_ptr<std::byte[]> reply = std::make_unique_for_overwrite<std::byte[]>(kMaxMessage);
    DmaLimits dma_limits;
    std::chrono::nanoseconds serve_time = std::chrono::milliseconds(1);  ///< length of a slice
};

class Session {
public:
    using Time = ResetRateLimiter::Time;

    /// Closed is final; the Server then destroys the session.
    enum class State : std::uint8_t { Negotiating, Attached, Closed };

    Session(OwnedFd socket, ServedDevice& served, SessionContext& context);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    [[nodiscard]] Channel& channel() { return *channel_; }
    [[nodiscard]] State state() const { return state_; }

    /// True if messages may be left after the last slice, and nothing prevents the session from
    /// serving them now.
    [[nodiscard]] bool has_unserved() const { return has_unserved_; }
    /// Until this time, no message is served and the socket is not watched for input. nullopt: the
    /// session is not blocked.
    [[nodiscard]] std::optional<Time> blocked_until() const { return blocked_until_; }

    /// Runs a slice: receives once, then serves messages that have arrived, including those that a
    /// Channel::Reader has queued.
    void on_readable();
    /// Sends the backlog of the channel, then serves messages that were received earlier.
    void on_writable();
    /// Disconnects the client and, if it is attached, detaches it from the device. Idempotent.
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
    static constexpr std::size_t kRows = 19;  // protocol.def numbers commands from 1 to 18
    static const std::array<Row, kRows> kTable;

    /// The REGION_WRITE_MULTI being served. `rest` points into the message, which is valid until
    /// the next Channel::next().
    struct Writes {
        Header request;
        WriteMulti multi;
        std::span<const std::byte> rest;
        std::errc error{};  // error of the first write that failed
    };

    void serve_received();
    /// Serves one message, or one write of a REGION_WRITE_MULTI; false if no message is left.
    bool serve_piece();
    /// False if the session is closed, if replies wait to be sent, or if the limiter blocks the
    /// device.
    [[nodiscard]] bool may_serve(Time now) const;
    /// Updates blocked_until_ from the limiter, and pauses or resumes the input of the channel.
    void update_blocked(Time now);
    void serve(const Message& message);
    /// Executes the next write of writes_; after the last write, sends the reply.
    void write_next();
    [[nodiscard]] Reply handle(const Message& request);
    void answer(const Header& request, Reply reply);
    /// Counts and logs a broken stream, then closes the session.
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
    /// True if the access has 1 to kMaxTransfer bytes, and all of them are in an existing region.
    [[nodiscard]] bool is_inside(const RegionAccess& access) const;
    [[nodiscard]] std::errc write_one(const RegionAccess& access, std::span<const std::byte> data);
    [[nodiscard]] std::errc check_map(const DmaMap& map) const;
    [[nodiscard]] std::errc check_irqs(const IrqSet& set, const Message& request) const;

    [[nodiscard]] std::span<std::byte> reply_body();
    template <typename T> Reply reply_with(const T& payload);

    ServedDevice& served_;
    SessionContext& context_;
    const std::shared_ptr<Channel> channel_;
    const std::shared_ptr<ClientMemory> memory_;
    State state_ = State::Negotiating;
    bool closes_after_reply_ = false;
    bool has_unserved_ = false;
    std::optional<Time> blocked_until_;
    std::optional<Writes> writes_;
    std::map<std::uint64_t, DmaRange> maps_;  // by address; never overlapping
    std::optional<ClientRecord> record_;      // set while attached, if served_.path is not empty
};

}  // namespace vgpu::softgpu::vfio_user
