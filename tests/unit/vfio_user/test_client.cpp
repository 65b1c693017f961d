// SPDX-License-Identifier: MIT
#include "tests/unit/vfio_user/test_client.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace vgpu::softgpu::vfio_user::test {

Bytes join(Bytes first, const Bytes& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

Bytes text_with_nul(std::string_view text) {
    Bytes bytes(text.size() + 1);
    std::memcpy(bytes.data(), text.data(), text.size());
    return bytes;
}

Bytes version_body(std::string_view capabilities, std::uint16_t major, std::uint16_t minor) {
    return join(as_bytes(Version{major, minor}), text_with_nul(capabilities));
}

TestClient::TestClient(const std::string& path)
    : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    constexpr timeval kLimit{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(fd(), SOL_SOCKET, SO_RCVTIMEO, &kLimit, sizeof(kLimit));
    ::setsockopt(fd(), SOL_SOCKET, SO_SNDTIMEO, &kLimit, sizeof(kLimit));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    const void* generic = &address;
    EXPECT_EQ(::connect(fd(), static_cast<const sockaddr*>(generic), sizeof(address)), 0)
        << std::strerror(errno);
}

void TestClient::negotiate(std::string_view capabilities) {
    const Incoming reply = call(Command::Version, version_body(capabilities));
    ASSERT_FALSE(reply.is_error()) << reply.header.error;
}

bool TestClient::send_raw(std::span<const std::byte> bytes, std::span<const int> fds) {
    iovec part{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(64 * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
        message.msg_control = control.data();
        message.msg_controllen = CMSG_SPACE(fds.size_bytes());
        cmsghdr* rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(fds.size_bytes());
        std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
    }
    while (part.iov_len > 0) {
        const ssize_t put = ::sendmsg(fd(), &message, MSG_NOSIGNAL);
        if (put < 0) return false;
        bytes = bytes.subspan(static_cast<std::size_t>(put));
        part = {.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
        message.msg_control = nullptr;
        message.msg_controllen = 0;
    }
    return true;
}

Bytes TestClient::message(Command command, const Bytes& body, std::uint32_t flags) {
    const Header header{.id = next_id_++,
                        .command = static_cast<std::uint16_t>(command),
                        .size = static_cast<std::uint32_t>(sizeof(Header) + body.size()),
                        .flags = flags};
    return join(as_bytes(header), body);
}

std::uint16_t TestClient::send(Command command, const Bytes& body, std::uint32_t flags,
                               std::span<const int> fds) {
    const std::uint16_t id = next_id_;
    send_raw(message(command, body, flags), fds);
    return id;
}

void TestClient::reply(const Header& request, const Bytes& body, std::uint32_t error) {
    const Header header{.id = request.id,
                        .command = request.command,
                        .size = static_cast<std::uint32_t>(sizeof(Header) + body.size()),
                        .flags = kTypeReply | (error != 0 ? kError : 0),
                        .error = error};
    send_raw(join(as_bytes(header), body));
}

bool TestClient::read_exactly(std::span<std::byte> out, std::vector<OwnedFd>& fds) {
    while (!out.empty()) {
        iovec part{.iov_base = out.data(), .iov_len = out.size()};
        alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(16 * sizeof(int))> control{};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        const ssize_t got = ::recvmsg(fd(), &message, MSG_CMSG_CLOEXEC);
        EXPECT_TRUE(got >= 0 || errno == ECONNRESET) << "no answer in time";
        if (got <= 0) return false;
        out = out.subspan(static_cast<std::size_t>(got));
        const cmsghdr* rights = CMSG_FIRSTHDR(&message);
        if (rights == nullptr) continue;
        for (std::size_t at = 0; at < rights->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
            int one = -1;
            std::memcpy(&one, CMSG_DATA(rights) + at, sizeof(int));
            fds.emplace_back(one);
        }
    }
    return true;
}

std::optional<Incoming> TestClient::receive() {
    Incoming incoming;
    if (!read_exactly(bytes_of(incoming.header), incoming.fds)) return std::nullopt;
    EXPECT_GE(incoming.header.size, sizeof(Header));
    incoming.body.resize(incoming.header.size - sizeof(Header));
    if (!read_exactly(incoming.body, incoming.fds)) return std::nullopt;
    return incoming;
}

Incoming TestClient::call(Command command, const Bytes& body, std::span<const int> fds) {
    const std::uint16_t id = send(command, body, 0, fds);
    auto reply = receive();
    EXPECT_TRUE(reply.has_value()) << "the server closed the connection";
    if (!reply) return {};
    EXPECT_EQ(reply->header.id, id);
    EXPECT_EQ(reply->header.command, static_cast<std::uint16_t>(command));
    EXPECT_EQ(reply->header.flags & kTypeMask, kTypeReply);
    EXPECT_TRUE(!reply->is_error() || reply->body.empty());
    return std::move(*reply);
}

int TestClient::error_of(Command command, const Bytes& body, std::span<const int> fds) {
    const Incoming reply = call(command, body, fds);
    EXPECT_TRUE(!reply.is_error() || reply.header.error != 0);
    return reply.is_error() ? static_cast<int>(reply.header.error) : 0;
}

bool TestClient::is_closed_by_server() {
    while (receive()) {
    }
    return true;  // receive() fails the test if nothing happens at all
}

Incoming TestClient::read_region(std::uint32_t region, std::uint64_t offset, std::uint32_t count) {
    return call(Command::RegionRead, as_bytes(RegionAccess{offset, region, count}));
}

int TestClient::write_region(std::uint32_t region, std::uint64_t offset, const Bytes& data) {
    const RegionAccess access{offset, region, static_cast<std::uint32_t>(data.size())};
    return error_of(Command::RegionWrite, join(as_bytes(access), data));
}

void TestClient::post_write(std::uint32_t region, std::uint64_t offset, const Bytes& data) {
    const RegionAccess access{offset, region, static_cast<std::uint32_t>(data.size())};
    send(Command::RegionWrite, join(as_bytes(access), data), kNoReply);
}

void TestClient::sync() {
    ASSERT_EQ(error_of(Command::DeviceGetInfo, as_bytes(DeviceInfo{})), 0);
}

std::size_t open_fds() {
    std::size_t count = 0;
    DIR* folder = ::opendir("/proc/self/fd");
    while (::readdir(folder) != nullptr) count++;
    ::closedir(folder);
    return count;
}

OwnedFd new_eventfd() {
    return OwnedFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

std::uint64_t signals(int eventfd) {
    eventfd_t count = 0;
    return ::eventfd_read(eventfd, &count) == 0 ? count : 0;
}

}  // namespace vgpu::softgpu::vfio_user::test
