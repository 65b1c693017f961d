// SPDX-License-Identifier: MIT
#include "daemon/adapters/uapi_client.h"

#include "daemon/adapters/event_ring.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace vgpu::daemon::adapters {

namespace {

constexpr std::size_t kMaxMessage = 64 * 1024;
constexpr std::size_t kMaxFds = 4;

template <typename T> std::span<const std::byte> bytes_of(const T& object) {
    return std::as_bytes(std::span<const T, 1>(&object, 1));
}

/// The fds of a received message, each with an owner.
std::vector<UniqueFd> fds_of(msghdr& message) {
    std::vector<UniqueFd> fds;
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
         part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
            fds.emplace_back(fd);
        }
    }
    return fds;
}

Result<sockaddr_un> address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path)
        return fail(ErrorId::ConfigInvalid, fmt::format("{}: a socket path has at most {} bytes",
                                                        path, sizeof address.sun_path - 1));
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    return address;
}

int connect_to(int fd, const sockaddr_un& address) {
    // The socket interface takes the general address type; the bytes are the same.
    const void* generic = &address;
    return ::connect(fd, static_cast<const sockaddr*>(generic), sizeof address);
}

}  // namespace

tl::unexpected<Error> UapiClient::lost(std::string_view what, int code) {
    disconnect();
    return fail_errno(ErrorId::PfLost, code, fmt::format("{}: {}", path_, what));
}

Result<> UapiClient::connect() {
    disconnect();
    TRY(const sockaddr_un address, address_of(path_));
    UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd.is_open()) return lost("cannot make a socket", errno);
    if (connect_to(fd.get(), address) != 0) return lost("cannot connect to vgpu-pf", errno);
    socket_ = std::move(fd);
    time_limit_ = kConnectTimeout;
    auto info = get_info();
    time_limit_ = kTimeout;
    if (!info) return tl::make_unexpected(info.error());
    if (info->uapi_version == VGPU_PF_UAPI_VERSION) return {};
    disconnect();
    return fail(ErrorId::VersionMismatch,
                fmt::format("{}: vgpu-pf speaks uapi version {}, vgpud version {}", path_,
                            info->uapi_version, VGPU_PF_UAPI_VERSION));
}

Result<> UapiClient::send_request(vgpu_pf_op op, std::span<const std::byte> body, int fd_to_send) {
    const vgpu_pf_request request{.magic = VGPU_PF_UAPI_MAGIC,
                                  .version = VGPU_PF_UAPI_VERSION,
                                  .op = op,
                                  .size = static_cast<std::uint32_t>(body.size()),
                                  .cookie = ++cookie_};
    std::vector<std::byte> message(sizeof request + body.size());
    std::memcpy(message.data(), &request, sizeof request);
    std::copy(body.begin(), body.end(), message.begin() + sizeof request);
    iovec part{.iov_base = message.data(), .iov_len = message.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (fd_to_send >= 0) {
        header.msg_control = control.data();
        header.msg_controllen = control.size();
        cmsghdr* rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(rights), &fd_to_send, sizeof fd_to_send);
    }
    if (::sendmsg(socket_.get(), &header, MSG_NOSIGNAL) < 0)
        return lost("cannot send to vgpu-pf", errno);
    return {};
}

Result<> UapiClient::wait_readable() {
    const auto deadline = std::chrono::steady_clock::now() + time_limit_;
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

Result<UapiClient::Reply> UapiClient::receive_reply(vgpu_pf_op op) {
    TRY_VOID(wait_readable());
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
    Reply reply{.body = {}, .fds = fds_of(header)};
    vgpu_pf_reply head{};
    if (static_cast<std::size_t>(got) < sizeof head) return lost("short reply", EPROTO);
    std::memcpy(&head, message.data(), sizeof head);
    if (head.magic != VGPU_PF_UAPI_MAGIC || head.cookie != cookie_ ||
        head.op != static_cast<std::uint32_t>(op))
        return lost("a reply to something else", EPROTO);
    if (head.error != 0) {
        head.message[sizeof head.message - 1] = '\0';
        const std::string words = std::generic_category().message(-head.error);
        return fail(ErrorId::PfRefused,
                    head.message[0] != '\0' ? fmt::format("{} ({})", head.message, words) : words);
    }
    message.resize(static_cast<std::size_t>(got));
    reply.body.assign(message.begin() + sizeof head, message.end());
    return reply;
}

Result<UapiClient::Reply> UapiClient::exchange(vgpu_pf_op op, std::span<const std::byte> body,
                                               int fd_to_send) {
    if (!is_connected()) return lost("not connected to vgpu-pf", ENOTCONN);
    TRY_VOID(send_request(op, body, fd_to_send));
    return receive_reply(op);
}

template <typename T> Result<T> UapiClient::call(vgpu_pf_op op, T body, int fd_to_send) {
    body.size = sizeof body;
    TRY(const Reply reply, exchange(op, bytes_of(body), fd_to_send));
    std::copy_n(reply.body.begin(), std::min(sizeof body, reply.body.size()),
                std::as_writable_bytes(std::span<T, 1>(&body, 1)).begin());
    return body;
}

template <typename T> Result<T> UapiClient::act(vgpu_pf_op op, T body) {
    time_limit_ = kActTimeout;
    auto result = call(op, body);
    time_limit_ = kTimeout;
    return result;
}

Result<> UapiClient::call_ref(vgpu_pf_op op, std::uint32_t vf, std::uint32_t generation) {
    vgpu_pf_vf_ref ref{};
    ref.vf = vf;
    ref.generation = generation;
    TRY_VOID(act(op, ref));
    return {};
}

Result<vgpu_pf_info> UapiClient::get_info() {
    TRY(vgpu_pf_info info, call(VGPU_PF_OP_GET_INFO, vgpu_pf_info{}));
    info.name[sizeof info.name - 1] = '\0';
    info.total_vfs = std::min(info.total_vfs, VGPU_PF_MAX_VFS);
    return info;
}

Result<vgpu_pf_vf> UapiClient::get_vf(std::uint32_t vf) {
    vgpu_pf_vf wanted{};
    wanted.vf = vf;
    TRY(vgpu_pf_vf got, call(VGPU_PF_OP_GET_VF, wanted));
    got.driver_version[sizeof got.driver_version - 1] = '\0';
    return got;
}

Result<vgpu_pf_provision> UapiClient::provision(const vgpu_pf_provision& wanted) {
    return act(VGPU_PF_OP_PROVISION, wanted);
}

Result<> UapiClient::release(std::uint32_t vf, std::uint32_t generation) {
    return call_ref(VGPU_PF_OP_RELEASE, vf, generation);
}

Result<> UapiClient::scrub_durable(std::uint32_t vf, std::uint32_t generation) {
    return call_ref(VGPU_PF_OP_SCRUB_DURABLE, vf, generation);
}

Result<> UapiClient::verify_zero(std::uint32_t vf, std::uint32_t generation) {
    return call_ref(VGPU_PF_OP_VERIFY_ZERO, vf, generation);
}

Result<> UapiClient::control(std::uint32_t vf, std::uint32_t generation,
                             vgpu_pf_control_action action) {
    vgpu_pf_control control{};
    control.vf = vf;
    control.generation = generation;
    control.action = action;
    TRY_VOID(act(VGPU_PF_OP_CONTROL, control));
    return {};
}

Result<> UapiClient::set_run_table(const vgpu_pf_run_table& table) {
    TRY_VOID(call(VGPU_PF_OP_SET_RUN_TABLE, table));
    return {};
}

Result<vgpu_pf_run_table> UapiClient::get_run_table() {
    TRY(vgpu_pf_run_table table, call(VGPU_PF_OP_GET_RUN_TABLE, vgpu_pf_run_table{}));
    table.count = std::min(table.count, VGPU_PF_TABLE_ENTRIES);
    table.reserve_count = std::min(table.reserve_count, VGPU_PF_MAX_VFS);
    return table;
}

Result<> UapiClient::acquire_lease() {
    vgpu_pf_lease lease{};
    lease.acquire = 1;
    TRY_VOID(call(VGPU_PF_OP_LEASE, lease));
    return {};
}

Result<> UapiClient::dump(int fd) {
    TRY_VOID(call(VGPU_PF_OP_DUMP, vgpu_pf_stream{}, fd));
    return {};
}

Result<std::unique_ptr<EventPort>> UapiClient::open_events() {
    vgpu_pf_event_ring_info info{};
    info.size = sizeof info;
    TRY(Reply reply, exchange(VGPU_PF_OP_GET_EVENT_RING, bytes_of(info), -1));
    std::memcpy(&info, reply.body.data(), std::min(sizeof info, reply.body.size()));
    if (reply.fds.size() < 2) return lost("the event ring came without its fds", EPROTO);
    auto ring = EventRing::map(info, std::move(reply.fds[0]), std::move(reply.fds[1]));
    if (!ring) return lost(ring.error().cause, EPROTO);
    return std::unique_ptr<EventPort>(std::move(*ring));
}

}  // namespace vgpu::daemon::adapters
