// SPDX-License-Identifier: MIT
#include "tests/contract/pf_home/uapi_client.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace vgpu::test {

namespace {

constexpr int kTurns = 2000;    // of the pump, until a reply is given up
constexpr int kWaitMs = 20000;  // for a home that runs by itself
constexpr std::size_t kMaxReply = 65536;
constexpr std::size_t kMaxFds = 2;

}  // namespace

void UapiClient::send_raw(std::span<const std::uint8_t> message, int fd) {
    std::vector<std::uint8_t> copy(message.begin(), message.end());
    iovec part{copy.data(), copy.size()};
    msghdr out{};
    out.msg_iov = &part;
    out.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    if (fd >= 0) {
        out.msg_control = control;
        out.msg_controllen = sizeof(control);
        cmsghdr* header = CMSG_FIRSTHDR(&out);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    }
    (void)sendmsg(socket_.get(), &out, MSG_NOSIGNAL);
    if (pump_) pump_();
}

UapiReply UapiClient::receive() {
    UapiReply reply;
    reply.head.error = -ETIMEDOUT;
    std::vector<std::uint8_t> buffer(kMaxReply);
    iovec part{buffer.data(), buffer.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))] = {};
    msghdr in{};
    in.msg_iov = &part;
    in.msg_iovlen = 1;
    in.msg_control = control;
    in.msg_controllen = sizeof(control);
    ssize_t bytes = -1;
    for (int turn = 0; turn < kTurns; ++turn) {
        bytes = recvmsg(socket_.get(), &in, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (bytes >= 0 || errno != EAGAIN) break;
        pollfd wait{socket_.get(), POLLIN, 0};
        if (pump_)
            pump_();
        else if (poll(&wait, 1, kWaitMs) <= 0)
            break;
    }
    if (bytes < static_cast<ssize_t>(sizeof(reply.head))) return reply;
    std::memcpy(&reply.head, buffer.data(), sizeof(reply.head));
    reply.body.assign(buffer.begin() + sizeof(reply.head), buffer.begin() + bytes);
    cmsghdr* header = CMSG_FIRSTHDR(&in);
    if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return reply;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
        reply.fds.emplace_back(fd);
    }
    return reply;
}

bool UapiClient::is_closed() {
    for (int turn = 0; turn < 20 && pump_; ++turn) pump_();
    pollfd wait{socket_.get(), POLLIN, 0};
    char byte = 0;
    return poll(&wait, 1, pump_ ? 0 : kWaitMs) == 1 &&
           recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

UapiReply UapiClient::call(std::uint32_t op, std::span<const std::uint8_t> body, int fd) {
    const vgpu_pf_request head{VGPU_PF_UAPI_MAGIC, VGPU_PF_UAPI_VERSION, op,
                               static_cast<std::uint32_t>(body.size()), ++cookie_};
    std::vector<std::uint8_t> message(sizeof(head) + body.size());
    std::memcpy(message.data(), &head, sizeof(head));
    std::copy(body.begin(), body.end(), message.begin() + sizeof(head));
    const std::uint64_t mine = cookie_;
    send_raw(message, fd);
    UapiReply reply = receive();
    while (reply.head.error != -ETIMEDOUT && reply.head.cookie != mine) reply = receive();
    return reply;
}

}  // namespace vgpu::test
