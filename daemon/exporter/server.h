// SPDX-License-Identifier: MIT
//
// Server: answers scrapers by HTTP on listening sockets. Everyone who can reach the sockets may
// read, and no client can harm other clients:
//   - sockets never block; an iteration reads one buffer and writes what the client accepts;
//   - a client has kTimeout and kMaxRequest bytes for its request, and kTimeout for the response;
//   - there are at most kMaxClients connections. For a further connection, Server closes the oldest
//     connection without a response, or the oldest of all if all have a response.
// main.cpp calls watch() before each wait and dispatch() after it, in one thread.
#pragma once

#include "daemon/adapters/event_loop.h"
#include "daemon/adapters/unique_fd.h"
#include "daemon/exporter/answers.h"
#include "daemon/exporter/http_request.h"

#include <functional>
#include <string>
#include <vector>

namespace vgpu::exporter {

class Server {
public:
    static constexpr std::size_t kMaxClients = 64;
    static constexpr std::size_t kMaxRequest = 8192;
    static constexpr daemon::Nanoseconds kTimeout = std::chrono::seconds(5);

    using Metrics = std::function<Response(MetricsFormat)>;

    Server(std::vector<daemon::adapters::UniqueFd> listeners, Metrics metrics,
           const daemon::Clock& clock);

    void watch(daemon::adapters::PollSet& poll_set);
    void dispatch(const daemon::adapters::PollSet& poll_set);

    [[nodiscard]] std::size_t clients() const { return clients_.size(); }

private:
    struct Client {
        daemon::adapters::UniqueFd fd;
        daemon::Nanoseconds until{0};  ///< deadline of the request, then of the response
        std::string request{};
        Response response{};    ///< null while the request is being read
        std::size_t sent = 0;   ///< bytes of the response that were sent
        std::size_t total = 0;  ///< bytes of the response to send; 0 without a response
        std::size_t index = 0;  ///< index of `fd` in PollSet::fds
        bool is_over = false;
    };

    void accept(int listener);
    void serve(Client& client);
    void read(Client& client);
    void respond(Client& client, const HttpRequest& request);
    void write(Client& client);

    std::vector<daemon::adapters::UniqueFd> listeners_;
    Metrics metrics_;
    const daemon::Clock& clock_;
    std::vector<Client> clients_;  ///< oldest first
};

}  // namespace vgpu::exporter
