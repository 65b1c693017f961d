// SPDX-License-Identifier: MIT
//
// What every D-Bus object needs, and the one way a changing method runs: ask the Authority, do the
// work in the service, reply with its result or its error from the table. Replies that have to wait
// (a scrub) are kept in Waiters and looked at after every turn of the main loop. One thread.
#pragma once

#include "daemon/dbus/authority.h"
#include "daemon/dbus/properties.h"
#include "daemon/ports/clock.h"

#include <functional>
#include <memory>
#include <vector>

namespace vgpu::daemon::dbus {

sdbus::Error to_dbus(const Error& error);

/// Replies that are due when something has come true, or when their time is up.
class Waiters {
public:
    using IsTrue = std::function<bool()>;
    using Reply = std::function<void(Result<>)>;

    void add(IsTrue is_true, Nanoseconds deadline, std::string what, Reply reply);
    void step(Nanoseconds now);
    [[nodiscard]] bool is_empty() const { return waiting_.empty(); }

private:
    struct Waiting {
        IsTrue is_true;
        Nanoseconds deadline;
        std::string what;
        Reply reply;
    };
    std::vector<Waiting> waiting_;
};

struct Context {
    sdbus::IConnection& bus;
    Manager& manager;
    Authority& authority;
    Waiters& waiters;
    const Clock& clock;
    std::function<void()> refresh_objects;  ///< objects on the bus follow the service at once
};

/// Runs `work` if `sender` may do `action`; replies with what it returns.
template <typename... Replied, typename Work>
void authorized(Context& context, const std::string& sender, const std::string& action,
                sdbus::Result<Replied...>&& result, Work work) {
    auto reply = std::make_shared<sdbus::Result<Replied...>>(std::move(result));
    context.authority.check(sender, action, [&context, reply, work](Result<> allowed) {
        if (!allowed) return reply->returnError(to_dbus(allowed.error()));
        auto done = work();
        context.refresh_objects();
        if (!done) return reply->returnError(to_dbus(done.error()));
        if constexpr (sizeof...(Replied) == 0)
            reply->returnResults();
        else
            reply->returnResults(*done);
    });
}

}  // namespace vgpu::daemon::dbus
