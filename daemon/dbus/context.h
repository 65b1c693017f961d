// SPDX-License-Identifier: MIT
//
// Context: the parts of vgpud that the D-Bus objects use, and helpers for methods. A method that
// changes something runs only through run_if_authorized(), which asks the Authority, starts the
// work and replies when the work is done. All code here runs in the main loop.
#pragma once

#include "daemon/dbus/authority.h"
#include "daemon/dbus/open_calls.h"
#include "daemon/dbus/properties.h"
#include "daemon/dbus/request_limits.h"
#include "daemon/ports/clock.h"
#include "daemon/service/agents/agents.h"
#include "daemon/service/jobs/jobs.h"
#include "daemon/service/owners/domains.h"
#include "daemon/service/views/event_log.h"

#include <deque>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

namespace vgpu::daemon::dbus {

/// Queue of long pieces of work for the main loop, such as parsing documents. Each step() does one
/// piece, so that the main loop serves other requests in between.
class DeferredWork {
public:
    void add(std::function<void()> work) { work_.push_back(std::move(work)); }
    void step();
    [[nodiscard]] bool is_empty() const { return work_.empty(); }

private:
    std::deque<std::function<void()>> work_;
};

/// The referenced objects outlive every D-Bus object.
struct Context {
    sdbus::IConnection& bus;
    Manager& manager;
    Agents& agents;
    Jobs& jobs;
    Assignments& assignments;
    const Domains& domains;
    PeerCredentials& peer_credentials;
    Authority& authority;
    DeferredWork& deferred_work;
    const Clock& clock;
    const EventLog& events;
    RequestLimits& request_limits;
    std::function<void()> show_new_jobs;  ///< adds objects for new jobs; removes no objects
    /// Adds and removes VF objects to match the snapshots, and adds objects for new jobs.
    std::function<void()> follow_objects;
    std::function<void()> emit_changes;  ///< signals changes of GPUs and VFs, then of jobs
    bool is_stopping = false;            ///< true while vgpud stops and removes all objects
};

inline Error stopping() {
    return {ErrorId::Stopping, "vgpud is stopping"};
}

/// True if add_domain_facts() may have something to add.
inline bool needs_domain_facts(const VfView& view) {
    return !view.record.owner.name.empty() || !view.orphan.empty();
}

/// Adds the name of the owner's libvirt domain and, for an orphan, why the domain does not run.
/// Only the main loop knows these two facts.
inline void add_domain_facts(const Context& context, VfView& view) {
    view.owner_domain_name = context.assignments.domain_name_of(view.record.owner.name);
    if (view.orphan.empty()) return;
    const std::string words = context.domains.describe(view.record.owner.name);
    if (!words.empty()) view.orphan += "; " + words;
}

/// Adds all facts that only the main loop knows: those of add_domain_facts(), and the agent's data.
inline void complete(const Context& context, VfView& view) {
    view.agent = context.agents.view({.gpu = view.gpu, .vf = view.record.vf});
    add_domain_facts(context, view);
}

/// The object that received a method call, and the sender of the call.
struct Caller {
    OpenCalls& calls;    ///< the open calls of the called object
    std::string sender;  ///< unique bus name
};

/// Counts a request of `sender` as open while the returned ticket exists. NotAuthorized if the user
/// of `sender` is not known; TooManyRequests above a limit.
inline Result<RequestLimits::Ticket> admit(Context& context, const std::string& sender) {
    TRY(const uid_t user, context.peer_credentials.user_of(sender));
    return context.request_limits.admit(sender, user);
}

/// Starts `work` without authorisation, and replies with the result of `work`. For methods that
/// only read, but reply later. The call counts as an open request.
template <typename T>
void run_for_any_caller(Context& context, const Caller& caller, sdbus::Result<T>&& result,
                        std::type_identity_t<std::function<void(Done<T>)>> work) {
    const auto ticket = admit(context, caller.sender);
    if (!ticket) return result.returnError(to_dbus(ticket.error()));
    const auto call = std::make_shared<OpenCallOf<T, T>>(std::move(result), *ticket);
    caller.calls.add(call);
    work([call](const Result<T>& answer) { call->answer(answer); });
}

/// Starts `work` if the caller may do `action`, and replies with the result of `work`. Checks the
/// request limits first, so that a flood of calls does not reach polkit. If `work` ends after this
/// function has returned, adds and removes objects before the reply, so that the caller finds new
/// objects, and signals changed properties after the reply. Does not start `work` if the called
/// object is removed before the Authority answers.
/// T: the type of the result of `work`; Replied: the values of the reply, T or none.
template <typename T = void, typename... Replied>
void run_if_authorized(Context& context, const Caller& caller, const std::string& action,
                       sdbus::Result<Replied...>&& result,
                       std::type_identity_t<std::function<void(Done<T>)>> work) {
    const auto ticket = admit(context, caller.sender);
    if (!ticket) return result.returnError(to_dbus(ticket.error()));
    const auto call = std::make_shared<OpenCallOf<T, Replied...>>(std::move(result), *ticket);
    caller.calls.add(call);
    // An object must not be removed while its method runs. So if `work` ends before this function
    // returns, `done` adds only objects for new jobs.
    const auto is_within_call = std::make_shared<bool>(true);
    const Done<T> done = [&context, call, is_within_call](const Result<T>& answer) {
        if (*is_within_call) {
            context.show_new_jobs();
            return call->answer(answer);
        }
        context.follow_objects();
        call->answer(answer);
        context.emit_changes();
    };
    context.authority.check(caller.sender, action,
                            [done, call, work = std::move(work)](Result<> allowed) {
                                // An answered call means that its object was removed (end_all()).
                                // The number of a removed VF may now be that of another VF.
                                if (!call->is_open()) return;
                                if (!allowed) return done(tl::make_unexpected(allowed.error()));
                                work(done);
                            });
    *is_within_call = false;
}

}  // namespace vgpu::daemon::dbus
