// SPDX-License-Identifier: MIT
//
// AgentSockets: implements AgentPort with unix stream sockets. QEMU connects to a socket as the
// client, and passes on the bytes of the agent in the guest. Never blocks. Reads at most
// kMaxPerIteration bytes of each client in an iteration of the main loop, so that a client that
// never stops sending hardly delays other clients. Hundreds of mostly idle sockets share one epoll
// instance, which main.cpp watches. If the file of a socket is removed, AgentSockets makes the
// socket again. Used in the main loop only.
#pragma once

#include "daemon/adapters/event_loop.h"
#include "daemon/adapters/unique_fd.h"
#include "daemon/ports/agent_port.h"

#include <sys/types.h>
#include <map>
#include <optional>

namespace vgpu::daemon::adapters {

/// While a socket has a client, AgentSockets accepts further clients and closes their connections
/// at once, so that these clients see the refusal. After accept_clients(path, false), new clients
/// wait instead.
class AgentSockets final : public AgentPort {
public:
    /// Limit of the bytes that are read from a client in an iteration of the main loop.
    static constexpr std::size_t kMaxPerIteration = 16 * 1024;

    /// Limit of the sockets that an iteration serves. epoll rotates among ready sockets, so later
    /// iterations serve the rest.
    static constexpr int kMaxReady = 64;

    /// `device_user`: the user of softgpu (vgpud --device-user). A VF's socket that belongs to this
    /// user is granted to nobody.
    explicit AgentSockets(std::optional<uid_t> device_user = {});
    ~AgentSockets() override;

    /// Adds the descriptor of the epoll instance. After the wait, call dispatch() with the same
    /// `poll_set`.
    void watch(PollSet& poll_set);
    /// Accepts clients and reads their bytes, without waiting.
    void dispatch(const PollSet& poll_set);

    Result<> listen(const std::string& path) override;
    void close(const std::string& path) override;
    void accept_clients(const std::string& path, bool is_accepting) override;
    bool send(const std::string& path, std::string_view bytes) override;
    void disconnect(const std::string& path) override;
    std::vector<AgentInput> take() override;

private:
    struct Endpoint {
        std::uint32_t id = 0;  ///< never reused, unlike fds
        UniqueFd listener;
        UniqueFd client;
        std::uint64_t inode = 0;  ///< of the listener's file
        bool is_accepting = true;
    };
    /// The kind of descriptor that became readable.
    enum class Source : std::uint32_t { Listener, Client, RemovalWatch };
    /// The value that epoll stores with a descriptor. `id`: Endpoint::id; 0 for RemovalWatch.
    static std::uint64_t tag_of(std::uint32_t id, Source source);

    Result<> register_fd(int fd, std::uint64_t tag);
    Result<> open(const std::string& path, Endpoint& endpoint);
    void copy_user_of_vf_socket(const std::string& path) const;
    void open_removed();
    void accept(const std::string& path, Endpoint& endpoint);
    void read(const std::string& path, Endpoint& endpoint);

    std::optional<uid_t> device_user_;
    UniqueFd epoll_;
    UniqueFd removal_watch_;      ///< readable when a socket's file may be gone
    std::size_t watched_at_ = 0;  ///< index of epoll_ in PollSet::fds
    std::uint32_t last_id_ = 0;
    std::map<std::string, Endpoint> endpoints_;
    std::map<std::uint32_t, std::string> paths_;  ///< by Endpoint::id
    std::vector<AgentInput> input_;
};

}  // namespace vgpu::daemon::adapters
