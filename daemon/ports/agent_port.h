// SPDX-License-Identifier: MIT
//
// AgentPort is the interface to the agents' sockets, one per VF, identified by its path. Each has
// one client at a time; no call waits, and none interprets the bytes. Implemented by
// adapters/agent_sockets, faked in tests. Main loop only.
#pragma once

#include "daemon/ports/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace vgpu::daemon {

/// One event at a socket. `bytes` is untrusted input from a guest, set only for Bytes. Its pieces
/// have no meaning, so the reader joins them (AgentSession).
struct AgentInput {
    enum class Kind { Connected, Bytes, Gone };
    std::string path;
    Kind kind = Kind::Bytes;
    std::string bytes{};
};

class AgentPort {
public:
    virtual ~AgentPort() = default;

    /// Makes the socket at `path`, replacing one that a dead vgpud left, and accepts clients from
    /// now on. On failure System, and there is no socket.
    virtual Result<> listen(const std::string& path) = 0;
    /// Closes the client and the socket.
    virtual void close(const std::string& path) = 0;
    /// Accepts no client while `is_wanted` is false.
    virtual void accept_clients(const std::string& path, bool is_wanted) = 0;
    /// Sends `bytes` to the client at `path`; false if the client does not take all of it at once.
    /// Keeps nothing to send later. After `false` the stream may have a gap: end the client.
    virtual bool send(const std::string& path, std::string_view bytes) = 0;
    /// Closes the client; no Gone follows.
    virtual void disconnect(const std::string& path) = 0;
    /// A bounded number of events since the last call.
    virtual std::vector<AgentInput> take() = 0;
};

}  // namespace vgpu::daemon
