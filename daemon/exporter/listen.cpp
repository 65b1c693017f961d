// SPDX-License-Identifier: MIT
#include "daemon/exporter/listen.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <memory>
#include <string_view>
#include <system_error>

namespace vgpu::exporter {

using daemon::adapters::UniqueFd;

namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

/// True for a number from 0 to 65535. Needed because getaddrinfo() accepts 65536 as port 0.
bool is_port(std::string_view text) {
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    return error == std::errc{} && end == text.data() + text.size();
}

/// Resolves `address`; null if `address` is not HOST:PORT or [HOST]:PORT with a numeric host.
Addresses addresses_of(const std::string& address) {
    const std::size_t colon = std::min(address.rfind(':'), address.size());
    std::string host = address.substr(0, colon);
    const std::string port = address.substr(std::min(colon + 1, address.size()));
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    if (is_port(port)) static_cast<void>(::getaddrinfo(host.c_str(), port.c_str(), &hints, &found));
    return {found, ::freeaddrinfo};
}

}  // namespace

OrWhy<UniqueFd> listen_at(const std::string& address) {
    const Addresses found = addresses_of(address);
    if (!found)
        return tl::make_unexpected(fmt::format(
            "'{}' is not an address with a port, such as 127.0.0.1:9482 or [::1]:9482", address));
    UniqueFd fd(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int yes = 1;
    if (!fd.is_open() || ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        ::bind(fd.get(), found->ai_addr, found->ai_addrlen) != 0 ||
        ::listen(fd.get(), SOMAXCONN) != 0)
        return tl::make_unexpected(fmt::format("cannot listen at {}: {}", address,
                                               std::generic_category().message(errno)));
    return fd;
}

std::string address_of(int socket) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    void* const generic = &address;
    std::array<char, NI_MAXHOST> host{};
    std::array<char, NI_MAXSERV> port{};
    ::getsockname(socket, static_cast<sockaddr*>(generic), &size);
    ::getnameinfo(static_cast<sockaddr*>(generic), size, host.data(), host.size(), port.data(),
                  port.size(), NI_NUMERICHOST | NI_NUMERICSERV);
    const bool is_ipv6 = address.ss_family == AF_INET6;
    return fmt::format("{}{}{}:{}", is_ipv6 ? "[" : "", host.data(), is_ipv6 ? "]" : "",
                       port.data());
}

OrWhy<std::vector<UniqueFd>> passed_sockets() {
    constexpr int kUnsetEnvironment = 1;
    constexpr int kListens = 1;
    std::vector<UniqueFd> sockets;
    const int end = SD_LISTEN_FDS_START + ::sd_listen_fds(kUnsetEnvironment);
    for (int fd = SD_LISTEN_FDS_START; fd < end; ++fd) {
        if (::sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, kListens) <= 0 ||
            ::fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
            return tl::make_unexpected(
                std::string("a socket from systemd is not a listening stream socket; see "
                            "vgpu-exporter.socket"));
        sockets.emplace_back(fd);
    }
    return sockets;
}

}  // namespace vgpu::exporter
