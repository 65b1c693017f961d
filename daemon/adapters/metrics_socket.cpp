// SPDX-License-Identifier: MIT
#include "daemon/adapters/metrics_socket.h"

#include "daemon/adapters/http_request.h"
#include "daemon/adapters/listener.h"
#include "pf-driver/process/socket_watch.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <array>
#include <cerrno>
#include <utility>

namespace vgpu::daemon::adapters {

namespace {

/// Reading needs no privilege, as on D-Bus; the directory may restrict it.
constexpr mode_t kSocketMode = 0666;
constexpr int kBacklog = 16;

}  // namespace

MetricsSocket::MetricsSocket(Source source, const Clock& clock)
    : source_(std::move(source)), clock_(clock) {}

MetricsSocket::~MetricsSocket() {
    if (listener_.is_open()) remove_stale_socket(path_);
}

Result<> MetricsSocket::listen(const std::string& path) {
    TRY(UniqueFd fd, listen_at(path, kSocketMode, kBacklog));
    listener_ = std::move(fd);
    path_ = path;
    number_ = vgpu_socket_number(path.c_str());
    if (!names_.is_open()) names_ = UniqueFd(vgpu_socket_watch_open());
    static_cast<void>(vgpu_socket_watch_add(names_.get(), path.c_str()));
    return {};
}

/// Listens again after the socket's file was removed: no client could connect.
void MetricsSocket::listen_again() {
    vgpu_socket_watch_clear(names_.get());
    if (vgpu_socket_number(path_.c_str()) != number_) static_cast<void>(listen(std::string(path_)));
}

void MetricsSocket::watch(Wanted& wanted) {
    is_watched_ = true;
    listener_index_ = wanted.fds.size();
    wanted.watch(listener_.get(), POLLIN);
    wanted.watch(names_.get(), POLLIN);
    for (Client& client : clients_) {
        client.index = wanted.fds.size();
        wanted.watch(client.fd.get(), client.response.empty() ? POLLIN : POLLOUT);
        wanted.wake_by(client.since + kPatience);
    }
}

void MetricsSocket::look(const Wanted& wanted) {
    if (!std::exchange(is_watched_, false)) return;
    const Nanoseconds now = clock_.now();
    for (Client& client : clients_) {
        if (wanted.fds.at(client.index).revents != 0) serve(client);
        if (now - client.since >= kPatience) client.is_over = true;
    }
    std::erase_if(clients_, [](const Client& client) { return client.is_over; });
    if (listener_.is_open() && wanted.fds.at(listener_index_).revents != 0) accept();
    if (names_.is_open() && wanted.has_come(names_.get())) listen_again();
}

void MetricsSocket::accept() {
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.is_open()) return;
    // Silent open connections must not keep scrapers out.
    if (clients_.size() == kMaxClients) clients_.erase(clients_.begin());
    clients_.push_back({.fd = std::move(fd), .since = clock_.now()});
}

void MetricsSocket::serve(Client& client) {
    if (client.response.empty()) read(client);
    if (!client.response.empty() && !client.is_over) write(client);
}

void MetricsSocket::read(Client& client) {
    std::array<char, kMaxRequest> buffer{};
    const ssize_t got = ::recv(client.fd.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got > 0) client.request.append(buffer.data(), static_cast<std::size_t>(got));
    if (got <= 0 || client.request.size() > kMaxRequest) {
        client.is_over = true;
        return;
    }
    if (!is_complete(client.request)) return;
    const HttpAnswer answer = answer_to(client.request);
    const bool wants_document = answer == HttpAnswer::Document || answer == HttpAnswer::HeadOnly;
    const Document document =
        wants_document ? source_(header_of(client.request, "accept")) : Document{};
    client.response = http_response(answer, document.type, document.text);
}

void MetricsSocket::write(Client& client) {
    const std::string_view rest = std::string_view(client.response).substr(client.sent);
    const ssize_t done =
        ::send(client.fd.get(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (done < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (done > 0) client.sent += static_cast<std::size_t>(done);
    if (done <= 0 || client.sent == client.response.size()) client.is_over = true;
}

}  // namespace vgpu::daemon::adapters
