// SPDX-License-Identifier: MIT
#include "daemon/exporter/server.h"

#include <sys/socket.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace vgpu::exporter {

using daemon::adapters::PollSet;
using daemon::adapters::UniqueFd;

namespace {

/// True if the connection is over. `done`: result of recv() or send().
bool is_connection_over(ssize_t done) {
    return done == 0 || (done < 0 && errno != EAGAIN && errno != EINTR);
}

}  // namespace

Server::Server(std::vector<UniqueFd> listeners, Metrics metrics, const daemon::Clock& clock)
    : listeners_(std::move(listeners)), metrics_(std::move(metrics)), clock_(clock) {}

void Server::watch(PollSet& poll_set) {
    for (const UniqueFd& listener : listeners_) poll_set.watch(listener.get(), POLLIN);
    for (Client& client : clients_) {
        client.index = poll_set.fds.size();
        poll_set.watch(client.fd.get(), client.sent < client.total ? POLLOUT : POLLIN);
        poll_set.wake_by(client.until);
    }
}

void Server::dispatch(const PollSet& poll_set) {
    // The clock is read once, so that a client does not become late while dispatch() waits for
    // vgpud on behalf of another client.
    const daemon::Nanoseconds now = clock_.now();
    for (Client& client : clients_) {
        if (poll_set.fds.at(client.index).revents != 0) serve(client);
        if (now >= client.until) client.is_over = true;
    }
    std::erase_if(clients_, [](const Client& client) { return client.is_over; });
    for (const UniqueFd& listener : listeners_)
        if (poll_set.is_ready(listener.get())) accept(listener.get());
}

void Server::accept(int listener) {
    UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.is_open()) return;
    if (clients_.size() == kMaxClients) {
        const auto unanswered =
            std::ranges::find_if(clients_, [](const Client& client) { return !client.response; });
        clients_.erase(unanswered == clients_.end() ? clients_.begin() : unanswered);
    }
    clients_.push_back({.fd = std::move(fd), .until = clock_.now() + kTimeout});
}

void Server::serve(Client& client) {
    if (client.sent < client.total)
        write(client);
    else
        read(client);
}

/// Reads a part of a request. Reads and discards bytes after the request, because closing a socket
/// with unread bytes resets the connection, and the client could lose the response.
void Server::read(Client& client) {
    std::array<char, kMaxRequest> buffer{};
    const ssize_t got = ::recv(client.fd.get(), buffer.data(), buffer.size(), 0);
    client.is_over = is_connection_over(got);
    if (got <= 0 || client.response) return;
    client.request.append(buffer.data(), static_cast<std::size_t>(got));
    if (is_complete(client.request))
        respond(client, parse_request(client.request));
    else if (client.request.size() > kMaxRequest)
        respond(client, {.page = Page::TooLarge});
}

void Server::respond(Client& client, const HttpRequest& request) {
    client.response = request.page == Page::Metrics
                          ? metrics_(format_for(request.accept))
                          : std::make_shared<const std::string>(http_response(request.page));
    client.total = request.is_head ? head_size(*client.response) : client.response->size();
    client.until = clock_.now() + kTimeout;
    write(client);
}

void Server::write(Client& client) {
    const ssize_t done = ::send(client.fd.get(), client.response->data() + client.sent,
                                client.total - client.sent, MSG_NOSIGNAL);
    client.is_over = is_connection_over(done);
    if (done > 0) client.sent += static_cast<std::size_t>(done);
    if (client.sent == client.total) ::shutdown(client.fd.get(), SHUT_WR);
}

}  // namespace vgpu::exporter
