// SPDX-License-Identifier: MIT
//
// AgentSockets implements AgentPort with unix stream sockets to which QEMU connects. All are
// non-blocking, and a turn reads at most kMaxPerTurn of each client, so that a flood from one
// client costs a bounded part of a turn. There may be hundreds of sockets, most of them idle: they
// are registered with one epoll, and main.cpp watches only that; one thread. If a socket's file is
// removed, it is made again.
#pragma once

#include "daemon/adapters/event_loop.h"
#include "daemon/adapters/unique_fd.h"
#include "daemon/ports/agent_port.h"

#include <map>

namespace vgpu::daemon::adapters {

/// Accepts connections even while a client is connected, and closes them: a second client learns
/// at once that it is refused.
class AgentSockets final : public AgentPort {
public:
    /// Bytes of one client in one turn of the main loop.
    static constexpr std::size_t kMaxPerTurn = 16 * 1024;

    /// Sockets served in one turn; epoll rotates among the ready ones.
    static constexpr int kMaxReady = 64;

    AgentSockets();
    ~AgentSockets() override;

    /// Call look() with the same `wanted` afterwards.
    void watch(Wanted& wanted);
    /// Accepts at and reads from ready sockets; does not wait.
    void look(const Wanted& wanted);

    Result<> listen(const std::string& path) override;
    void close(const std::string& path) override;
    void accept_clients(const std::string& path, bool is_wanted) override;
    bool send(const std::string& path, std::string_view bytes) override;
    void disconnect(const std::string& path) override;
    std::vector<AgentInput> take() override;

private:
    /// One socket of one VF; at most one client.
    struct Place {
        std::uint32_t id = 0;  ///< never reused, unlike an fd's number
        UniqueFd listener;
        UniqueFd client;
        std::uint64_t number = 0;  ///< of the listener's file
        bool is_accepting = true;
    };
    enum class End : std::uint32_t { Listener, Client, Names };
    /// The value that epoll stores with a socket and returns.
    static std::uint64_t tag_of(std::uint32_t id, End end);

    Result<> register_fd(int fd, std::uint64_t tag);
    Result<> open(const std::string& path, Place& place);
    void open_removed();
    void accept(const std::string& path, Place& place);
    void read(const std::string& path, Place& place);

    UniqueFd epoll_;
    UniqueFd names_;              ///< readable when a socket's file may have been removed
    std::size_t watched_at_ = 0;  ///< in Wanted::fds
    std::uint32_t last_id_ = 0;
    std::map<std::string, Place> places_;
    std::map<std::uint32_t, std::string> paths_;  ///< by Place::id
    std::vector<AgentInput> input_;
};

}  // namespace vgpu::daemon::adapters
