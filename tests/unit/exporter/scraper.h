// SPDX-License-Identifier: MIT
//
// A scraper's end of a connection, for tests that misuse it.
#pragma once

#include "daemon/adapters/unique_fd.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

namespace vgpu::exporter::testing {

using daemon::adapters::UniqueFd;

/// To "127.0.0.1:PORT".
inline UniqueFd connect_to(const std::string& address) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port =
        htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
    const void* const generic = &to;
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(fd.get(), static_cast<const sockaddr*>(generic), sizeof to), 0);
    return fd;
}

/// How much of `text` was taken at once.
inline std::size_t send_some(const UniqueFd& fd, std::string_view text) {
    const ssize_t done = ::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return done > 0 ? static_cast<std::size_t>(done) : 0;
}

inline void say(const UniqueFd& fd, std::string_view text) {
    EXPECT_EQ(send_some(fd, text), text.size());
}

/// What has come so far, or with MSG_WAITALL everything up to the end; `ended` tells whether the
/// server hung up.
inline std::string heard(const UniqueFd& fd, bool& ended, int flags = MSG_DONTWAIT) {
    std::string text;
    std::array<char, 65536> buffer{};
    for (;;) {
        const ssize_t got = ::recv(fd.get(), buffer.data(), buffer.size(), flags);
        ended = got == 0 || (got < 0 && errno != EAGAIN);
        if (got <= 0) return text;
        text.append(buffer.data(), static_cast<std::size_t>(got));
    }
}

/// Lets this process have some thousand descriptors.
inline void allow_many_descriptors() {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 4096);
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
}

constexpr std::string_view kScrape = "GET /metrics HTTP/1.0\r\n\r\n";

}  // namespace vgpu::exporter::testing
