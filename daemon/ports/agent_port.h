// SPDX-License-Identifier: MIT
//
// AgentPort: the interface to the agents' sockets, one per VF, identified by its path. Each socket
// has one client at a time. No call blocks, and none interprets the bytes. Implemented by
// adapters/agent_sockets, faked in tests. Used in the main loop only.
#pragma once

#include "daemon/ports/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace vgpu::daemon {

/// One event at a socket. `bytes` (only for Bytes) is untrusted; AgentSession joins the pieces.
struct AgentInput {
    enum class Kind { Connected, Bytes, Gone };
    std::string path;
    Kind kind = Kind::Bytes;
    std::string bytes{};
};

class AgentPort {
public:
    virtual ~AgentPort() = default;

    /// Makes the socket at `path` and accepts clients. Replaces any socket at that path. Fails with
    /// System, or with ConfigInvalid if the path is too long.
    virtual Result<> listen(const std::string& path) = 0;
    /// Closes the socket and its client, and drops their events.
    virtual void close(const std::string& path) = 0;
    /// If not accepting, new clients wait.
    virtual void accept_clients(const std::string& path, bool is_accepting) = 0;
    /// False if there is no client, or if it does not take all `bytes` at once. Disconnect the
    /// client then, because its stream has a gap.
    virtual bool send(const std::string& path, std::string_view bytes) = 0;
    /// Closes the client. No Gone follows.
    virtual void disconnect(const std::string& path) = 0;
    /// All events since the last call.
    virtual std::vector<AgentInput> take() = 0;
};

}  // namespace vgpu::daemon
