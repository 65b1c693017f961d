// SPDX-License-Identifier: MIT
//
// AgentSockets implements AgentPort with unix stream sockets, to which QEMU connects. Non-blocking;
// a turn reads at most kMaxPerTurn of each client, so a flood costs little. Hundreds of mostly idle
// sockets share one epoll, which main.cpp watches; one thread. Makes removed socket files again.
#pragma once

#include "daemon/adapters/event_loop.h"
#include "daemon/adapters/unique_fd.h"
#include "daemon/ports/agent_port.h"

#include <map>

namespace vgpu::daemon::adapters {

/// Accepts and closes second clients, so that they learn at once that they are refused.
class AgentSockets final : public AgentPort {
public:
    /// Per client and turn of the main loop.
    static constexpr std::size_t kMaxPerTurn = 16 * 1024;

    /// Per turn; epoll rotates among ready sockets.
    static constexpr int kMaxReady = 64;

    AgentSockets();
    ~AgentSockets() override;

    /// Call look() with the same `wanted` afterwards.
    void watch(Wanted& wanted);
    /// Accepts and reads without waiting.
    void look(const Wanted& wanted);

    Result<> listen(const std::string& path) override;
    void close(const std::string& path) override;
    void accept_clients(const std::string& path, bool is_wanted) override;
    bool send(const std::string& path, std::string_view bytes) override;
    void disconnect(const std::string& path) override;
    std::vector<AgentInput> take() override;

private:
    struct Place {
        std::uint32_t id = 0;  ///< never reused, unlike fds
        UniqueFd listener;
        UniqueFd client;
        std::uint64_t number = 0;  ///< of the listener's file
        bool is_accepting = true;
    };
    enum class End : std::uint32_t { Listener, Client, Names };
    /// The value epoll stores with an fd.
    static std::uint64_t tag_of(std::uint32_t id, End end);

    Result<> register_fd(int fd, std::uint64_t tag);
    Result<> open(const std::string& path, Place& place);
    void open_removed();
    void accept(const std::string& path, Place& place);
    void read(const std::string& path, Place& place);

    UniqueFd epoll_;
    UniqueFd names_;              ///< readable when a socket's file may be gone
    std::size_t watched_at_ = 0;  ///< in Wanted::fds
    std::uint32_t last_id_ = 0;
    std::map<std::string, Place> places_;
    std::map<std::uint32_t, std::string> paths_;  ///< by Place::id
    std::vector<AgentInput> input_;
};

}  // namespace vgpu::daemon::adapters
