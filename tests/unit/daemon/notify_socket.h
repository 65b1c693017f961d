// SPDX-License-Identifier: MIT
//
// NotifySocket: systemd's end of sd_notify(3). While it lives NOTIFY_SOCKET of this process names
// it; messages() takes what has come, one string per datagram.
#pragma once

#include "daemon/adapters/unique_fd.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <array>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace vgpu::daemon::testing {

class NotifySocket {
public:
    explicit NotifySocket(const std::string& path) : path_(path) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        if (path.size() >= sizeof address.sun_path) throw std::runtime_error("path too long");
        std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
        fd_ = adapters::UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        const void* generic = &address;
        if (::bind(fd_.get(), static_cast<const sockaddr*>(generic), sizeof address) != 0)
            throw std::runtime_error("cannot bind " + path);
        ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
    }
    ~NotifySocket() {
        ::unsetenv("NOTIFY_SOCKET");
        ::unlink(path_.c_str());
    }
    NotifySocket(const NotifySocket&) = delete;
    NotifySocket& operator=(const NotifySocket&) = delete;

    [[nodiscard]] std::vector<std::string> messages() const {
        std::vector<std::string> all;
        std::array<char, 4096> text{};
        for (;;) {
            const ssize_t got = ::recv(fd_.get(), text.data(), text.size(), 0);
            if (got < 0) return all;
            all.emplace_back(text.data(), static_cast<std::size_t>(got));
        }
    }

private:
    std::string path_;
    adapters::UniqueFd fd_;
};

}  // namespace vgpu::daemon::testing
