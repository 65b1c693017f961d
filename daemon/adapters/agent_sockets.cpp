// SPDX-License-Identifier: MIT
#include "daemon/adapters/agent_sockets.h"

#include "daemon/adapters/listener.h"
#include "pf-driver/process/socket_watch.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <utility>

namespace vgpu::daemon::adapters {

namespace {

/// Lets the group open the socket, because QEMU may run as another user of vgpud's group.
constexpr mode_t kSocketMode = 0660;
/// The backlog of listen(2): at least QEMU and one more client may wait until accept().
constexpr int kBacklog = 2;
constexpr std::string_view kAgentSuffix = ".agent.sock", kVfSuffix = ".sock";

}  // namespace

AgentSockets::AgentSockets(std::optional<uid_t> device_user)
    : device_user_(device_user),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      removal_watch_(vgpu_socket_watch_open()) {
    if (removal_watch_.is_open())
        static_cast<void>(register_fd(removal_watch_.get(), tag_of(0, Source::RemovalWatch)));
}

AgentSockets::~AgentSockets() {
    while (!endpoints_.empty()) close(std::string(endpoints_.begin()->first));
}

std::uint64_t AgentSockets::tag_of(std::uint32_t id, Source source) {
    return (std::uint64_t{id} << 32) | static_cast<std::uint32_t>(source);
}

Result<> AgentSockets::register_fd(int fd, std::uint64_t tag) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = tag}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
        return fail_errno(ErrorId::System, errno, "cannot watch a socket for agents");
    return {};
}

Result<> AgentSockets::listen(const std::string& path) {
    Endpoint endpoint{.id = last_id_ + 1, .listener = {}, .client = {}};
    TRY_VOID(open(path, endpoint));
    last_id_ = endpoint.id;
    if (const auto at = endpoints_.find(path); at != endpoints_.end()) paths_.erase(at->second.id);
    paths_[endpoint.id] = path;
    endpoints_[path] = std::move(endpoint);
    return {};
}

/// Opens the socket at `path`. `endpoint.id` must be set.
Result<> AgentSockets::open(const std::string& path, Endpoint& endpoint) {
    TRY(UniqueFd listener, listen_at(path, kSocketMode, kBacklog));
    if (auto watched = register_fd(listener.get(), tag_of(endpoint.id, Source::Listener));
        !watched) {
        remove_socket(path);
        return watched;
    }
    endpoint.listener = std::move(listener);
    endpoint.inode = vgpu_socket_inode(path.c_str());
    static_cast<void>(vgpu_socket_watch_add(removal_watch_.get(), path.c_str()));
    copy_user_of_vf_socket(path);
    return {};
}

/// Gives the agent's socket at `path` the user and group of the VF's vfio-user socket. Otherwise,
/// after a restart of vgpud, the user to whom the VF is granted could not open the agent's socket.
/// The device user owns the sockets that are granted to nobody, and must not get the agent's.
void AgentSockets::copy_user_of_vf_socket(const std::string& path) const {
    if (!path.ends_with(kAgentSuffix)) return;
    const std::string vf_socket = path.substr(0, path.size() - kAgentSuffix.size())
                                      .append(kVfSuffix.begin(), kVfSuffix.end());
    struct stat facts {};
    if (::lstat(vf_socket.c_str(), &facts) != 0 || !S_ISSOCK(facts.st_mode)) return;
    if (facts.st_uid == ::geteuid() || facts.st_uid == device_user_) return;
    static_cast<void>(::lchown(path.c_str(), facts.st_uid, facts.st_gid) == 0);
}

/// If the file of a socket was removed or replaced, opens the socket again, because new clients
/// cannot reach the old socket. Connected clients stay.
void AgentSockets::open_removed() {
    vgpu_socket_watch_clear(removal_watch_.get());
    for (auto& [path, endpoint] : endpoints_) {
        if (vgpu_socket_inode(path.c_str()) == endpoint.inode) continue;
        if (open(path, endpoint)) accept_clients(path, endpoint.is_accepting);
    }
}

void AgentSockets::close(const std::string& path) {
    if (const auto at = endpoints_.find(path); at != endpoints_.end()) {
        paths_.erase(at->second.id);
        endpoints_.erase(at);
        remove_socket(path);
    }
    std::erase_if(input_, [&path](const AgentInput& one) { return one.path == path; });
}

void AgentSockets::accept_clients(const std::string& path, bool is_accepting) {
    const auto at = endpoints_.find(path);
    if (at == endpoints_.end()) return;
    at->second.is_accepting = is_accepting;
    epoll_event event{.events = is_accepting ? std::uint32_t{EPOLLIN} : 0u,
                      .data = {.u64 = tag_of(at->second.id, Source::Listener)}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, at->second.listener.get(), &event);
}

bool AgentSockets::send(const std::string& path, std::string_view bytes) {
    const auto at = endpoints_.find(path);
    if (at == endpoints_.end() || !at->second.client.is_open()) return false;
    const ssize_t done =
        ::send(at->second.client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return std::cmp_equal(done, bytes.size());
}

void AgentSockets::disconnect(const std::string& path) {
    if (const auto at = endpoints_.find(path); at != endpoints_.end()) at->second.client.reset();
    std::erase_if(input_, [&path](const AgentInput& one) { return one.path == path; });
}

void AgentSockets::watch(PollSet& poll_set) {
    watched_at_ = poll_set.fds.size();
    poll_set.watch(epoll_.get(), POLLIN);
}

void AgentSockets::dispatch(const PollSet& poll_set) {
    if (!epoll_.is_open() || poll_set.fds.at(watched_at_).revents == 0) return;
    std::array<epoll_event, kMaxReady> ready{};
    const int count = ::epoll_wait(epoll_.get(), ready.data(), kMaxReady, 0);
    for (int i = 0; i < count; ++i) {
        const std::uint64_t tag = ready.at(static_cast<std::size_t>(i)).data.u64;
        if (tag == tag_of(0, Source::RemovalWatch)) {
            open_removed();
            continue;
        }
        // epoll still reports a closed socket while a forked child has a copy of its descriptor
        const auto path = paths_.find(static_cast<std::uint32_t>(tag >> 32));
        if (path == paths_.end()) continue;
        const auto at = endpoints_.find(path->second);
        if (static_cast<Source>(tag & UINT32_MAX) == Source::Listener)
            accept(at->first, at->second);
        else
            read(at->first, at->second);
    }
}

void AgentSockets::accept(const std::string& path, Endpoint& endpoint) {
    UniqueFd client(
        ::accept4(endpoint.listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    // If the endpoint has a client, the destructor of `client` closes the second client.
    if (!client.is_open() || endpoint.client.is_open()) return;
    if (!register_fd(client.get(), tag_of(endpoint.id, Source::Client))) return;
    endpoint.client = std::move(client);
    input_.push_back({.path = path, .kind = AgentInput::Kind::Connected});
}

void AgentSockets::read(const std::string& path, Endpoint& endpoint) {
    if (!endpoint.client.is_open()) return;
    std::array<char, kMaxPerIteration> buffer{};
    const ssize_t got = ::recv(endpoint.client.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got > 0)
        return input_.push_back({.path = path,
                                 .kind = AgentInput::Kind::Bytes,
                                 .bytes = {buffer.data(), static_cast<std::size_t>(got)}});
    endpoint.client.reset();
    input_.push_back({.path = path, .kind = AgentInput::Kind::Gone});
}

std::vector<AgentInput> AgentSockets::take() {
    return std::exchange(input_, {});
}

}  // namespace vgpu::daemon::adapters
