// SPDX-License-Identifier: MIT
//
// serve_input(): one hostile client against a real session with a real PCI function. Byte 0 of the
// input chooses the setup. Bit 0: a PF instead of a VF. Bit 1: VERSION has been agreed. Bit 2:
// decoding and bus mastering are on. Bit 3: an eventfd comes with the first byte. Bit 4: so does a
// memfd. The client sends the other bytes. The fuzzer uses serve_input(), and so does the unit test
// that replays messages and their mutations.
#pragma once

#include <fcntl.h>
#include <linux/pci_regs.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "pf-driver/softgpu/pci/function.h"
#include "pf-driver/softgpu/vfio_user/session.h"

namespace vgpu::softgpu::vfio_user::fuzz {

inline constexpr unsigned kIsPf = 0;
inline constexpr unsigned kIsNegotiated = 1;
inline constexpr unsigned kIsRunning = 2;
inline constexpr unsigned kHasEventfd = 3;
inline constexpr unsigned kHasMemfd = 4;

class Surroundings final : public pci::FunctionOwner, public pci::DmaSink {
public:
    Result<> attached(std::shared_ptr<Peer>) override { return {}; }
    void detached() override {}
    void reset(pci::ResetKind) override {}
    Result<> map(const DmaRange&, int) override { return {}; }
    void unmap(const DmaRange&) override {}
    void unmap_all() override {}
};

inline pci::BarHandler zeroes() {
    return {[](std::uint64_t, std::span<std::byte> out) { std::ranges::fill(out, std::byte{0}); },
            [](std::uint64_t, std::span<const std::byte>) {},
            [] {
                return std::optional(pci::MappableMemory{
                    OwnedFd(::memfd_create("bar", MFD_CLOEXEC)), {{0, 1u << 20}}});
            }};
}

inline std::vector<std::byte> version_message() {
    constexpr std::string_view kText =
        R"({"capabilities":{"max_msg_fds":16,"write_multiple":true}})";
    std::vector<std::byte> message(sizeof(Header) + sizeof(Version) + kText.size() + 1);
    store(std::span(message), 0,
          Header{.command = static_cast<std::uint16_t>(Command::Version),
                 .size = static_cast<std::uint32_t>(message.size())});
    std::memcpy(message.data() + sizeof(Header) + sizeof(Version), kText.data(), kText.size());
    return message;
}

/// The client's end of the connection.
class HostileClient {
public:
    explicit HostileClient(OwnedFd socket) : socket_(std::move(socket)) {}

    void send(std::span<const std::byte> bytes, std::span<const int> fds) {
        iovec part{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
        alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(4 * sizeof(int))> control{};
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
        (void)!::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    void drain() {
        std::array<std::byte, 65536> ignored{};
        while (::recv(socket_.get(), ignored.data(), ignored.size(), MSG_DONTWAIT) > 0) {
        }
    }
    void hang_up() { socket_.reset(); }

private:
    OwnedFd socket_;
};

/// Serves all that the client has sent, as the server's loop would.
inline void serve(Session& session, HostileClient& client) {
    int waiting = 1;
    while (session.state() != Session::State::Closed && (waiting > 0 || session.has_unserved())) {
        session.channel().has_backlog() ? session.on_writable() : session.on_readable();
        client.drain();
        if (session.state() == Session::State::Closed) return;
        if (::ioctl(session.channel().fd(), FIONREAD, &waiting) != 0) return;
        if (session.channel().has_backlog()) waiting = 1;
    }
}

inline void serve_input(std::span<const std::byte> input) {
    if (input.empty()) return;
    const auto choices = static_cast<unsigned>(input.front());
    input = input.subspan(1);
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return;

    Surroundings around;
    pci::Function function(bit(choices, kIsPf) ? pci::pf_function(64_MiB, 16, 16_MiB)
                                               : pci::vf_function(VfId{1}, 16_MiB),
                           around, around);
    function.set_bar(VGPU_BAR_VRAM, zeroes());
    function.set_bar(VGPU_BAR_REGISTERS, zeroes());
    if (bit(choices, kIsPf))
        function.config().claim(VGPU_ECAP_VSEC + 8, 0xe8, zeroes().read, zeroes().write);
    const std::uint16_t running = PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER;
    const auto region = static_cast<std::uint32_t>(Region::Config);
    if (bit(choices, kIsRunning)) (void)function.write(region, PCI_COMMAND, bytes_of(running));

    static SessionContext context;
    ServedDevice port{.device = function,
                      .limiter = ResetRateLimiter({.gap = std::chrono::milliseconds(0)})};
    HostileClient client{OwnedFd(ends[1])};
    Session session(OwnedFd(ends[0]), port, context);
    if (bit(choices, kIsNegotiated)) {
        client.send(version_message(), {});
        serve(session, client);
    }
    std::vector<OwnedFd> owned;
    if (bit(choices, kHasEventfd)) owned.emplace_back(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (bit(choices, kHasMemfd)) owned.emplace_back(::memfd_create("client", MFD_CLOEXEC));
    std::vector<int> fds;
    for (const OwnedFd& fd : owned) fds.push_back(fd.get());
    client.send(input, fds);
    serve(session, client);
    function.raise(0);
    client.hang_up();
    session.on_readable();
}

}  // namespace vgpu::softgpu::vfio_user::fuzz
