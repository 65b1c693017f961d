// SPDX-License-Identifier: MIT
//
// Agents: the AgentSessions of all VFs that have a socket vfN.sock. A session listens at
// vfN.agent.sock in the same directory for the agent, the program vgpu-agent in the VF's guest. VFs
// work without agents, and agents cannot block the main loop: sockets do not block, and sessions
// bound their input. Runs in the main loop only.
#pragma once

#include "daemon/ports/timed_part.h"
#include "daemon/service/agents/session.h"
#include "daemon/service/manager.h"
#include "daemon/service/views/event_fold.h"

#include <map>
#include <memory>

namespace vgpu::daemon {

/// Agents replaces a VF's session whenever the VF may have a new guest, so that an earlier guest
/// never answers for the new one:
///   - the VF is recreated (its UUID changes), or scrubbed or resized (its generation changes)
///   - a claim ends
///   - a new claim is made: the earlier guest may have connected again after its claim ended
/// The first claim that this vgpud sees, and a renewal, keep the session, because the owner's guest
/// may be connected already.
class Agents final : public TimedPart {
public:
    Agents(Manager& manager, AgentPort& port, const Clock& clock)
        : manager_(manager), port_(port), clock_(clock) {}

    /// Opens and closes sessions as VFs change, handles input, and ends requests that are late.
    void step() override;
    [[nodiscard]] std::optional<Nanoseconds> next_step() const override;
    /// Closes all sessions when vgpud ends. Drops open requests without answers, because no caller
    /// is left.
    void end();

    /// Passes `request` to the VF's session. Option: timeout_ms, 100 to 300000 (default 60000).
    /// Fails with WrongType, OutOfRange or UnknownOption for a wrong option, with NoAgent if the VF
    /// has no session, or as AgentSession::ask().
    void ask(const Target& target, AgentRequest request, const Options& options,
             AgentSession::Done done);
    /// An empty AgentView if the VF has no session.
    [[nodiscard]] AgentView view(const Target& target) const;
    /// Events since the last call.
    std::vector<AdminEvent> take_admin_events();

private:
    /// Identifies the guest that may use the VF. is_same_guest() decides whether a changed identity
    /// means another guest; Agents then replaces the session.
    struct GuestIdentity {
        Uuid vf{};
        std::uint32_t generation = 0;  ///< of the VF's resources; each scrub or resize changes it
        std::uint64_t claim = 0;       ///< generation of the claim in force; 0: none
        bool was_claimed = false;      ///< true if this vgpud has seen a claim of the VF
    };
    struct Agent {
        GuestIdentity guest;
        std::unique_ptr<AgentSession> session;
    };

    [[nodiscard]] static GuestIdentity identity_of(const VfView& view, const GuestIdentity& before);
    [[nodiscard]] static bool is_same_guest(const GuestIdentity& before, const GuestIdentity& now);
    void follow(const GpuHost& gpu);
    void open(const Target& target, const VfView& view, const GuestIdentity& guest);
    void route(const AgentInput& input);
    void report(AdminEvent admin_event);
    /// The earliest next step of all sessions; none if no session has one.
    [[nodiscard]] std::optional<Nanoseconds> earliest() const;

    Manager& manager_;
    AgentPort& port_;
    const Clock& clock_;
    std::vector<std::uint64_t> followed_;  ///< by GPU: last snapshot that follow() has seen
    std::map<Target, Agent> agents_;
    EventFold fold_;  ///< limits the rate of the events that guests cause
    std::vector<AdminEvent> admin_events_;
    bool is_step_due_ = false;  ///< true if a session may have a change or a new next step
    std::optional<Nanoseconds> next_step_;  ///< earliest() at the last step of the sessions
};

}  // namespace vgpu::daemon
