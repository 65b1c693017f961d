// SPDX-License-Identifier: MIT
//
// Agents: the AgentSession of every VF that has a socket vfN.sock, at vfN.agent.sock next to it.
// VFs work without agents, and agents cannot block the loop: sockets do not block, and sessions
// bound their input. Runs in the main loop only.
#pragma once

#include "daemon/ports/timed_part.h"
#include "daemon/service/agents/session.h"
#include "daemon/service/manager.h"
#include "daemon/service/views/event_fold.h"

#include <map>
#include <memory>

namespace vgpu::daemon {

/// A VF's session is replaced whenever the VF may have a new owner, so that no guest answers for
/// the next one. This happens when the VF is recreated (another UUID), scrubbed or resized (another
/// generation), at the end of a claim, and at the next claim, because the old guest may have
/// connected again in between. A first claim and a renewal keep the session, because the
/// guest belongs to that owner.
class Agents final : public TimedPart {
public:
    Agents(Manager& manager, AgentPort& port, const Clock& clock)
        : manager_(manager), port_(port), clock_(clock) {}

    /// Follows changes of VFs, handles input, and ends requests that are late.
    void step() override;
    [[nodiscard]] std::optional<Nanoseconds> next_step() const override;
    /// Drops open requests without answers.
    void end();

    /// Options: timeout_ms. OutOfRange, UnknownOption; NoAgent if the VF has no socket.
    void ask(const Target& target, AgentRequest request, const Options& options,
             AgentSession::Done done);
    [[nodiscard]] AgentView view(const Target& target) const;
    std::vector<AdminEvent> take_admin_events();

private:
    /// Identifies the guest that may answer: VF, last scrub, claim.
    struct GuestIdentity {
        Uuid vf{};
        std::uint32_t generation = 0;
        std::uint64_t claim = 0;   ///< in force; 0: none
        bool was_claimed = false;  ///< true if the VF ever had a claim, as far as this vgpud knows
    };
    struct Agent {
        GuestIdentity guest;
        std::unique_ptr<AgentSession> session;
    };

    [[nodiscard]] static GuestIdentity identity_of(const VfView& view, const GuestIdentity& before);
    [[nodiscard]] static bool continues(const GuestIdentity& before, const GuestIdentity& now);
    void follow(const GpuHost& gpu);
    void open(const Target& target, const VfView& view, const GuestIdentity& guest);
    void route(const AgentInput& input);
    void report(AdminEvent admin_event);
    /// The earliest next step of all sessions; none if no session has one.
    [[nodiscard]] std::optional<Nanoseconds> earliest() const;

    Manager& manager_;
    AgentPort& port_;
    const Clock& clock_;
    std::vector<std::uint64_t> followed_;  ///< by GPU, for GpuHost::is_newer()
    std::map<Target, Agent> agents_;
    EventFold fold_;
    std::vector<AdminEvent> admin_events_;
    bool is_step_due_ = false;  ///< true if a session may have a change or a new next step
    std::optional<Nanoseconds> next_step_;  ///< of all sessions, unless is_step_due_
};

}  // namespace vgpu::daemon
