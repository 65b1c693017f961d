// SPDX-License-Identifier: MIT
//
// MetricsSocket serves the metrics document to scrapers by HTTP/1.0 on a unix socket (curl
// --unix-socket, or a proxy in front of Prometheus). Anyone who can reach the socket may read; no
// client can harm the others or vgpud:
//   - sockets never block; a turn of the loop reads one buffer and writes what the client accepts;
//   - at most kMaxClients at once: another one replaces the oldest;
//   - a client has kPatience for everything, and kMaxRequest bytes for its request.
// main.cpp calls watch() before each wait and look() after it; one thread.
#pragma once

#include "daemon/adapters/event_loop.h"
#include "daemon/adapters/unique_fd.h"
#include "daemon/ports/result.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::daemon::adapters {

class MetricsSocket {
public:
    static constexpr std::size_t kMaxClients = 8;
    static constexpr std::size_t kMaxRequest = 4096;
    /// From the connection to the last byte taken.
    static constexpr Nanoseconds kPatience = std::chrono::seconds(5);

    struct Document {
        std::string type;  ///< media type
        std::string text;
    };
    /// Makes the document for a request with header `accept` (maybe empty); once per request.
    using Source = std::function<Document(std::string_view accept)>;

    MetricsSocket(Source source, const Clock& clock);
    ~MetricsSocket();
    MetricsSocket(const MetricsSocket&) = delete;
    MetricsSocket& operator=(const MetricsSocket&) = delete;

    /// System on failure. Must succeed before watch() and look() are of use.
    Result<> listen(const std::string& path);

    void watch(Wanted& wanted);
    /// Serves ready clients, and closes those whose time is over.
    void look(const Wanted& wanted);

    [[nodiscard]] std::size_t clients() const { return clients_.size(); }

private:
    /// Reads until the request is complete, then writes; one request per connection.
    struct Client {
        UniqueFd fd;
        Nanoseconds since{0};
        std::string request{}, response{};
        std::size_t sent = 0;
        std::size_t index = 0;  ///< in Wanted::fds
        bool is_over = false;
    };

    void listen_again();
    void accept();
    void serve(Client& client);
    void read(Client& client);
    void write(Client& client);

    Source source_;
    const Clock& clock_;
    std::string path_;
    UniqueFd listener_;
    UniqueFd names_;            ///< readable when the socket's file may have been removed
    std::uint64_t number_ = 0;  ///< of that file
    std::size_t listener_index_ = 0;
    bool is_watched_ = false;
    std::vector<Client> clients_;  ///< oldest first
};

}  // namespace vgpu::daemon::adapters
