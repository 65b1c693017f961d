// SPDX-License-Identifier: MIT
#include "daemon/adapters/agent_sockets.h"

#include "daemon/adapters/listener.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <utility>

namespace vgpu::daemon::adapters {

namespace {

/// QEMU may run as another user of the group, as with the VF's own socket.
constexpr mode_t kSocketMode = 0660;
/// One client and one that comes too early.
constexpr int kBacklog = 2;
constexpr std::string_view kAgentEnd = ".agent.sock", kVfEnd = ".sock";

/// Whom the VF's own socket was given to, and who has it open maybe, may open its agent's: also one
/// that a new vgpud has made.
void follow_owner_of_vf(const std::string& path) {
    if (!path.ends_with(kAgentEnd)) return;
    const std::string vf =
        path.substr(0, path.size() - kAgentEnd.size()).append(kVfEnd.begin(), kVfEnd.end());
    struct stat facts {};
    if (::lstat(vf.c_str(), &facts) != 0 || !S_ISSOCK(facts.st_mode)) return;
    if (facts.st_uid == ::geteuid()) return;
    static_cast<void>(::lchown(path.c_str(), facts.st_uid, facts.st_gid) == 0);
}

}  // namespace

AgentSockets::~AgentSockets() {
    while (!places_.empty()) close(std::string(places_.begin()->first));
}

Result<> AgentSockets::listen(const std::string& path) {
    TRY(UniqueFd listener, listen_at(path, kSocketMode, kBacklog));
    follow_owner_of_vf(path);
    places_[path].listener = std::move(listener);
    return {};
}

void AgentSockets::close(const std::string& path) {
    if (places_.erase(path) != 0) remove_stale_socket(path);
    std::erase_if(input_, [&path](const AgentInput& one) { return one.path == path; });
}

void AgentSockets::accept_clients(const std::string& path, bool is_wanted) {
    if (const auto at = places_.find(path); at != places_.end())
        at->second.is_accepting = is_wanted;
}

bool AgentSockets::send(const std::string& path, std::string_view bytes) {
    const auto at = places_.find(path);
    if (at == places_.end() || !at->second.client.is_open()) return false;
    const ssize_t done =
        ::send(at->second.client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return std::cmp_equal(done, bytes.size());
}

void AgentSockets::disconnect(const std::string& path) {
    if (const auto at = places_.find(path); at != places_.end()) at->second.client.reset();
    std::erase_if(input_, [&path](const AgentInput& one) { return one.path == path; });
}

void AgentSockets::watch(Wanted& wanted) {
    watched_.clear();
    for (const auto& [path, place] : places_) {
        if (place.is_accepting && place.listener.is_open()) {
            watched_.push_back({path, wanted.fds.size(), true});
            wanted.watch(place.listener.get(), POLLIN);
        }
        if (place.client.is_open()) {
            watched_.push_back({path, wanted.fds.size(), false});
            wanted.watch(place.client.get(), POLLIN);
        }
    }
}

void AgentSockets::look(const Wanted& wanted) {
    for (const Watched& one : std::exchange(watched_, {})) {
        const auto at = places_.find(one.path);
        if (wanted.fds.at(one.index).revents == 0 || at == places_.end()) continue;
        if (one.is_listener)
            accept(one.path, at->second);
        else
            read(one.path, at->second);
    }
}

void AgentSockets::accept(const std::string& path, Place& place) {
    UniqueFd client(
        ::accept4(place.listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    // A second client is closed here, by the end of its UniqueFd.
    if (!client.is_open() || place.client.is_open()) return;
    place.client = std::move(client);
    input_.push_back({.path = path, .kind = AgentInput::Kind::Connected});
}

void AgentSockets::read(const std::string& path, Place& place) {
    if (!place.client.is_open()) return;
    std::array<char, kMaxPerTurn> buffer{};
    const ssize_t got = ::recv(place.client.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got > 0)
        return input_.push_back({.path = path,
                                 .kind = AgentInput::Kind::Bytes,
                                 .bytes = {buffer.data(), static_cast<std::size_t>(got)}});
    place.client.reset();
    input_.push_back({.path = path, .kind = AgentInput::Kind::Gone});
}

std::vector<AgentInput> AgentSockets::take() {
    return std::exchange(input_, {});
}

}  // namespace vgpu::daemon::adapters
