// SPDX-License-Identifier: MIT
//
// UapiClient: one client of the PF uapi over its socket. Requests wait for their reply while `pump`
// lets the home run (a home inside the test) or by poll() with a bound (a home of its own).
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "pf-driver/uapi/vgpu_pf.h"
#include "tests/support/unique_fd.h"

namespace vgpu::test {

struct UapiReply {
    vgpu_pf_reply head{};
    std::vector<std::uint8_t> body;
    std::vector<UniqueFd> fds;
};

class UapiClient {
public:
    /// `pump` returns true if it made progress; empty: the home runs by itself.
    UapiClient(UniqueFd socket, std::function<void()> pump)
        : socket_(std::move(socket)), pump_(std::move(pump)) {}

    void send_raw(std::span<const std::uint8_t> message, int fd = -1);
    /// The next reply, whatever it answers; head.error is -ETIMEDOUT if none comes.
    [[nodiscard]] UapiReply receive();
    [[nodiscard]] bool is_closed();

    [[nodiscard]] UapiReply call(std::uint32_t op, std::span<const std::uint8_t> body, int fd = -1);
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
    UniqueFd socket_;
    std::function<void()> pump_;
    std::uint64_t cookie_ = 100;
    UapiReply last_;
};

}  // namespace vgpu::test
