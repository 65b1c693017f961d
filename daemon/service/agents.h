// SPDX-License-Identifier: MIT
//
// Agents: the AgentSession of every VF in service, next to the VF's own socket: vfN.agent.sock for
// vfN.sock. No agent is needed for a VF to work, and none can hold up the loop: sockets do not
// block, and each session bounds what it takes. Main loop only; main.cpp calls step() in each turn.
#pragma once

#include "daemon/service/agent_session.h"
#include "daemon/service/manager.h"

#include <map>
#include <memory>

namespace vgpu::daemon {

/// A session begins and ends with its VF; one that was made anew (another UUID) gets a new one, so
/// a guest never answers for the next.
class Agents {
public:
    Agents(Manager& manager, AgentPort& port, const Clock& clock)
        : manager_(manager), port_(port), clock_(clock) {}

    /// Follows the VFs, takes what agents say, ends what is too late.
    void step();
    [[nodiscard]] std::optional<Nanoseconds> next_step() const;
    /// Ends all sessions; what was asked for and is not done gets no answer.
    void end();

    /// Options: timeout_ms.
    /// Options are checked here (OutOfRange, UnknownOption); NoAgent if the VF has no socket.
    void ask(const Target& target, AgentAct act, const Options& options, AgentSession::Done done);
    [[nodiscard]] AgentView view(const Target& target) const;
    std::vector<Notice> take_notices();

private:
    /// One VF's session; made_for is the UUID it was opened for.
    struct Place {
        Uuid made_for{};
        std::unique_ptr<AgentSession> session;
    };

    void follow(const GpuHost& gpu);
    void open(const Target& target, const VfView& view);
    void route(const AgentInput& input);
    [[nodiscard]] std::optional<Nanoseconds> earliest() const;

    Manager& manager_;
    AgentPort& port_;
    const Clock& clock_;
    std::vector<std::uint64_t> followed_;  ///< by GPU, as GpuHost::is_newer() keeps it
    std::map<Target, Place> places_;
    std::vector<Notice> notices_;
    bool is_stirred_ = false;               ///< a session may have news, or another next step
    std::optional<Nanoseconds> next_step_;  ///< of all sessions, unless is_stirred_
};

}  // namespace vgpu::daemon
