// SPDX-License-Identifier: MIT
//
// AgentPort: the interface to the sockets through which agents in guests connect. A VF has at most
// one such socket, and calls name the socket by its path. A socket has one client at a time. No
// call blocks, and no call interprets the bytes. Implemented by adapters/agent_sockets, faked in
// tests. Used in the main loop only.
#pragma once

#include "daemon/ports/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace vgpu::daemon {

/// One event at the socket `path`. `bytes` (only for Bytes) is an untrusted piece of the client's
/// stream; AgentSession (service/agents/session.h) joins the pieces.
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
    /// Closes and removes the socket, disconnects its client, and drops the events of this path.
    virtual void close(const std::string& path) = 0;
    /// If `is_accepting` is false, new clients wait until the next call with true. A client that is
    /// already connected stays connected.
    virtual void accept_clients(const std::string& path, bool is_accepting) = 0;
    /// Sends `bytes` to the client. False if there is no client, or if its socket does not take all
    /// `bytes` at once. The caller must then call disconnect(), because the stream may have a gap.
    virtual bool send(const std::string& path, std::string_view bytes) = 0;
    /// Closes the client's connection, and drops its events. No event Gone follows.
    virtual void disconnect(const std::string& path) = 0;
    /// All events since the last call.
    virtual std::vector<AgentInput> take() = 0;
};

}  // namespace vgpu::daemon
