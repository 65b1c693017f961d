// SPDX-License-Identifier: MIT
//
// Server: answers scrapers by HTTP on listening sockets. Everyone who can reach the sockets may
// read. Limits keep one client from blocking the others:
//   - No socket blocks. Each iteration reads at most one buffer from a client, and writes only as
//     much as the client accepts.
//   - A client has kTimeout for its request, and kTimeout for the response. If more than
//     kMaxRequest bytes arrive without the end of the head, Server refuses the request.
//   - There are at most kMaxClients connections. For a further connection, Server closes the oldest
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
    static constexpr std::size_t kMaxRequest = 8192;  ///< bytes
    static constexpr daemon::Nanoseconds kTimeout = std::chrono::seconds(5);

    /// Returns the response to a request for /metrics.
    using Metrics = std::function<Response(MetricsFormat)>;

    /// `listeners`: listening sockets, non-blocking.
    Server(std::vector<daemon::adapters::UniqueFd> listeners, Metrics metrics,
           const daemon::Clock& clock);

    /// Adds all sockets and deadlines to `poll_set`.
    void watch(daemon::adapters::PollSet& poll_set);
    /// Serves the sockets that are ready, closes late connections and accepts new ones.
    void dispatch(const daemon::adapters::PollSet& poll_set);

    [[nodiscard]] std::size_t clients() const { return clients_.size(); }

private:
    struct Client {
        daemon::adapters::UniqueFd fd;
        daemon::Nanoseconds until{0};  ///< deadline of the request, then of the response
        std::string request{};
        Response response{};    ///< null while the request is being read
        std::size_t sent = 0;   ///< bytes of the response that were sent
        std::size_t total = 0;  ///< bytes of the response to send; 0 if `response` is null
        std::size_t index = 0;  ///< index of `fd` in PollSet::fds
        bool is_over = false;   ///< true if dispatch() must close the connection
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
