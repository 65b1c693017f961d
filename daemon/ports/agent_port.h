// SPDX-License-Identifier: MIT
//
// AgentPort: the sockets through which the agents in guests speak, one per VF, known by its path.
// One client at a time; nothing here waits or looks at what is said. Implemented by
// adapters/agent_sockets, faked in tests. Main loop only.
#pragma once

#include "daemon/ports/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace vgpu::daemon {

/// One thing that happened at a socket. `bytes` is untrusted input from a guest and set for Bytes
/// only; how it is cut into pieces means nothing, so the reader joins them (AgentSession).
struct AgentInput {
    enum class Kind { Connected, Bytes, Gone };
    std::string path;
    Kind kind = Kind::Bytes;
    std::string bytes{};
};

class AgentPort {
public:
    virtual ~AgentPort() = default;

    /// Makes the socket at `path`, in place of one that a dead vgpud left, and accepts clients from
    /// now on. System if that fails; nothing is listening then.
    virtual Result<> listen(const std::string& path) = 0;
    /// Ends the client and the socket.
    virtual void close(const std::string& path) = 0;
    /// No client is taken while `false`.
    virtual void accept_clients(const std::string& path, bool is_wanted) = 0;
    /// False if the client does not take all of it at once.
    /// `bytes` goes to the client at `path` whole or counts as failed: nothing is kept to be sent
    /// later. After `false` the stream may have a gap, so the caller ends the client.
    virtual bool send(const std::string& path, std::string_view bytes) = 0;
    /// Ends the client; no Gone follows.
    virtual void disconnect(const std::string& path) = 0;
    /// What happened since the last call, a bounded amount of it.
    virtual std::vector<AgentInput> take() = 0;
};

}  // namespace vgpu::daemon
