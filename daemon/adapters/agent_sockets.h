// SPDX-License-Identifier: MIT
//
// AgentSockets: AgentPort over unix stream sockets that QEMU connects to. All are non-blocking; a
// turn reads at most kMaxPerTurn of each client, so that a client that floods costs a bounded part
// of a turn. A client beside the first is closed at once. There may be hundreds, and most turns of
// the main loop have nothing to do with them: they are registered with an epoll, and main.cpp
// watches that alone; one thread. A socket whose file somebody removes is made again.
#pragma once

#include "daemon/adapters/event_loop.h"
#include "daemon/adapters/unique_fd.h"
#include "daemon/ports/agent_port.h"

#include <map>

namespace vgpu::daemon::adapters {

/// Takes connections in the kernel's queue even while a client is there, and closes them: whoever
/// connects second learns at once that it is not wanted.
class AgentSockets final : public AgentPort {
public:
    /// Bytes of one client in one turn of the main loop.
    static constexpr std::size_t kMaxPerTurn = 16 * 1024;

    /// Sockets that are served in one turn; epoll hands them out in turns.
    static constexpr int kMaxReady = 64;

    AgentSockets();
    ~AgentSockets() override;

    /// To be followed by look() with the same `wanted`.
    void watch(Wanted& wanted);
    /// Accepts at, and reads from, those that are ready; does not wait.
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
        std::uint32_t id = 0;  ///< never another place's: an fd's number may be
        UniqueFd listener;
        UniqueFd client;
        std::uint64_t number = 0;  ///< of the listener's file
        bool is_accepting = true;
    };
    enum class End : std::uint32_t { Listener, Client, Names };
    /// What epoll keeps with a socket, and hands back.
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
