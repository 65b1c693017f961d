// SPDX-License-Identifier: MIT
//
// What every D-Bus object needs, and the one way a changing method runs: ask the Authority, have
// the work done by the service, reply with its result or its error from the table. Replies that
// have to wait for more (a scrub) are kept in Waiters and looked at in every turn of the main loop.
// One thread.
#pragma once

#include "daemon/dbus/admission.h"
#include "daemon/dbus/authority.h"
#include "daemon/dbus/open_calls.h"
#include "daemon/dbus/properties.h"
#include "daemon/ports/clock.h"
#include "daemon/service/agents.h"
#include "daemon/service/domains.h"
#include "daemon/service/event_log.h"
#include "daemon/service/jobs.h"
#include "daemon/service/metrics.h"

#include <deque>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

namespace vgpu::daemon::dbus {

/// Replies that are due when something has come true, or when their time is up.
/// Conditions are looked at in each step(), so they must be cheap and must not block.
class Waiters {
public:
    using IsTrue = std::function<bool()>;
    using Reply = std::function<void(Result<>)>;

    /// `reply` gets {} or TimedOut with `what` as its cause; once.
    void add(IsTrue is_true, Nanoseconds deadline, std::string what, Reply reply);
    void step(Nanoseconds now);
    [[nodiscard]] bool is_empty() const { return waiting_.empty(); }

private:
    /// Kept until is_true() or the deadline; of Clock.
    struct Waiting {
        IsTrue is_true;
        Nanoseconds deadline;
        std::string what;
        Reply reply;
    };
    std::vector<Waiting> waiting_;
};

/// Pieces of work that may take the main loop long (a document is read), one in each step(): others
/// are served between two of them.
class Backlog {
public:
    void add(std::function<void()> work) { work_.push_back(std::move(work)); }
    void step();
    [[nodiscard]] bool is_empty() const { return work_.empty(); }

private:
    std::deque<std::function<void()>> work_;
};

/// References to what main.cpp owns; it outlives every object.
struct Context {
    sdbus::IConnection& bus;
    Manager& manager;
    Agents& agents;
    Jobs& jobs;
    Assignments& assignments;
    const Domains& domains;
    Callers& callers;
    Authority& authority;
    Waiters& waiters;
    Backlog& backlog;
    const Clock& clock;
    const EventLog& events;
    Metrics& metrics;
    Admission& admission;
    std::function<void()> show_new_jobs;   ///< those that have no object yet; none goes
    std::function<void()> follow_objects;  ///< those that are new or gone come and go at once
    std::function<void()> tell_changes;    ///< signals of what followed
    bool is_stopping = false;              ///< objects go because vgpud does
};

/// What open calls hear when vgpud stops.
inline Error stopping() {
    return {ErrorId::Stopping, "vgpud stops"};
}

/// Whether add_words() has anything to add.
inline bool wants_words(const VfView& view) {
    return !view.record.owner.name.empty() || !view.orphan.empty();
}

/// What only the main loop knows of a VF: what its owner is called, why it is an orphan.
/// GPU threads do not, so it is added here, when a view is shown.
inline void add_words(const Context& context, VfView& view) {
    view.owner_title = context.assignments.title_of(view.record.owner.name);
    if (view.orphan.empty()) return;
    const std::string words = context.domains.words_for(view.record.owner.name);
    if (!words.empty()) view.orphan += "; " + words;
}

/// The same, and what its agent says.
inline void complete(const Context& context, VfView& view) {
    view.agent = context.agents.view({.gpu = view.gpu, .vf = view.record.vf});
    add_words(context, view);
}

/// A call of a method as it comes in.
struct Caller {
    OpenCalls& calls;    ///< of the object that is called
    std::string sender;  ///< unique bus name
};

/// A ticket for a request of `sender`; NotAuthorized if that has gone.
inline Result<Admission::Ticket> admit(Context& context, const std::string& sender) {
    TRY(const uid_t user, context.callers.user_of(sender));
    return context.admission.admit(sender, user);
}

/// Starts `work`, which anybody may ask for; replies with what it hands to its `done`. For methods
/// that only read, and yet have to ask the GPU's thread; counts as a request under way.
template <typename T>
void answered(Context& context, const Caller& caller, sdbus::Result<T>&& result,
              std::type_identity_t<std::function<void(Done<T>)>> work) {
    const auto ticket = admit(context, caller.sender);
    if (!ticket) return result.returnError(to_dbus(ticket.error()));
    const auto call = std::make_shared<OpenCallOf<T, T>>(std::move(result), *ticket, nullptr);
    caller.calls.add(call);
    work([call](const Result<T>& answer) { call->answer(answer); });
}

/// Starts `work` if the caller may do `action`; replies with what it hands to its `done`. Admission
/// comes before authority: a caller that floods must not make polkit work. Objects follow before
/// the reply goes out, so that whoever has the answer finds the object that it names; signals of
/// changed properties come right after it. `at_end` as in OpenCallOf. Nothing is begun for a call
/// whose object goes before the Authority has said yes.
template <typename T = void, typename... Replied>
void authorized(Context& context, const Caller& caller, const std::string& action,
                sdbus::Result<Replied...>&& result,
                std::type_identity_t<std::function<void(Done<T>)>> work,
                std::type_identity_t<std::function<Result<T>(const Error&)>> at_end = nullptr) {
    const auto ticket = admit(context, caller.sender);
    if (!ticket) return result.returnError(to_dbus(ticket.error()));
    const auto call =
        std::make_shared<OpenCallOf<T, Replied...>>(std::move(result), *ticket, std::move(at_end));
    caller.calls.add(call);
    // The object that was called must not go while its method runs.
    const auto is_within_call = std::make_shared<bool>(true);
    const Done<T> done = [&context, call, is_within_call](const Result<T>& answer) {
        if (*is_within_call) {
            context.show_new_jobs();
            return call->answer(answer);
        }
        context.follow_objects();
        call->answer(answer);
        context.tell_changes();
    };
    context.authority.check(caller.sender, action,
                            [done, call, work = std::move(work)](Result<> allowed) {
                                // answered: what it names may be another's by now
                                if (!call->is_open()) return;
                                if (!allowed) return done(tl::make_unexpected(allowed.error()));
                                work(done);
                            });
    *is_within_call = false;
}

}  // namespace vgpu::daemon::dbus
