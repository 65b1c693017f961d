// SPDX-License-Identifier: MIT
//
// GuestPort: an agent in a guest, played by the test over the real socket of a VF.
#pragma once

#include "tests/support/deadline.h"
#include "tests/support/stack/child_process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace vgpu::daemon::testing {

/// The guest's end of the port.
class GuestPort {
public:
    explicit GuestPort(const std::string& path) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
        fd_ = make_socket();
        const void* generic = &address;
        test::wait_for("the agent's socket", test::milliseconds(10'000), [&] {
            return ::connect(fd_, static_cast<const sockaddr*>(generic), sizeof address) == 0;
        });
    }
    ~GuestPort() { ::close(fd_); }
    [[nodiscard]] int fd() const { return fd_; }
    GuestPort(const GuestPort&) = delete;
    GuestPort& operator=(const GuestPort&) = delete;

    void say(const std::string& text) const {
        EXPECT_EQ(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL), ssize_t(text.size()));
    }
    /// The next line from vgpud; null once vgpud has disconnected.
    nlohmann::json hear() {
        while (pending_.find('\n') == std::string::npos) {
            pollfd waited{.fd = fd_, .events = POLLIN, .revents = 0};
            if (::poll(&waited, 1, 20'000) != 1) throw std::runtime_error("vgpud says nothing");
            char buffer[4096];
            const ssize_t got = ::recv(fd_, buffer, sizeof buffer, 0);
            if (got <= 0) return nullptr;
            pending_.append(buffer, static_cast<std::size_t>(got));
        }
        const std::string line = pending_.substr(0, pending_.find('\n'));
        pending_.erase(0, line.size() + 1);
        return nlohmann::json::parse(line);
    }

    void greet() {
        EXPECT_EQ(hear().at("type"), "welcome");
        say(R"({"type":"hello","protocol":1,"welcomed":true,"agent":"9.9","kernel":"6.12",)"
            R"("driver":{"name":"amdgpu","version":"","srcversion":""},"rocr":"1.13",)"
            R"("vf":{"pci":"0000:00:05.0","unique_id":"1d"}})"
            "\n");
        say(R"({"type":"status","health":{"driver":"amdgpu","render_node":"/dev/dri/renderD128",)"
            R"("resets":0,"errors":0,"last_error":""},"vram":{"total_bytes":1024,)"
            R"("used_bytes":512},"process_count":1,"processes":[{"pid":412,"comm":"matmul",)"
            R"("vram_bytes":256,"queues":2}],"quiesced":false})"
            "\n");
    }
    void answer(const nlohmann::json& ask, const std::string& text) const {
        say(nlohmann::json{{"type", "result"},
                           {"id", ask.at("id")},
                           {"ok", true},
                           {"text", text},
                           {"duration_ms", 5}}
                .dump() +
            "\n");
    }

private:
    static int make_socket() { return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }

    int fd_ = -1;
    std::string pending_;
};

}  // namespace vgpu::daemon::testing
