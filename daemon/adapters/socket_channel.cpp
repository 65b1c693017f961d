// SPDX-License-Identifier: MIT
#include "daemon/adapters/socket_channel.h"

#include "daemon/adapters/event_ring.h"
#include "daemon/adapters/listener.h"
#include "pf-driver/process/passed_fds.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

namespace vgpu::daemon::adapters {

namespace {

/// Larger than any reply; SOCK_SEQPACKET cuts longer messages.
constexpr std::size_t kMaxMessage = 64 * 1024;
constexpr std::size_t kMaxFds = 4;

/// Takes the descriptors of a reply; none if the reply has too many. Call fds_of() before the reply
/// is checked, so that no descriptor leaks.
std::optional<std::vector<UniqueFd>> fds_of(msghdr& message) {
    std::array<int, kMaxFds> taken{};
    const int count = vgpu_take_passed_fds(&message, taken.data(), taken.size());
    if (count < 0) return {};
    std::vector<UniqueFd> fds;
    for (int i = 0; i < count; ++i) fds.emplace_back(taken[static_cast<std::size_t>(i)]);
    return fds;
}

int connect_to(int fd, const sockaddr_un& address) {
    // sockaddr is the general type of the socket API
    const void* generic = &address;
    return ::connect(fd, static_cast<const sockaddr*>(generic), sizeof address);
}

}  // namespace

tl::unexpected<Error> SocketChannel::lost(std::string_view what, int code) const {
    return fail_errno(ErrorId::PfLost, code, fmt::format("{}: {}", path_, what));
}

Result<std::unique_ptr<UapiChannel>> SocketChannel::open(const std::string& path,
                                                         const Wakeup& interrupted) {
    TRY(const sockaddr_un address, address_of(path));
    UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd.is_open())
        return fail_errno(ErrorId::PfLost, errno, fmt::format("{}: cannot make a socket", path));
    if (connect_to(fd.get(), address) != 0)
        return fail_errno(ErrorId::PfLost, errno,
                          fmt::format("{}: cannot connect to vgpu-pf", path));
    return std::unique_ptr<UapiChannel>(new SocketChannel(path, std::move(fd), interrupted));
}

Result<> SocketChannel::send(const UapiRequest& request) {
    const vgpu_pf_request head{.magic = VGPU_PF_UAPI_MAGIC,
                               .version = VGPU_PF_UAPI_VERSION,
                               .op = request.op,
                               .size = static_cast<std::uint32_t>(request.body.size()),
                               .cookie = ++cookie_};
    std::vector<std::byte> message(sizeof head + request.body.size());
    std::memcpy(message.data(), &head, sizeof head);
    std::copy(request.body.begin(), request.body.end(), message.begin() + sizeof head);
    iovec part{.iov_base = message.data(), .iov_len = message.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (request.fd >= 0) {
        header.msg_control = control.data();
        header.msg_controllen = control.size();
        cmsghdr* rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(rights), &request.fd, sizeof request.fd);
    }
    if (::sendmsg(socket_.get(), &header, MSG_NOSIGNAL) < 0)
        return lost("cannot send to vgpu-pf", errno);
    return {};
}

Result<> SocketChannel::wait_readable(std::chrono::milliseconds limit) {
    // A deadline, because a time limit of each poll() would begin again after each signal.
    const auto deadline = std::chrono::steady_clock::now() + limit;
    for (;;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now());
        std::array<pollfd, 2> waited{
            pollfd{.fd = socket_.get(), .events = POLLIN, .revents = 0},
            pollfd{.fd = interrupted_.fd(), .events = POLLIN, .revents = 0}};
        const int ready = ::poll(waited.data(), waited.size(),
                                 static_cast<int>(std::max<std::int64_t>(0, left.count())));
        if (ready > 0 && waited[1].revents != 0) return lost("vgpud is ending", ECANCELED);
        if (ready > 0) return {};
        if (ready < 0 && errno == EINTR) continue;
        return lost("no answer from vgpu-pf", ready == 0 ? ETIMEDOUT : errno);
    }
}

Result<UapiReply> SocketChannel::receive(const UapiRequest& request) {
    TRY_VOID(wait_readable(request.limit));
    std::vector<std::byte> message(kMaxMessage);
    iovec part{.iov_base = message.data(), .iov_len = message.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxFds * sizeof(int))> control{};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC);
    if (got < 0) return lost("cannot receive from vgpu-pf", errno);
    if (got == 0) return lost("vgpu-pf closed the connection", ECONNRESET);
    auto fds = fds_of(header);
    if (!fds) return lost("a reply with too many fds", EPROTO);
    UapiReply reply{.body = {}, .fds = std::move(*fds)};
    vgpu_pf_reply head{};
    if (static_cast<std::size_t>(got) < sizeof head) return lost("short reply", EPROTO);
    std::memcpy(&head, message.data(), sizeof head);
    if (head.magic != VGPU_PF_UAPI_MAGIC || head.cookie != cookie_ ||
        head.op != static_cast<std::uint32_t>(request.op))
        return lost("a reply to another request", EPROTO);
    head.message[sizeof head.message - 1] = '\0';
    if (head.error != 0) return refused(head.error, head.message);
    message.resize(static_cast<std::size_t>(got));
    reply.body.assign(message.begin() + sizeof head, message.end());
    return reply;
}

Result<UapiReply> SocketChannel::exchange(const UapiRequest& request) {
    TRY_VOID(send(request));
    return receive(request);
}

Result<std::unique_ptr<EventPort>> SocketChannel::open_events() {
    vgpu_pf_event_ring_info info{};
    info.size = sizeof info;
    TRY(UapiReply reply,
        exchange({.op = VGPU_PF_OP_GET_EVENT_RING,
                  .body = std::as_bytes(std::span<vgpu_pf_event_ring_info, 1>(&info, 1)),
                  .limit = kRingLimit}));
    std::memcpy(&info, reply.body.data(), std::min(sizeof info, reply.body.size()));
    if (reply.fds.size() < 2) return lost("the event ring came without its fds", EPROTO);
    auto ring = EventRing::map(info, std::move(reply.fds[0]), std::move(reply.fds[1]));
    if (!ring) return lost(ring.error().cause, EPROTO);
    return std::unique_ptr<EventPort>(std::move(*ring));
}

}  // namespace vgpu::daemon::adapters
