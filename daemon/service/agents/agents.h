// SPDX-License-Identifier: MIT
//
// Agents: the AgentSession of every VF in service, next to the VF's own socket: vfN.agent.sock for
// vfN.sock. No agent is needed for a VF to work, and none can hold up the loop: sockets do not
// block, and each session bounds what it takes. Main loop only; main.cpp calls step() in each turn.
#pragma once

#include "daemon/service/agents/session.h"
#include "daemon/service/manager.h"
#include "daemon/service/views/notice_fold.h"

#include <map>
#include <memory>

namespace vgpu::daemon {

/// A session begins and ends with its VF, and a new one begins when the VF may be another's, so
/// that a guest never answers for the next: a VF made anew (another UUID), emptied or resized
/// (another generation), at the end of a claim, and at the claim that follows, since who was put
/// out at that end may have connected again. A first claim, or one that is renewed, leaves the
/// guest that is there: it is that owner's.
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
    /// Whose guest may answer: the VF as it was made and last emptied, and the claim on it.
    struct Tenure {
        Uuid vf{};
        std::uint32_t generation = 0;
        std::uint64_t claim = 0;   ///< in force; 0: none
        bool was_claimed = false;  ///< by anybody, now or earlier, as far as this vgpud knows
    };
    struct Place {
        Tenure tenure;
        std::unique_ptr<AgentSession> session;
    };

    [[nodiscard]] static Tenure tenure_of(const VfView& view, const Tenure& before);
    [[nodiscard]] static bool goes_on(const Tenure& before, const Tenure& now);
    void follow(const GpuHost& gpu);
    void open(const Target& target, const VfView& view, const Tenure& tenure);
    void route(const AgentInput& input);
    [[nodiscard]] std::optional<Nanoseconds> earliest() const;

    Manager& manager_;
    AgentPort& port_;
    const Clock& clock_;
    std::vector<std::uint64_t> followed_;  ///< by GPU, as GpuHost::is_newer() keeps it
    std::map<Target, Place> places_;
    void tell(Notice notice);

    NoticeFold fold_;
    std::vector<Notice> notices_;
    bool is_stirred_ = false;               ///< a session may have news, or another next step
    std::optional<Nanoseconds> next_step_;  ///< of all sessions, unless is_stirred_
};

}  // namespace vgpu::daemon
