// SPDX-License-Identifier: MIT
//
// UapiClient: one client of the PF uapi, as the contract suite needs it, however its platform is
// reached: SocketClient speaks the messages of vgpu-pf's socket, DeviceClient the ioctls of
// /dev/vgpu-pfN. A client has one request under way at a time; another client may have its own.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "pf-driver/uapi/vgpu_pf.h"
#include "tests/support/unique_fd.h"

namespace vgpu::test {

struct UapiReply {
    vgpu_pf_reply head{};
    std::vector<std::uint8_t> body;
    /// GET_EVENT_RING: what to map, and what to poll.
    std::vector<UniqueFd> fds;
};

class UapiClient {
public:
    virtual ~UapiClient() = default;

    /// Begins a request; `fd` may be closed afterwards.
    virtual void start(std::uint32_t op, std::span<const std::uint8_t> body, int fd = -1) = 0;
    /// The reply to what was started; head.error is -ETIMEDOUT if none comes.
    [[nodiscard]] virtual UapiReply await() = 0;

    [[nodiscard]] UapiReply call(std::uint32_t op, std::span<const std::uint8_t> body,
                                 int fd = -1) {
        start(op, body, fd);
        return await();
    }
    template <typename T> int request(std::uint32_t op, T& payload, int fd = -1) {
        const auto* bytes = static_cast<const std::uint8_t*>(static_cast<const void*>(&payload));
        last_ = call(op, {bytes, sizeof(payload)}, fd);
        if (!last_.body.empty())
            std::copy_n(last_.body.begin(), std::min(sizeof(payload), last_.body.size()),
                        static_cast<std::uint8_t*>(static_cast<void*>(&payload)));
        return last_.head.error;
    }
    [[nodiscard]] std::string message() const { return last_.head.message; }
    [[nodiscard]] UapiReply& last() { return last_; }

private:
    UapiReply last_;
};

/// Waits for replies while `pump` lets the platform run (a platform inside the test) or by poll()
/// with a bound (a platform of its own).
class SocketClient final : public UapiClient {
public:
    /// `pump` is empty if the platform runs by itself.
    SocketClient(UniqueFd socket, std::function<void()> pump)
        : socket_(std::move(socket)), pump_(std::move(pump)) {}

    void start(std::uint32_t op, std::span<const std::uint8_t> body, int fd = -1) override;
    [[nodiscard]] UapiReply await() override;

    /// At most four descriptors.
    void send_raw(std::span<const std::uint8_t> message, std::span<const int> fds = {});
    /// From now on replies cannot be delivered; requests still can.
    void hear_nothing() { (void)shutdown(socket_.get(), SHUT_RD); }
    /// The next reply, whatever it answers.
    [[nodiscard]] UapiReply receive();

private:
    UniqueFd socket_;
    std::function<void()> pump_;
    std::uint64_t cookie_ = 100;
};

/// An ioctl returns when its request is finished: each runs in a thread of its own.
class DeviceClient final : public UapiClient {
public:
    explicit DeviceClient(UniqueFd node) : node_(std::move(node)) {}

    void start(std::uint32_t op, std::span<const std::uint8_t> body, int fd = -1) override;
    [[nodiscard]] UapiReply await() override;

private:
    [[nodiscard]] UapiReply run(std::uint32_t op, std::vector<std::uint8_t> body, UniqueFd fd);
    void describe(vgpu_pf_reply& head);

    UniqueFd node_;
    std::optional<UapiReply> reply_;
    std::jthread thread_;
};

}  // namespace vgpu::test
