// SPDX-License-Identifier: MIT
#include "tests/contract/pf_platform/uapi_client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace vgpu::test {

namespace {

constexpr int kSteps = 2000;    // of the pump, until a reply is given up
constexpr int kWaitMs = 20000;  // for a platform that runs by itself
constexpr std::size_t kMaxReply = 65536;
constexpr std::size_t kMaxFds = 2;
constexpr std::size_t kMaxSentFds = 4;

bool is_stream(std::uint32_t op) {
    return op == VGPU_PF_OP_SAVE || op == VGPU_PF_OP_RESTORE || op == VGPU_PF_OP_DUMP;
}

}  // namespace

void SocketClient::send_raw(std::span<const std::uint8_t> message, std::span<const int> fds) {
    std::vector<std::uint8_t> copy(message.begin(), message.end());
    iovec part{copy.data(), copy.size()};
    msghdr out{};
    out.msg_iov = &part;
    out.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(kMaxSentFds * sizeof(int))] = {};
    if (!fds.empty()) {
        out.msg_control = control;
        out.msg_controllen = CMSG_SPACE(fds.size_bytes());
        cmsghdr* header = CMSG_FIRSTHDR(&out);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(fds.size_bytes());
        std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
    }
    (void)sendmsg(socket_.get(), &out, MSG_NOSIGNAL);
    if (pump_) pump_();
}

UapiReply SocketClient::receive() {
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
    for (int step = 0; step < kSteps; ++step) {
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

void SocketClient::start(std::uint32_t op, std::span<const std::uint8_t> body, int fd) {
    const vgpu_pf_request head{VGPU_PF_UAPI_MAGIC, VGPU_PF_UAPI_VERSION, op,
                               static_cast<std::uint32_t>(body.size()), ++cookie_};
    std::vector<std::uint8_t> message(sizeof(head) + body.size());
    std::memcpy(message.data(), &head, sizeof(head));
    std::copy(body.begin(), body.end(), message.begin() + sizeof(head));
    const std::array one{fd};
    send_raw(message, std::span(one).first(fd < 0 ? 0 : 1));
}

UapiReply SocketClient::await() {
    UapiReply reply = receive();
    while (reply.head.error != -ETIMEDOUT && reply.head.cookie != cookie_) reply = receive();
    return reply;
}

// ---- ioctls

void DeviceClient::start(std::uint32_t op, std::span<const std::uint8_t> body, int fd) {
    UniqueFd own(fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0));
    thread_ = std::jthread(
        [this, op, copy = std::vector<std::uint8_t>(body.begin(), body.end()),
         held = std::move(own)]() mutable { reply_ = run(op, std::move(copy), std::move(held)); });
}

UapiReply DeviceClient::await() {
    thread_.join();
    return std::move(reply_).value();
}

UapiReply DeviceClient::run(std::uint32_t op, std::vector<std::uint8_t> body, UniqueFd fd) {
    const std::size_t bytes = body.size();
    body.resize(std::max(bytes, sizeof(vgpu_pf_run_table)));  // a place for any answer
    constexpr std::size_t kFd = offsetof(vgpu_pf_stream, fd);
    const int number = fd.get();
    if (is_stream(op)) std::memcpy(&body[kFd], &number, sizeof(number));
    const unsigned long command = _IOC(_IOC_READ | _IOC_WRITE, VGPU_PF_IOC_TYPE, op, bytes);
    UapiReply reply;
    reply.head.op = op;
    if (ioctl(node_.get(), command, body.data()) != 0) {
        reply.head.error = -errno;
        describe(reply.head);
    }
    // a struct that is longer than the kernel's comes back as long as the kernel's
    std::uint32_t known = 0;
    std::memcpy(&known, body.data(), sizeof(known));
    body.resize(known == 0 ? bytes : std::min<std::size_t>(bytes, known));
    reply.body = std::move(body);
    if (op != VGPU_PF_OP_GET_EVENT_RING) return reply;
    for (int i = 0; i < 2; ++i) reply.fds.emplace_back(fcntl(node_.get(), F_DUPFD_CLOEXEC, 0));
    return reply;
}

void DeviceClient::describe(vgpu_pf_reply& head) {
    vgpu_pf_error error{};
    error.size = sizeof(error);
    if (ioctl(node_.get(), VGPU_PF_IOC(VGPU_PF_OP_GET_ERROR, vgpu_pf_error), &error) == 0)
        std::memcpy(head.message, error.message, sizeof(head.message));
}

}  // namespace vgpu::test
