// SPDX-License-Identifier: MIT
//
// AgentSockets: AgentPort over unix stream sockets that QEMU connects to. All are non-blocking; a
// turn reads at most kMaxPerTurn of each client, so that a client that floods costs a bounded part
// of a turn. A client beside the first is closed at once. main.cpp lets it watch before each wait
// and look after it; one thread.
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

    ~AgentSockets() override;

    /// To be followed by look() with the same `wanted`: in between, places are known by their index
    /// in it.
    void watch(Wanted& wanted);
    /// Reads from those of `wanted` that are ready.
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
        UniqueFd listener;
        UniqueFd client;
        bool is_accepting = true;
    };
    struct Watched {
        std::string path;
        std::size_t index;  ///< in Wanted::fds
        bool is_listener;
    };

    void accept(const std::string& path, Place& place);
    void read(const std::string& path, Place& place);

    std::map<std::string, Place> places_;
    std::vector<Watched> watched_;
    std::vector<AgentInput> input_;
};

}  // namespace vgpu::daemon::adapters
