// SPDX-License-Identifier: MIT
//
// Agents: the AgentSession of every VF in service, at vfN.agent.sock next to vfN.sock. VFs work
// without agents, and agents cannot block the loop: sockets do not block, and sessions bound their
// input. Main loop only; main.cpp calls step() in every iteration.
#pragma once

#include "daemon/service/agents/session.h"
#include "daemon/service/manager.h"
#include "daemon/service/views/event_fold.h"

#include <map>
#include <memory>

namespace vgpu::daemon {

/// A VF's session is replaced whenever the VF may have a new owner, so that no guest answers for
/// the next one. This happens when the VF is made again (another UUID), emptied or resized (another
/// generation), at the end of a claim, and at the next claim, because the old guest may have
/// connected again in between. A first claim and a renewal keep the session: the guest is that
/// owner's.
class Agents {
public:
    Agents(Manager& manager, AgentPort& port, const Clock& clock)
        : manager_(manager), port_(port), clock_(clock) {}

    /// Follows the VFs, handles input, times out.
    void step();
    [[nodiscard]] std::optional<Nanoseconds> next_step() const;
    /// Drops open requests without answers.
    void end();

    /// Options: timeout_ms. OutOfRange, UnknownOption; NoAgent if the VF has no socket.
    void ask(const Target& target, AgentRequest request, const Options& options,
             AgentSession::Done done);
    [[nodiscard]] AgentView view(const Target& target) const;
    std::vector<AdminEvent> take_admin_events();

private:
    /// Identifies the guest that may answer: VF, last scrub, claim.
    struct Tenure {
        Uuid vf{};
        std::uint32_t generation = 0;
        std::uint64_t claim = 0;   ///< in force; 0: none
        bool was_claimed = false;  ///< ever, as far as this vgpud knows
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
    std::vector<std::uint64_t> followed_;  ///< by GPU, for GpuHost::is_newer()
    std::map<Target, Place> places_;
    void report(AdminEvent admin_event);

    EventFold fold_;
    std::vector<AdminEvent> admin_events_;
    bool is_step_due_ = false;              ///< a session may have a change or a new next step
    std::optional<Nanoseconds> next_step_;  ///< of all sessions, unless is_step_due_
};

}  // namespace vgpu::daemon
