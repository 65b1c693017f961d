// SPDX-License-Identifier: MIT
#include "tests/support/vf_client/connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::test {
namespace {

using softgpu::bytes_of;
using wire::Command;

constexpr milliseconds kReplyLimit{20000};
constexpr std::size_t kMaxFds = 8;
constexpr std::uint32_t kMaxMessage = 64u << 20;

UniqueFd connect_to(const std::string& path) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) throw VfError("socket path too long: " + path);
    std::copy(path.begin(), path.end(), address.sun_path);
    if (::connect(fd.get(), static_cast<const sockaddr*>(static_cast<const void*>(&address)),
                  sizeof address) != 0)
        throw VfError(fmt::format("connect to {}: {}", path, std::strerror(errno)), errno);
    return fd;
}

template <typename T> T body_as(std::span<const std::byte> body, const char* what) {
    if (body.size() < sizeof(T)) throw VfError(std::string(what) + ": reply is too short");
    return softgpu::load<T>(body);
}

template <typename T>
std::vector<std::byte> with_data(const T& head, std::span<const std::byte> data) {
    std::vector<std::byte> out(sizeof(T) + data.size());
    std::ranges::copy(bytes_of(head), out.begin());
    std::ranges::copy(data, out.begin() + sizeof(T));
    return out;
}

}  // namespace

Connection::Connection(const std::string& socket_path) : Connection(socket_path, Unnegotiated{}) {
    negotiate();
}

Connection::Connection(const std::string& socket_path, Unnegotiated)
    : socket_(connect_to(socket_path)), wake_(::eventfd(0, EFD_CLOEXEC)) {}

Connection::~Connection() {
    stop_ = true;
    const std::uint64_t one = 1;
    if (server_.joinable()) {
        (void)!::write(wake_.get(), &one, sizeof one);
        server_.join();
    }
}

void Connection::negotiate() {
    constexpr std::string_view kCapabilities =
        R"({"capabilities":{"max_msg_fds":8,"max_data_xfer_size":1048576,"pgsizes":4096,)"
        R"("write_multiple":true}})";
    std::vector<std::byte> text(kCapabilities.size() + 1);
    std::memcpy(text.data(), kCapabilities.data(), kCapabilities.size());
    const auto reply = call(Command::Version, with_data(wire::Version{0, 1}, text));
    if (body_as<wire::Version>(reply.body, "VERSION").major != 0)
        throw VfError("VERSION: the server speaks another major version");
}

Region Connection::region(unsigned index) {
    const wire::RegionInfo ask{4096, 0, index, 0, 0, 0};
    auto reply = call(Command::GetRegionInfo, bytes_of(ask));
    const auto info = body_as<wire::RegionInfo>(reply.body, "GET_REGION_INFO");
    Region region{info.size, info.flags, info.fd_offset, {}, {}};
    if (!reply.fds.empty()) region.fd = std::move(reply.fds.front());
    if ((info.flags & wire::kRegionMmap) == 0) return region;
    std::uint32_t at = (info.flags & wire::kRegionHasCaps) != 0 ? info.cap_offset : 0;
    while (at != 0 && at + sizeof(wire::SparseMmap) <= reply.body.size()) {
        const auto cap = softgpu::load<wire::SparseMmap>(reply.body, at);
        for (std::uint32_t i = 0; cap.header.id == wire::kCapSparseMmap && i < cap.areas; ++i) {
            const auto where = at + sizeof cap + i * sizeof(wire::MmapArea);
            if (where + sizeof(wire::MmapArea) > reply.body.size())
                throw VfError("GET_REGION_INFO: sparse areas beyond the reply");
            region.areas.push_back(softgpu::load<wire::MmapArea>(reply.body, where));
        }
        if (cap.header.next <= at) break;
        at = cap.header.next;
    }
    if (info.cap_offset == 0) region.areas.push_back({0, info.size});
    return region;
}

wire::DeviceInfo Connection::info() {
    const wire::DeviceInfo ask{sizeof ask, 0, 0, 0};
    return body_as<wire::DeviceInfo>(call(Command::GetInfo, bytes_of(ask)).body, "GET_INFO");
}

unsigned Connection::irq_count(unsigned index) {
    const wire::IrqInfo ask{sizeof ask, 0, index, 0};
    return body_as<wire::IrqInfo>(call(Command::GetIrqInfo, bytes_of(ask)).body, "IRQ_INFO").count;
}

void Connection::set_irq(unsigned index, int event_fd) {
    const wire::SetIrqs ask{sizeof ask, wire::kIrqDataEventfd | wire::kIrqActionTrigger, index, 0,
                            1};
    call(Command::SetIrqs, bytes_of(ask), std::array{event_fd});
}

void Connection::read(unsigned region, std::uint64_t offset, std::span<std::byte> out) {
    const wire::RegionAccess ask{offset, region, static_cast<std::uint32_t>(out.size())};
    const auto reply = call(Command::RegionRead, bytes_of(ask));
    if (reply.body.size() < sizeof ask + out.size()) throw VfError("REGION_READ: short reply");
    std::memcpy(out.data(), reply.body.data() + sizeof ask, out.size());
}

void Connection::write(unsigned region, std::uint64_t offset, std::span<const std::byte> data) {
    const wire::RegionAccess head{offset, region, static_cast<std::uint32_t>(data.size())};
    call(Command::RegionWrite, with_data(head, data));
}

void Connection::write_posted(unsigned region, std::uint64_t offset,
                              std::span<const std::byte> data) {
    const wire::RegionAccess access{offset, region, static_cast<std::uint32_t>(data.size())};
    const std::scoped_lock lock(mutex_);
    wire::Header header{};
    header.id = next_id_++;
    header.command = static_cast<std::uint16_t>(Command::RegionWrite);
    header.flags = wire::kNoReply;
    send(header, with_data(access, data), {});
}

void Connection::dma_map(std::uint64_t iova, std::uint64_t size, int fd, std::uint64_t fd_offset) {
    const wire::DmaMap ask{sizeof ask, 3, fd_offset, iova, size};
    call(Command::DmaMap, bytes_of(ask), std::array{fd});
}

void Connection::dma_map_by_message(std::uint64_t iova, std::uint64_t size) {
    const wire::DmaMap ask{sizeof ask, 3, 0, iova, size};
    call(Command::DmaMap, bytes_of(ask));
}

void Connection::dma_unmap(std::uint64_t iova, std::uint64_t size) {
    const wire::DmaUnmap ask{sizeof ask, 0, iova, size};
    call(Command::DmaUnmap, bytes_of(ask));
}

void Connection::reset() {
    call(Command::Reset, {});
}

Reply Connection::call(Command command, std::span<const std::byte> body, std::span<const int> fds) {
    auto reply = transact(command, body, fds);
    if (reply.error != 0)
        throw VfError(fmt::format("vfio-user command {}: {}", static_cast<unsigned>(command),
                                  std::strerror(static_cast<int>(reply.error))),
                      static_cast<int>(reply.error));
    return reply;
}

Reply Connection::transact(Command command, std::span<const std::byte> body,
                           std::span<const int> fds) {
    const std::scoped_lock lock(mutex_);
    wire::Header header{};
    header.id = next_id_++;
    header.command = static_cast<std::uint16_t>(command);
    send(header, body, fds);
    while (true) {
        auto message = receive();
        if ((message.header.flags & wire::kTypeMask) != wire::kReply) {
            answer(message);
            continue;
        }
        if (message.header.id != header.id)
            throw VfError(fmt::format("reply {} to message {}", message.header.id, header.id));
        const bool failed = (message.header.flags & wire::kError) != 0;
        return Reply{failed ? message.header.error : 0, std::move(message.body),
                     std::move(message.fds)};
    }
}

void Connection::send(wire::Header header, std::span<const std::byte> body,
                      std::span<const int> fds) {
    header.size = static_cast<std::uint32_t>(sizeof header + body.size());
    send_raw(with_data(header, body), fds);
}

void Connection::send_raw(std::span<const std::byte> bytes, std::span<const int> fds) {
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMaxFds * sizeof(int))> control{};
    while (!bytes.empty()) {
        iovec io{const_cast<std::byte*>(bytes.data()), bytes.size()};
        msghdr message{};
        message.msg_iov = &io;
        message.msg_iovlen = 1;
        if (!fds.empty()) {
            message.msg_control = control.data();
            message.msg_controllen = CMSG_SPACE(fds.size_bytes());
            cmsghdr* const head = CMSG_FIRSTHDR(&message);
            head->cmsg_level = SOL_SOCKET;
            head->cmsg_type = SCM_RIGHTS;
            head->cmsg_len = CMSG_LEN(fds.size_bytes());
            std::memcpy(CMSG_DATA(head), fds.data(), fds.size_bytes());
        }
        const auto sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0)
            throw VfError(fmt::format("send to the device: {}", std::strerror(errno)), errno);
        bytes = bytes.subspan(static_cast<std::size_t>(sent));
        fds = {};
    }
}

Connection::Message Connection::receive() {
    Message message;
    receive_into(bytes_of(message.header), message.fds);
    const auto size = message.header.size;
    if (size < sizeof message.header || size > kMaxMessage)
        throw VfError(fmt::format("the device sent a message of {} bytes", size));
    message.body.resize(size - sizeof message.header);
    receive_into(message.body, message.fds);
    return message;
}

void Connection::receive_into(std::span<std::byte> out, std::vector<UniqueFd>& fds) {
    const Deadline deadline(kReplyLimit);
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMaxFds * sizeof(int))> control{};
    while (!out.empty()) {
        pollfd poll_fd{socket_.get(), POLLIN, 0};
        if (::poll(&poll_fd, 1, deadline.left_ms()) == 0)
            throw VfError("the device does not answer (20 s, scaled)", ETIMEDOUT);
        iovec io{out.data(), out.size()};
        msghdr message{};
        message.msg_iov = &io;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        const auto got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) throw VfError("the device closed the connection", ECONNRESET);
        for (auto* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
            const auto count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            for (std::size_t i = 0; c->cmsg_type == SCM_RIGHTS && i < count; ++i) {
                int fd = -1;
                std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
                fds.emplace_back(fd);
            }
        }
        out = out.subspan(static_cast<std::size_t>(got));
    }
}

void Connection::answer(const Message& request) {
    const auto command = static_cast<Command>(request.header.command);
    std::vector<std::byte> body;
    bool ok = false;
    if (command == Command::DmaRead) ok = serve_read(request, body);
    if (command == Command::DmaWrite) ok = serve_write(request, body);
    if ((request.header.flags & wire::kNoReply) != 0) return;
    auto header = request.header;
    header.flags = wire::kReply | (ok ? 0 : wire::kError);
    header.error = ok ? 0 : EFAULT;
    send(header, body, {});
}

bool Connection::serve_read(const Message& request, std::vector<std::byte>& out) {
    if (request.body.size() < sizeof(wire::DmaAccess) || !dma_.read) return false;
    const auto access = softgpu::load<wire::DmaAccess>(request.body);
    if (access.count > kMaxMessage) return false;
    out.resize(sizeof access + access.count);
    std::ranges::copy(bytes_of(access), out.begin());
    return dma_.read(access.address, std::span(out).subspan(sizeof access));
}

bool Connection::serve_write(const Message& request, std::vector<std::byte>& out) {
    if (request.body.size() < sizeof(wire::DmaAccess) || !dma_.write) return false;
    const auto access = softgpu::load<wire::DmaAccess>(request.body);
    const auto data = std::span(request.body).subspan(sizeof access);
    if (data.size() != access.count) return false;
    out.assign(request.body.begin(), request.body.begin() + sizeof access);
    return dma_.write(access.address, data);
}

void Connection::serve_dma(DmaHandler handler) {
    const std::scoped_lock lock(mutex_);
    dma_ = std::move(handler);
    if (!server_.joinable()) server_ = std::thread([this] { serve_loop(); });
}

void Connection::serve_loop() {
    while (!stop_) {
        std::array<pollfd, 2> fds{pollfd{socket_.get(), POLLIN, 0}, pollfd{wake_.get(), POLLIN, 0}};
        ::poll(fds.data(), fds.size(), -1);
        if (stop_ || (fds[0].revents & (POLLHUP | POLLERR)) != 0) return;
        const std::scoped_lock lock(mutex_);
        // The call that held the lock may have taken the message already.
        if (::poll(fds.data(), 1, 0) != 1) continue;
        try {
            const auto message = receive();
            if ((message.header.flags & wire::kTypeMask) != wire::kReply) answer(message);
        } catch (const VfError&) {
            return;  // the device hung up; the next call says so
        }
    }
}

bool Connection::closed_by_server(milliseconds limit) {
    const Deadline deadline(limit);
    std::array<std::byte, 256> scrap;
    while (!deadline.passed()) {
        pollfd poll_fd{socket_.get(), POLLIN, 0};
        if (::poll(&poll_fd, 1, deadline.left_ms()) <= 0) continue;
        const auto got = ::recv(socket_.get(), scrap.data(), scrap.size(), 0);
        if (got == 0 || (got < 0 && errno == ECONNRESET)) return true;
    }
    return false;
}

}  // namespace vgpu::test
